package job

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"socle/internal/backup"
	"socle/internal/fault"
)

const (
	proofQueue = "proofs"

	// proofInterval is the interval between proofs of a project's newest backup, unless its
	// schedule sets one
	proofInterval = 24 * time.Hour
)

// proveArgs identify the backup to prove.
type proveArgs struct {
	Backup uuid.UUID `json:"backup"`
	Asked  bool      `json:"asked,omitempty"` // requested by a user: ignores the size limit and the interval
}

// Kind returns the kind of the job.
func (proveArgs) Kind() string { return "prove" }

// InsertOpts allows one unfinished job per backup, and retries after restarts of the server or
// PostgreSQL for about a quarter of an hour.
func (proveArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{
		Queue:       proofQueue,
		MaxAttempts: 6,
		UniqueOpts:  river.UniqueOpts{ByArgs: true, ByState: unfinished},
	}
}

// proveBackup proves a backup. Afterwards it applies the retention rules: the previous proven
// backup is no longer kept for its proof.
func (q *Queue) proveBackup(ctx context.Context, a proveArgs) error {
	if err := q.Maker.Prove(ctx, a.Backup, a.Asked); err != nil {
		return err
	}

	after, err := q.Store.AfterBackup(ctx, a.Backup)
	if err != nil {
		return fault.Ignore(err, fault.NotFound)
	}

	return q.applyRetention(ctx, after.ProjectUUID)
}

// enqueueDueProofs enqueues proofs of the newest backup of each project where one is due.
func (q *Queue) enqueueDueProofs(ctx context.Context) error {
	backups, err := q.Store.UnprovenBackups(ctx, proofInterval, backup.MaxProvenSize)
	if err != nil {
		return err
	}

	for _, id := range backups {
		if _, err := q.client.Insert(ctx, proveArgs{Backup: id}, nil); err != nil {
			return err
		}
	}

	return nil
}
