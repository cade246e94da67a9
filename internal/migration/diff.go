package migration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/socle-dev/socle/internal/backup/pgtool"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pgdump"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
	"github.com/socle-dev/socle/internal/statement"
)

// SchemaDiff is the difference between the files and a project's schema.
type SchemaDiff struct {
	Files       []string      `json:"files" nullable:"false" doc:"The SQL of the next migrations, in order; usually one. Empty if nothing differs."`
	Warnings    []DiffWarning `json:"warnings" nullable:"false"`
	Differences []Difference  `json:"differences" nullable:"false" doc:"What still differs after the files: write these changes by hand."`
}

// DiffWarning is about a statement that destroys or blocks something.
type DiffWarning struct {
	Statement string `json:"statement"`
	Message   string `json:"message" example:"destroys data"`
}

// Difference is an object that no statement in the files makes equal.
type Difference struct {
	Kind    string `json:"kind" example:"type"`
	Name    string `json:"name" example:"public.mood"`
	Message string `json:"message" doc:"What prevents the change."`
}

const (
	// maxRounds is how often the scratch copy is changed. The first round creates objects; the
	// second one corrects their default privileges.
	maxRounds = 6

	dumpLockTimeout = 2 * time.Second // for pg_dump, which locks all tables
)

// Diff returns the migrations that turn the files' schema into a project's. It applies the files to
// a scratch copy, one at a time per project, and changes the copy until nothing differs. What it
// wrote is applied once more, to a second copy, unless the first one has run exactly that.
//
// The copy has the project's default privileges, which a setting opens and no file names. A
// project's first migration has them itself.
//
// It fails with Unprocessable if a file can't be applied or if the schema is too large, and with
// Conflict, code busy, if a table in the project is locked. It fails with TooMany if too many
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

	diffCtx, cancel := context.WithTimeout(ctx, DiffTimeout)
	defer cancel()

	d, err := s.diff(diffCtx, p.UUID, scripts, func(f func(context.Context, scratch) error) error {
		return s.withScratch(diffCtx, p, func(ctx context.Context, c scratch) error {
			if len(files) > 0 {
				if err := schema.CopyDefaultPrivileges(ctx, p.Trusted(), c.conn); err != nil {
					return err
				}
			}

			return f(ctx, c)
		})
	})
	if err != nil && diffCtx.Err() != nil && ctx.Err() == nil {
		err = statement.TimeoutFault("migrations", DiffTimeout.String(), err)
	}

	return d, err
}

// diff is [Service.Diff] for parsed files. within runs a function with an empty scratch copy.
func (s *Service) diff(
	ctx context.Context, project uuid.UUID, files []script, within func(func(context.Context, scratch) error) error,
) (SchemaDiff, error) {
	w := writer{dump: s.dumpScratch}
	err := within(func(ctx context.Context, c scratch) error {
		both, working := errgroup.WithContext(ctx)
		both.Go(func() (err error) {
			address, password := s.lifecycle.Registry.Open(project).DumpURL()
			w.target, err = s.dump(working, project, address, password)

			return err
		})
		both.Go(func() error { return c.applyAll(working, files) })

		if err := both.Wait(); err != nil {
			return err
		}

		return w.write(ctx, c)
	})

	if err == nil && !w.verified {
		err = within(func(ctx context.Context, c scratch) error {
			if err := c.applyAll(ctx, files); err != nil {
				return err
			}
			return w.verify(ctx, c)
		})
	}

	return w.result(), err
}

// dumpScratch returns the user's objects in a scratch copy.
func (s *Service) dumpScratch(ctx context.Context, c scratch) ([]pgdump.Entry, error) {
	address, password := c.DumpURL()
	return s.dump(ctx, c.Project, address, password)
}

// dump returns the user's objects in a project's database.
func (s *Service) dump(ctx context.Context, project uuid.UUID, address, password string) ([]pgdump.Entry, error) {
	cmd, closeFiles, err := s.tools.Command(ctx, pgtool.Connection{Address: address, Password: password}, "pg_dump",
		"--format=custom", "--schema-only", "--encoding=UTF8", "--compress=0",
		fmt.Sprintf("--lock-wait-timeout=%d", dumpLockTimeout.Milliseconds()))
	if err != nil {
		return nil, err
	}
	defer closeFiles()

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
