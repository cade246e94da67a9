package migration

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/statement"
	"github.com/socle-dev/socle/internal/tick"
)

// Options change how files are applied.
type Options struct {
	OutOfOrder bool // apply a file although a newer one is applied
	RecordOnly bool // record files without running them
}

// ApplyResult is the result when files are applied.
type ApplyResult struct {
	Applied        []Migration `json:"applied" doc:"The migrations that this request applied, in order."`
	AlreadyApplied int         `json:"alreadyApplied" doc:"Number of migrations of the request that were applied before."`
	Notes          []FileNote  `json:"notes" nullable:"false" doc:"What was left out or changed in the applied migrations, in order."`
	OmittedNotes   int         `json:"omittedNotes" doc:"Number of notes beyond the first 10,000."`
}

// FileNote is what a project has left out or changed in a migration.
type FileNote struct {
	Version string `json:"version" example:"20261123101500"`
	statement.StepNote
}

// maxNotes bounds a result's notes.
const maxNotes = 10_000

// add adds a migration that was applied.
func (r *ApplyResult) add(m Migration, notes []statement.StepNote) {
	r.Applied = append(r.Applied, m)
	for _, n := range notes {
		if len(r.Notes) == maxNotes {
			r.OmittedNotes++
			continue
		}

		r.Notes = append(r.Notes, FileNote{m.Version, n})
	}
}

// applyLock is the advisory lock key under which a migration runs in its project's database, an
// arbitrary constant. User code can take the lock too, which delays only its own project.
const applyLock = 0x50c1e_4d16

const lockInterval = 200 * time.Millisecond // between attempts to take applyLock

var errLocked = errors.New("another migration of the project runs")

// Apply applies the files that a project has not applied yet, each in a transaction, until one
// fails. It waits for another migration in the project.
//
// It fails with Conflict, code migration_changed, if a file differs from the one that was applied,
// and code out_of_order, if a newer one is applied. It fails with Unprocessable on the file that
// PostgreSQL rejects; the member applied has the versions that it applied before, and the member
// notes their notes. It fails with TooMany if too many requests are in service.
func (s *Service) Apply(
	ctx context.Context, p *projectdb.Project, user uuid.UUID, files []Source, o Options,
) (ApplyResult, error) {
	result := ApplyResult{Applied: []Migration{}, Notes: []FileNote{}}

	scripts, err := parse(files)
	if err != nil {
		return result, err
	}

	if _, err := s.lifecycle.Store.GetProject(ctx, p.UUID); err != nil {
		return result, err
	}

	release, err := s.admit(ctx, p)
	if err != nil {
		return result, err
	}
	defer release()

	pending, err := plan(ctx, p, user, scripts, o)
	if err != nil {
		return result, err
	}

	result.AlreadyApplied = len(scripts) - len(pending)
	if !o.RecordOnly {
		if err := apply(ctx, p, user, pending, o, &result); err != nil {
			return result, err
		}

		return result, nil
	}

	records, err := readKnown(ctx, p.Trusted())
	for _, script := range pending {
		result.Applied = append(result.Applied, records[script.Version])
	}

	return result, err
}

// plan returns the scripts to apply. It writes the request's audit entry, so that none runs without
// one, and records the scripts that are not to run.
func plan(
	ctx context.Context, p *projectdb.Project, user uuid.UUID, scripts []script, o Options,
) ([]script, error) {
	return pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) ([]script, error) {
		applied, err := readKnown(ctx, tx)
		if err != nil {
			return nil, err
		}

		var pending []script
		for _, script := range scripts {
			due, err := applied.pending(script.Source, o.OutOfOrder)
			if err != nil {
				return nil, err
			}
			if !due {
				continue
			}

			if o.RecordOnly {
				if err := recordDone(ctx, tx, user, script.Source); err != nil {
					return nil, err
				}
			}

			pending = append(pending, script)
		}

		return pending, nil
	})
}

// apply applies scripts in order until one fails.
func apply(
	ctx context.Context, p *projectdb.Project, user uuid.UUID, scripts []script, o Options, result *ApplyResult,
) error {
	applyCtx, cancel := context.WithTimeout(ctx, ApplyTimeout)
	defer cancel()

	session := &ownerSession{pool: p.Owner()}
	defer func() { session.end(applyCtx) }()

	for _, script := range scripts {
		m, notes, err := script.applyLocked(applyCtx, p, session, user, o)
		if err != nil && applyCtx.Err() != nil && ctx.Err() == nil {
			err = statement.TimeoutFault(script.field, ApplyTimeout.String(), err)
		}

		if err != nil {
			e, ok := errors.AsType[*fault.Error](script.blame(err))
			if !ok {
				return err
			}

			versions := []string{}
			for _, previous := range result.Applied {
				versions = append(versions, previous.Version)
			}

			e.Extra["applied"], e.Extra["notes"] = versions, result.Notes
			return e
		}

		if m == nil { // applied by another request meanwhile
			result.AlreadyApplied++
			continue
		}

		result.add(*m, notes)
	}

	return nil
}

