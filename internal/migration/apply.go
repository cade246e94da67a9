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
	"github.com/socle-dev/socle/internal/sqllex"
	"github.com/socle-dev/socle/internal/statement"
	"github.com/socle-dev/socle/internal/tick"
)

// Options change how files are applied.
type Options struct {
	OutOfOrder bool // apply a file although a newer one is applied
	RecordOnly bool // record files without running them
}

// ApplyResult is the result of applying files.
type ApplyResult struct {
	Applied        []Migration `json:"applied" doc:"The migrations that this request applied, in order."`
	AlreadyApplied int         `json:"alreadyApplied" doc:"Number of migrations of the request that were applied before."`
}

// applyLock is the key of the advisory lock under which a migration runs in its project's database,
// an arbitrary constant of this package. User code can take the lock too, which delays only its own
// project.
const applyLock = 0x50c1e_4d16

const lockInterval = 200 * time.Millisecond // between attempts to take applyLock

var errLocked = errors.New("another migration of the project runs")

// Apply applies those of the files that a project has not applied yet, each in its own transaction,
// until one fails. It waits for another migration of the project.
//
// It fails with Conflict, code migration_changed, if a file differs from the one that was applied,
// and code out_of_order, if a newer one is applied. It fails with Unprocessable on the file that
// PostgreSQL rejects; the member applied has the versions that it applied before. It fails with
// TooMany if too many requests are in service.
func (s *Service) Apply(
	ctx context.Context, p *projectdb.Project, user uuid.UUID, files []Source, o Options,
) (ApplyResult, error) {
	result := ApplyResult{Applied: []Migration{}}

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

	recorded, err := readKnown(ctx, p.Trusted())
	for _, script := range pending {
		result.Applied = append(result.Applied, recorded[script.Version])
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
	bounded, cancel := context.WithTimeout(ctx, ApplyTimeout)
	defer cancel()

	session := &ownerSession{pool: p.Owner()}
	defer func() { session.end(bounded) }()

	for _, script := range scripts {
		m, err := script.applyLocked(bounded, p, session, user, o)
		if err != nil && bounded.Err() != nil && ctx.Err() == nil {
			err = statement.TimeoutFault(script.field, ApplyTimeout.String(), err)
		}

		if err != nil {
			e, ok := errors.AsType[*fault.Error](script.blame(err))
			if !ok {
				return err
			}

			versions := []string{}
			for _, done := range result.Applied {
				versions = append(versions, done.Version)
			}

			e.Extra["applied"] = versions
			return e
		}

		if m == nil { // applied by another request meanwhile
			result.AlreadyApplied++
			continue
		}

		result.Applied = append(result.Applied, *m)
	}

	return nil
}

// applyLocked applies a script when no other migration of the project runs. It returns nil if
// another request has applied it meanwhile.
func (s script) applyLocked(
	ctx context.Context, p *projectdb.Project, session *ownerSession, user uuid.UUID, o Options,
) (*Migration, error) {
	for range tick.Poll(ctx, lockInterval) { // without a connection
		m, err := s.apply(ctx, p, session, user, o)
		if !errors.Is(err, errLocked) {
			return m, err
		}
	}

	return nil, fault.New(fault.Conflict, "another migration of the project runs").
		WithCode("busy").WithCause(errLocked)
}

// apply runs a script on a session of the owner. It fails with errLocked if another migration of
// the project runs.
func (s script) apply(
	ctx context.Context, p *projectdb.Project, session *ownerSession, user uuid.UUID, o Options,
) (*Migration, error) {
	full, err := statement.CheckQuota(p)
	if err != nil {
		return nil, err
	}
	if full && s.separate {
		return nil, projectdb.ErrOverQuota
	}

	platform := func(ctx context.Context, f func(tx pgx.Tx) error) error { return pg.InTx(ctx, p.Trusted(), f) }
	if !s.separate {
		if err := s.createExtensions(ctx, platform); err != nil {
			return nil, err
		}
	}

	r := run{script: s, user: user, outOfOrder: o.OutOfOrder, start: time.Now()}
	err = session.use(ctx, func(conn *pgx.Conn) error { return r.run(ctx, conn, full, platform) })
	if errors.Is(err, errSkipped) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	m, err := pg.One[Migration](context.WithoutCancel(ctx), p.Trusted(),
		`select `+migrationColumns+` from socle.applied_migrations where version = @version`,
		pgx.StrictNamedArgs{"version": s.Version})
	return &m, err
}

// ownerSession is a session of the owner that scripts share, since PostgreSQL plans the functions
// of the event triggers once per session. It begins when it is used.
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

// run is a run of a script on a session of the owner.
type run struct {
	script
	user       uuid.UUID
	outOfOrder bool
	start      time.Time
}

// errSkipped ends a run of a script that is applied already.
var errSkipped = errors.New("applied already")

func (r *run) run(
	ctx context.Context, conn *pgx.Conn, full bool,
	platform func(context.Context, func(pgx.Tx) error) error,
) error {
	script := statement.Script{Field: r.field, Statements: r.statements, Full: full}

	if r.separate {
		script.Instead = func(ctx context.Context, s sqllex.Statement) (bool, error) {
			return r.runExtension(ctx, s, platform)
		}

		err := r.begin(ctx, conn, `select pg_catalog.pg_try_advisory_lock($1)`)
		if err == nil {
			err = r.record(ctx, conn.PgConn(), nil)
		}
		if err == nil {
			err = statement.RunScript(ctx, conn.PgConn(), script)
		}
		if err == nil {
			err = r.recordEnd(ctx, conn.PgConn())
		}

		return err
	}

	script.Instead = skipExtension
	script.Begin = func(ctx context.Context, _ *pgconn.PgConn) error {
		return r.begin(ctx, conn, `select pg_catalog.pg_try_advisory_xact_lock($1)`)
	}
	script.End = r.recordEnd

	return statement.RunScript(ctx, conn.PgConn(), script)
}

// begin takes the lock and checks again whether the script is pending.
func (r *run) begin(ctx context.Context, conn *pgx.Conn, lock string) error {
	locked, err := pg.Value[bool](ctx, conn, lock, applyLock)
	if err != nil {
		return err
	}
	if !locked {
		return errLocked
	}

	applied, err := readKnown(ctx, conn)
	if err != nil {
		return err
	}

	due, err := applied.pending(r.Source, r.outOfOrder)
	if err == nil && !due {
		err = errSkipped
	}

	return err
}

func (r *run) recordEnd(ctx context.Context, conn *pgconn.PgConn) error {
	took := float64(time.Since(r.start).Microseconds()) / 1000
	return r.record(ctx, conn, []byte(strconv.FormatFloat(took, 'f', 3, 64)))
}

// record records the migration in the session of its statements. duration is nil until it ends.
func (r *run) record(ctx context.Context, conn *pgconn.PgConn, duration []byte) error {
	_, err := conn.ExecParams(ctx, `select socle.record_migration($1, $2, $3, $4, $5)`,
		[][]byte{[]byte(r.Version), []byte(r.Name), []byte(r.Checksum), []byte(r.user.String()), duration},
		nil, nil, nil).Close()
	return pg.Fault(err)
}
