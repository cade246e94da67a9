package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/backup/archive"
	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgdump"
	"github.com/socle-dev/socle/internal/platform"
)

// proofInterval is the interval at which a project's newest backup is proven, unless its schedule
// sets one.
const proofInterval = 24 * time.Hour

// proveArgs identify the backup to prove.
type proveArgs struct {
	Backup  uuid.UUID `json:"backup" river:"unique"`
	Project uuid.UUID `json:"project"`

	// Asked means that a user requested it: it ignores the size limit and the interval.
	Asked bool `json:"asked,omitempty" river:"unique"`
}

// Kind returns the job kind.
func (proveArgs) Kind() string { return "prove" }

// runProof proves a backup. Afterwards it applies the retention rules: the previous proven
// backup is no longer kept for its proof.
func (s *Service) runProof(ctx context.Context, a proveArgs) error {
	if err := s.Prove(ctx, a.Backup, a.Asked); err != nil {
		return err
	}

	next, err := s.followUp(ctx, a.Backup)
	if err != nil {
		return fault.Ignore(err, fault.NotFound)
	}

	return s.applyRetention(ctx, next.ProjectUUID)
}

// EnqueueDueProofs enqueues each due proof of a project's newest backup.
func (s *Service) EnqueueDueProofs(ctx context.Context) error {
	backups, err := s.unproven(ctx, proofInterval, MaxProvenSize)
	if err != nil {
		return err
	}

	for _, b := range backups {
		if _, err := s.Queue.Insert(ctx, proveArgs{Backup: b.UUID, Project: b.ProjectUUID}); err != nil {
			return err
		}
	}

	return nil
}

// RequestProof enqueues a proof of a backup. It fails with NotFound if the backup does not exist
// and with Conflict if it is not completed.
func (s *Service) RequestProof(ctx context.Context, project, id uuid.UUID) (Backup, error) {
	var b Backup
	err := s.inTx(ctx, func(tx *store) error {
		var err error
		if b, err = tx.Get(ctx, project, id); err != nil {
			return err
		}

		if err := checkCompleted(b); err != nil {
			return err
		}

		_, err = s.Queue.InsertTx(ctx, tx.tx(), proveArgs{Backup: id, Project: project, Asked: true})
		return err
	})

	return b, err
}

// MaxProvenSize is the maximum size in bytes for dumps that are proven automatically.
const MaxProvenSize = 1 << 30

// inactiveRetryDelay is a proof's retry interval while its project is not active.
const inactiveRetryDelay = 5 * time.Minute

// errInactive reports that a project is paused or deleted.
var errInactive = fault.New(fault.Conflict, "the project is not active")

// Prove restores a completed backup into a separate database, compares every row with the dump,
// records the result, and drops the database. It does nothing if the backup is gone or, unless a
// user requested the proof, larger than MaxProvenSize.
//
// Failures unrelated to the backup are not recorded; it then returns a *[RetryError]. The error is
// for the log.
func (s *Service) Prove(ctx context.Context, id uuid.UUID, isRequest bool) error {
	b, err := s.getCompleted(ctx, id)
	tooLarge := err == nil && b.Size != nil && *b.Size > MaxProvenSize
	if fault.Is(err, fault.NotFound) || (tooLarge && !isRequest) {
		return nil
	}
	if err != nil {
		return &RetryError{Err: err}
	}

	c := s.Lifecycle.Proof(b.ProjectUUID, id, isRequest)
	if err := c.Drop(ctx); err != nil { // left by an interrupted proof
		return &RetryError{Err: err}
	}

	missing, err := s.prove(ctx, c, b)

	finishCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()

	dropErr := c.Drop(finishCtx)
	failure := ""
	if len(missing) > 0 {
		failure = summary(missing)
	}
	if err != nil {
		err = errors.Join(fmt.Errorf("prove backup %s: %w", id, err), dropErr)
		switch {
		case errors.Is(err, errInactive):
			return &RetryError{inactiveRetryDelay, err}
		case ctx.Err() != nil || isTransient(err):
			return &RetryError{Err: err}
		}

		failure = restoreFailure(ctx, err)
	}

	recordErr := s.unaudited(finishCtx, func(tx *store) error {
		if err := tx.recordProof(finishCtx, id, failure, missing); err != nil {
			return err
		}

		fact := factOf(event.BackupProven, b)
		if failure != "" {
			fact.Type, fact.Error = event.BackupProofFailed, failure
		}

		return s.recordFact(finishCtx, tx, fact)
	})
	if recordErr != nil {
		return &RetryError{Err: errors.Join(err, recordErr)}
	}

	return errors.Join(err, dropErr)
}

