package migration

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/socle-dev/socle/internal/backup/pgtool"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgdump"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
	"github.com/socle-dev/socle/internal/statement"
)

// SchemaDiff is the difference between the files and the schema of a project.
type SchemaDiff struct {
	Files    []string      `json:"files" doc:"The SQL of the next migrations, in order; usually one. Empty if nothing differs."`
	Warnings []DiffWarning `json:"warnings"`
}

// DiffWarning is about a statement that destroys or blocks something, or about a difference that no
// statement removes.
type DiffWarning struct {
	Statement string `json:"statement" doc:"Empty for a difference that no statement removes."`
	Message   string `json:"message" example:"destroys data"`
}

const (
	// maxRounds is the number of times that the scratch copy is changed. The first round creates
	// objects; the second one corrects their default privileges.
	maxRounds = 5

	maxScratchSize  = 1 << 30 // bytes
	sizeInterval    = 250 * time.Millisecond
	dropTimeout     = 30 * time.Second
	dumpLockTimeout = 2 * time.Second // for pg_dump, which locks all tables

	// scratchLock, combined with the UUID of the project, is the key of the advisory lock of a
	// scratch copy in the platform database, an arbitrary constant of this package.
	scratchLock = 0x50c1e_5c7a
)

// Diff returns the migrations that turn the schema of the files into that of a project. It applies
// the files to a scratch copy, of which a project has one at a time.
//
// It fails with Unprocessable if a file can't be applied or if the schema is too large, and with
// Conflict, code busy, if a table of the project is locked. It fails with TooMany if too many
// requests are in service.
func (s *Service) Diff(ctx context.Context, p *projectdb.Project, files []Source) (SchemaDiff, error) {
	scripts, err := parse(files)
	if err != nil {
		return SchemaDiff{}, err
	}

	if _, err := s.lifecycle.Store.GetProject(ctx, p.UUID); err != nil {
		return SchemaDiff{}, err
	}

	release, err := s.admit(ctx, p)
	if err != nil {
		return SchemaDiff{}, err
	}
	defer release()

	if err := p.InTx(ctx, func(pgx.Tx) error { return nil }); err != nil { // the audit entry
		return SchemaDiff{}, err
	}

	bounded, cancel := context.WithTimeout(ctx, DiffTimeout)
	defer cancel()

	var d SchemaDiff
	err = s.withScratch(bounded, p, func(ctx context.Context, c scratch) error {
		d, err = s.diff(ctx, p, c, scripts)
		return err
	})
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		err = statement.TimeoutFault("migrations", DiffTimeout.String(), err)
	}

	return d, err
}

// withScratch runs f with an empty scratch copy of a project and drops the copy. It waits while
// another request of the account has one.
func (s *Service) withScratch(
	ctx context.Context, p *projectdb.Project, f func(context.Context, scratch) error,
) error {
	place, err := s.scratches.Acquire(ctx, p.Key(ctx), 1)
	if err != nil {
		return err
	}
	defer place.Release()

	c := s.lifecycle.Registry.Scratch(p.UUID)
	_, err = s.lifecycle.Store.DB().WithLock(ctx, pg.LockBlocking, lockKey(p.UUID), func() (err error) {
		defer func() {
			after, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTimeout)
			defer cancel()

			err = errors.Join(err, c.Drop(after))
		}()

		// A project that is being removed gets no new database, which the removal would miss.
		if err := s.lifecycle.WithLock(ctx, p.UUID, func() error {
			status, err := s.lifecycle.Store.ProjectStatus(ctx, p.UUID)
			if err == nil && status != platform.Active {
				err = fault.New(fault.Conflict, "the project is not active").WithCode("not_active")
			}
			if err != nil {
				return err
			}

			provided, err := providedExtensions(ctx, p)
			if err != nil {
				return err
			}

			return c.CreateEmpty(ctx, provided)
		}); err != nil {
			return err
		}

		return s.limitSize(ctx, c, func(ctx context.Context) error {
			conn, err := c.ConnectOwner(ctx)
			if err != nil {
				return err
			}
			defer func() { statement.EndSession(ctx, conn.PgConn(), ctx.Err() != nil) }()

			return f(ctx, scratch{c, conn})
		})
	})

	return err
}