// applyLocked applies a script when no other migration runs in the project. It returns nil if
// another request has applied it meanwhile.
func (s script) applyLocked(
	ctx context.Context, p *projectdb.Project, session *ownerSession, user uuid.UUID, o Options,
) (*Migration, []statement.StepNote, error) {
	for range tick.Poll(ctx, lockInterval) { // without a connection
		m, notes, err := s.apply(ctx, p, session, user, o)
		if !errors.Is(err, errLocked) {
			return m, notes, err
		}
	}

	return nil, nil, fault.New(fault.Conflict, "another migration of the project runs").
		WithCode("busy").WithCause(errLocked)
}

// apply runs a script on an owner session. It fails with errLocked if another migration runs in the
// project.
func (s script) apply(
	ctx context.Context, p *projectdb.Project, session *ownerSession, user uuid.UUID, o Options,
) (*Migration, []statement.StepNote, error) {
	full, err := statement.CheckQuota(p)
	if err != nil {
		return nil, nil, err
	}
	if full && s.separate {
		return nil, nil, projectdb.ErrOverQuota
	}

	platform := func(ctx context.Context, f func(tx pgx.Tx) error) error { return pg.InTx(ctx, p.Trusted(), f) }
	r := run{script: s, user: user, outOfOrder: o.OutOfOrder, start: time.Now()}
	var notes []statement.StepNote
	err = session.use(ctx, func(conn *pgx.Conn) (err error) {
		notes, err = r.run(ctx, conn, full, platform)
		return err
	})
	if errors.Is(err, errSkipped) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}

	m, err := pg.One[Migration](context.WithoutCancel(ctx), p.Trusted(),
		`select `+migrationColumns+` from socle.applied_migrations where version = @version`,
		pgx.StrictNamedArgs{"version": s.Version})
	return &m, notes, err
}

// ownerSession is an owner session that scripts share, since PostgreSQL plans the event triggers'
// functions once per session. It begins when it is used.
type ownerSession struct {
	pool *pgxpool.Pool
	conn *pgxpool.Conn // nil: none
}

// use runs f on the session, and resets it for the next script. It ends the session if f fails.
func (s *ownerSession) use(ctx context.Context, f func(*pgx.Conn) error) (err error) {
	if s.conn == nil {
		if s.conn, err = pg.Acquire(ctx, s.pool); err != nil {
			return err
		}
	}

	err = f(s.conn.Conn())
	if err != nil || pg.Reset(ctx, s.conn.Conn()) != nil {
		s.end(ctx)
	}

	return err
}

// end discards the session.
func (s *ownerSession) end(ctx context.Context) {
	if s.conn == nil {
		return
	}

	statement.EndSession(ctx, s.conn.Conn().PgConn(), ctx.Err() != nil)
	s.conn.Release()
	s.conn = nil
}

// run is a script's run on an owner session.
type run struct {
	script
	user       uuid.UUID
	outOfOrder bool
	start      time.Time
}

// errSkipped ends a run if the script is applied already.
var errSkipped = errors.New("applied already")

// run runs the script and returns its notes.
func (r *run) run(
	ctx context.Context, conn *pgx.Conn, full bool, platform statement.Platform,
) ([]statement.StepNote, error) {
	script := statement.Script{Field: r.field, Steps: r.steps, Full: full, Platform: platform}

	if !r.separate {
		script.Begin = func(ctx context.Context, _ *pgconn.PgConn) error {
			return r.begin(ctx, conn, `select pg_catalog.pg_try_advisory_xact_lock($1)`)
		}
		script.End = r.recordEnd

		return statement.RunScript(ctx, conn.PgConn(), script)
	}

	if err := r.begin(ctx, conn, `select pg_catalog.pg_try_advisory_lock($1)`); err != nil {
		return nil, err
	}
	if err := r.record(ctx, conn.PgConn(), nil); err != nil {
		return nil, err
	}

	notes, err := statement.RunScript(ctx, conn.PgConn(), script)
	if err != nil {
		return nil, err
	}

	return notes, r.recordEnd(ctx, conn.PgConn())
}

// begin takes the lock and checks again whether the script is pending.
func (r *run) begin(ctx context.Context, conn *pgx.Conn, lock string) error {
	ok, err := pg.Value[bool](ctx, conn, lock, applyLock)
	if err != nil {
		return err
	}
	if !ok {
		return errLocked
	}

	records, err := readKnown(ctx, conn)
	if err != nil {
		return err
	}

	due, err := records.pending(r.Source, r.outOfOrder)
	if err == nil && !due {
		err = errSkipped
	}

	return err
}

func (r *run) recordEnd(ctx context.Context, conn *pgconn.PgConn) error {
	took := float64(time.Since(r.start).Microseconds()) / 1000
	return r.record(ctx, conn, []byte(strconv.FormatFloat(took, 'f', 3, 64)))
}

// record records the migration in the session that runs its statements. duration is nil until it
// ends.
func (r *run) record(ctx context.Context, conn *pgconn.PgConn, duration []byte) error {
	_, err := conn.ExecParams(ctx, `select socle.record_migration($1, $2, $3, $4, $5)`,
		[][]byte{[]byte(r.Version), []byte(r.Name), []byte(r.Checksum), []byte(r.user.String()), duration},
		nil, nil, nil).Close()
	return pg.Fault(err)
}
