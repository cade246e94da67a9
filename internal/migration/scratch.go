package migration

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
	"github.com/socle-dev/socle/internal/statement"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	maxScratchSize = 1 << 30 // bytes
	sizeInterval   = 250 * time.Millisecond
	dropTimeout    = 30 * time.Second

	// scratchLock, combined with the project's UUID, is a scratch copy's advisory lock key in the
	// platform database, an arbitrary constant.
	scratchLock = 0x50c1e_5c7a
)

// withScratch runs f with a project's empty scratch copy and drops the copy. It waits while another
// request for the account has one.
func (s *Service) withScratch(
	ctx context.Context, p *projectdb.Project, f func(context.Context, scratch) error,
) error {
	place, err := s.scratches.Acquire(ctx, p.Key(ctx), 1)
	if err != nil {
		return err
	}
	defer place.Release()

	c, placed := s.lifecycle.Scratch(p.UUID), map[string]string{}
	_, err = s.lifecycle.Store.DB().WithLock(ctx, pg.LockBlocking, lockKey(p.UUID), func() (err error) {
		defer func() {
			dropCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTimeout)
			defer cancel()

			err = errors.Join(err, c.Drop(dropCtx))
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

			extensions, err := projectdb.Extensions(ctx, p.Trusted())
			if err != nil {
				return err
			}
			for _, e := range extensions {
				placed[e.Name] = e.Schema
			}

			return c.CreateEmpty(ctx, provided(extensions))
		}); err != nil {
			return err
		}

		return s.limitSize(ctx, c, func(ctx context.Context) error {
			conn, err := c.ConnectOwner(ctx)
			if err != nil {
				return err
			}
			defer func() { statement.EndSession(ctx, conn.PgConn(), ctx.Err() != nil) }()

			return f(ctx, scratch{c, conn, placed})
		})
	})

	return err
}

// provided returns the extensions that an operator has installed. Migrations do not contain them.
func provided(extensions []projectdb.Extension) []projectdb.Extension {
	return slices.DeleteFunc(extensions, func(e projectdb.Extension) bool {
		return slices.Contains(schema.AllowedExtensions, e.Name)
	})
}

func lockKey(project uuid.UUID) int64 {
	return int64(binary.BigEndian.Uint64(project[8:])) ^ scratchLock // random bits of a UUIDv7
}

// errTooLarge reports that a scratch copy exceeds its size.
var errTooLarge = errors.New("the scratch copy is too large")

// limitSize runs f while the copy does not exceed its maximum size.
func (s *Service) limitSize(ctx context.Context, c *lifecycle.Copy, f func(context.Context) error) error {
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	done := make(chan struct{})
	go func() {
		defer close(done)

		for range tick.Every(within, sizeInterval) {
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

// scratch is a scratch copy and its owner's session.
type scratch struct {
	*lifecycle.Copy
	conn   *pgx.Conn
	placed map[string]string // schemas of the project's extensions, by their names
}

// apply applies a script, and resets the session for the next one.
func (c scratch) apply(ctx context.Context, script script) error {
	platform := func(ctx context.Context, f func(tx pgx.Tx) error) error {
		conn, err := c.ConnectTrusted(ctx)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))

		return pg.InTx(ctx, conn, f)
	}

	if _, err := statement.RunScript(ctx, c.conn.PgConn(), script.forScratch(platform, c.placed)); err != nil {
		return err
	}

	return c.reset(ctx)
}

// reset resets the session.
func (c scratch) reset(ctx context.Context) error { return pg.Reset(ctx, c.conn) }

// applyAll applies the files.
func (c scratch) applyAll(ctx context.Context, scripts []script) error {
	for _, script := range scripts {
		if err := c.apply(ctx, script); err != nil {
			return script.blame(err)
		}
	}

	return nil
}

// DropOrphans drops the scratch copies that a killed server left behind.
func (s *Service) DropOrphans(ctx context.Context) error {
	names, err := pg.Values[string](ctx, s.lifecycle.Store.DB().Querier(),
		`select datname::text from pg_database where datname ~ @pattern`,
		pgx.StrictNamedArgs{"pattern": lifecycle.ScratchDatabases})

	errs := []error{err}
	for _, name := range names {
		project, ok := s.lifecycle.Registry.ProjectOf(name)
		if !ok {
			continue
		}

		if _, err := s.lifecycle.Store.ProjectStatus(ctx, project); err != nil { // another install's copy
			errs = append(errs, fault.Ignore(err, fault.NotFound))
			continue
		}

		_, err := s.lifecycle.Store.DB().WithLock(ctx, pg.LockTry, lockKey(project), func() error {
			return s.lifecycle.DropOrphan(ctx, project, name)
		})
		errs = append(errs, err)
	}

	return errors.Join(errs...)
}