// providedExtensions returns the extensions that an operator has installed in a project. They are
// no part of its migrations.
func providedExtensions(ctx context.Context, p *projectdb.Project) ([]projectdb.Extension, error) {
	all, err := projectdb.Extensions(ctx, p.Trusted())
	return slices.DeleteFunc(all, func(e projectdb.Extension) bool {
		return slices.Contains(schema.AllowedExtensions, e.Name)
	}), err
}

func lockKey(project uuid.UUID) int64 {
	return int64(binary.BigEndian.Uint64(project[8:])) ^ scratchLock // random bits of a UUIDv7
}

// errTooLarge reports that a scratch copy exceeds its size.
var errTooLarge = errors.New("the scratch copy is too large")

// limitSize runs f while the copy does not exceed its maximum size.
func (s *Service) limitSize(ctx context.Context, c *projectdb.Copy, f func(context.Context) error) error {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	done := make(chan struct{})
	go func() {
		defer close(done)

		tick := time.NewTicker(sizeInterval)
		defer tick.Stop()

		for {
			select {
			case <-within.Done():
				return
			case <-tick.C:
			}

			var size int64
			err := s.lifecycle.Store.DB().WithConn(within, func(conn *pgx.Conn) (err error) {
				size, err = c.Size(within, conn)
				return err
			})
			if err == nil && size > maxScratchSize {
				cancel(errTooLarge)
			}
		}
	}()

	err := f(within)
	if err != nil && context.Cause(within) == errTooLarge {
		err = fault.OnField(fault.Unprocessable, "migrations", "too_large",
			"must not fill a database of more than %d MB", maxScratchSize>>20).WithCause(err)
	}

	cancel(nil)
	<-done

	return err
}

// scratch is a scratch copy and a session of its owner.
type scratch struct {
	*projectdb.Copy
	conn *pgx.Conn
}

// apply applies a script, and resets the session for the next one.
func (c scratch) apply(ctx context.Context, script script) error {
	trusted := func(ctx context.Context, f func(tx pgx.Tx) error) error {
		conn, err := c.ConnectTrusted(ctx)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))

		return pg.InTx(ctx, conn, f)
	}

	if !script.separate {
		if err := script.createExtensions(ctx, trusted); err != nil {
			return err
		}
	}

	if err := statement.RunScript(ctx, c.conn.PgConn(), script.forScratch(trusted)); err != nil {
		return err
	}

	return pg.Reset(ctx, c.conn)
}

// applyAll applies the files.
func (c scratch) applyAll(ctx context.Context, scripts []script) error {
	for _, script := range scripts {
		if err := c.apply(ctx, script); err != nil {
			return script.blame(err)
		}
	}

	return nil
}

// applyChanges applies changes.
func (c scratch) applyChanges(ctx context.Context, changes []change) error {
	if len(changes) == 0 {
		return nil
	}

	scripts, err := parse([]Source{{Version: "00000000000000", Name: "difference", SQL: fileOf(changes)}})
	if err != nil {
		return err
	}

	err = c.apply(ctx, scripts[0])
	if e := fault.Of(err); err != nil && e.Kind == fault.Unprocessable {
		report, _ := e.Extra["postgres"].(statement.PostgresError)
		f := fault.New(fault.Unprocessable, "the difference can't be written: %s", report.Message).
			WithCode("not_expressible").WithCause(err)
		f.Extra = map[string]any{"sql": scripts[0].SQL, "postgres": report}

		return f
	}

	return err
}