// prove restores a backup into a copy and compares the two. It returns the objects that PostgreSQL
// did not create.
func (s *Service) prove(ctx context.Context, c *lifecycle.Copy, b Backup) ([]Missing, error) {
	status, err := s.platform.ProjectStatus(ctx, b.ProjectUUID)
	if err == nil && status != platform.Active { // before the whole backup is read
		err = errInactive
	}
	if err != nil {
		return nil, err
	}

	manifest, entries, err := s.Verify(ctx, b.ProjectUUID, b.UUID)
	if err != nil {
		return nil, err
	}
	defer manifest.Files.Close()

	missing, err := s.fill(ctx, c, manifest, entries, false, func() error { return nil })
	if err != nil || len(missing) > 0 {
		return missing, err
	}

	return nil, s.compareRows(ctx, c, manifest, entries)
}

// isTransient reports whether a proof failed for reasons unrelated to the backup: a database or
// storage that is unavailable, or a concurrent change.
func isTransient(err error) bool {
	if errors.Is(err, archive.ErrDamaged) || errors.Is(err, pgdump.ErrTOC) || errors.Is(err, errRestoreTimeout) {
		return false
	}
	if isDatabaseAway(err) {
		return true
	}

	f := fault.Of(pg.Fault(err))
	return f.Kind == fault.Unavailable || f.Code == "busy" || errors.Is(err, io.ErrUnexpectedEOF)
}

// getCompleted returns a completed backup. It fails with NotFound in any other status.
func (s *store) getCompleted(ctx context.Context, id uuid.UUID) (Backup, error) {
	return pg.One[Backup](ctx, s.q,
		`select`+backupColumns+`from platform.backups where uuid = @id and status = 'completed'`,
		pgx.StrictNamedArgs{"id": id})
}

// recordProof records a proof's result. reason is empty if the backup restored. missing are the
// objects that PostgreSQL did not create.
func (s *store) recordProof(ctx context.Context, id uuid.UUID, reason string, missing []Missing) error {
	_, err := pg.Exec(ctx, s.q, `
		update platform.backups set tried_at = now(), proven_at = case when @reason::text = '' then now() else proven_at end, proof_error = @reason, missing = @missing
		where uuid = @id and status = 'completed'`, pgx.StrictNamedArgs{"id": id, "reason": reason, "missing": truncateMissing(missing)})
	return err
}

// unprovenBackup is a backup whose proof is due.
type unprovenBackup struct{ UUID, ProjectUUID uuid.UUID }

// unproven returns each active project's newest completed backup if its proof is due and it has at
// most most bytes. A proof is due after the interval in the project's schedule, or after age
// without a schedule. If the schedule does not prove each new backup, the last proof of any backup
// counts.
func (s *store) unproven(ctx context.Context, age time.Duration, most int64) ([]unprovenBackup, error) {
	return pg.All[unprovenBackup](ctx, s.q, `
		select newest.uuid, p.uuid as project_uuid from platform.projects p
		left join platform.backup_schedules s on s.project_uuid = p.uuid
		cross join lateral (
			select b.uuid, b.proven_at, b.size from platform.backups b
			where b.project_uuid = p.uuid and b.status = 'completed' order by b.completed_at desc limit 1) newest
		cross join lateral (
			select case when s.prove is false then max(b.proven_at) else newest.proven_at end as at
			from platform.backups b where b.project_uuid = p.uuid and b.status = 'completed') proven
		where p.status = 'active' and newest.size <= @most and s.prove_every_days is distinct from 0
			and coalesce(proven.at, '-infinity') < now() - coalesce(make_interval(days => s.prove_every_days), @age::interval)`,
		pgx.StrictNamedArgs{"age": age, "most": most})
}

// followUp is the work after a completed backup.
type followUp struct {
	ProjectUUID uuid.UUID
	Prove       bool
}

// followUp returns the work after a completed backup. It fails with NotFound in any other status.
func (s *store) followUp(ctx context.Context, id uuid.UUID) (followUp, error) {
	return pg.One[followUp](ctx, s.q, `
		select b.project_uuid, coalesce(s.prove, true) as prove
		from platform.backups b left join platform.backup_schedules s on s.project_uuid = b.project_uuid
		where b.uuid = @id and b.status = 'completed'`, pgx.StrictNamedArgs{"id": id})
}

// Age holds the times from which the age of a project's backups is computed.
type Age struct {
	ProjectUUID uuid.UUID
	NextRunAt   time.Time
	CompletedAt *time.Time // when the newest backup completed; nil: none
	ProvenAt    *time.Time // last proof of any completed backup; nil: none
}

// Ages returns the backup ages for all active projects that have a schedule.
func (s *store) Ages(ctx context.Context) ([]Age, error) {
	return pg.All[Age](ctx, s.q, `
		select s.project_uuid, s.next_run_at, b.completed_at, b.proven_at
		from platform.backup_schedules s
		join platform.projects p on p.uuid = s.project_uuid and p.status = 'active'
		cross join lateral (
			select max(b.completed_at) as completed_at, max(b.proven_at) as proven_at
			from platform.backups b where b.project_uuid = s.project_uuid and b.status = 'completed') b`)
}