// diff applies the files to the scratch copy, compares the project with it, and changes it until
// nothing differs.
func (s *Service) diff(ctx context.Context, p *projectdb.Project, c scratch, files []script) (SchemaDiff, error) {
	var now, target []pgdump.Entry
	both, working := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		address, password := s.lifecycle.Registry.DumpURL(p.UUID)
		target, err = s.dump(working, p.UUID, address, password)

		return err
	})

	both.Go(func() (err error) {
		if err := c.applyAll(working, files); err != nil {
			return err
		}

		now, err = s.dumpScratch(working, c)
		return err
	})

	if err := both.Wait(); err != nil {
		return SchemaDiff{}, err
	}

	var all difference
	for round := 1; ; round++ {
		d := compare(now, target)
		all.unresolved = d.unresolved
		if d.empty() || round > maxRounds {
			for _, left := range slices.Concat(d.values, d.changes, d.extensions) {
				all.unresolved = append(all.unresolved, left.sql)
			}

			return all.files(), nil
		}

		for _, part := range [][]change{d.values, d.changes, d.extensions} {
			if err := c.applyChanges(ctx, part); err != nil {
				return SchemaDiff{}, err
			}
		}

		all.values = append(all.values, d.values...)
		all.changes = append(all.changes, d.changes...)
		all.extensions = append(all.extensions, d.extensions...)

		var err error
		if now, err = s.dumpScratch(ctx, c); err != nil {
			return SchemaDiff{}, err
		}
	}
}

// dumpScratch returns the user's objects in a scratch copy.
func (s *Service) dumpScratch(ctx context.Context, c scratch) ([]pgdump.Entry, error) {
	address, password := c.DumpURL()
	return s.dump(ctx, c.Project, address, password)
}

// dump returns the user's objects in a database of a project.
func (s *Service) dump(ctx context.Context, project uuid.UUID, address, password string) ([]pgdump.Entry, error) {
	cmd, done, err := s.tools.Command(ctx, pgtool.Connection{Address: address, Password: password}, "pg_dump",
		"--format=custom", "--schema-only", "--encoding=UTF8", "--compress=0",
		fmt.Sprintf("--lock-wait-timeout=%d", dumpLockTimeout.Milliseconds()))
	if err != nil {
		return nil, err
	}
	defer done()

	var entries []pgdump.Entry
	err = pgtool.Run(cmd, func(out io.Reader) (err error) {
		entries, err = pgdump.ReadSchema(out)
		_, rest := io.Copy(io.Discard, out)

		return errors.Join(err, rest)
	})
	switch {
	case errors.Is(err, pgdump.ErrLargeSchema):
		return nil, fault.New(fault.Unprocessable, "the project's schema is too large to compare").
			WithCode("too_large").WithCause(err)
	case err != nil && isLocked(err):
		return nil, fault.New(fault.Conflict, "a table of the project is locked").WithCode("busy").WithCause(err)
	}

	return relevant(entries, s.lifecycle.Registry.OwnerLogin(project)), err
}

// isLocked reports whether pg_dump could not lock a table. Its messages are in English.
func isLocked(err error) bool {
	return strings.Contains(err.Error(), "canceling statement due to") && strings.Contains(err.Error(), "LOCK TABLE")
}

// DropOrphans drops the scratch copies that a killed server left behind.
func (s *Service) DropOrphans(ctx context.Context) error {
	names, err := pg.Values[string](ctx, s.lifecycle.Store.DB().Querier(),
		`select datname::text from pg_database where datname ~ @pattern`,
		pgx.StrictNamedArgs{"pattern": projectdb.ScratchDatabases})

	errs := []error{err}
	for _, name := range names {
		project, ok := s.lifecycle.Registry.ProjectOf(name)
		if !ok {
			continue
		}

		if _, err := s.lifecycle.Store.ProjectStatus(ctx, project); err != nil { // of another install
			errs = append(errs, fault.Ignore(err, fault.NotFound))
			continue
		}

		_, err := s.lifecycle.Store.DB().WithLock(ctx, pg.LockTry, lockKey(project), func() error {
			return s.lifecycle.Registry.DropOrphan(ctx, name)
		})
		errs = append(errs, err)
	}

	return errors.Join(errs...)
}
