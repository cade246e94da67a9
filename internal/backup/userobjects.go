package backup

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/backup/archive"
	"github.com/socle-dev/socle/internal/backup/pgtool"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgdump"
)

// maxLoadRounds bounds how often entries that failed are tried again. An entry can need another one
// that follows in the dump, if a function body names it.
const maxLoadRounds = 10

// restoreUserObjects restores the user's objects as the owner. It executes user code. It returns
// the entries that PostgreSQL rejects.
//
// Triggers, foreign keys, indexes and materialized views follow when all rows are loaded, or no
// more can be.
func (s *Service) restoreUserObjects(
	ctx context.Context, c *lifecycle.Copy, manifest archive.Manifest, p restorePlan,
) ([]pgdump.Failure, error) {
	conn, err := c.ConnectOwner(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	loader := &pgdump.Loader{Conn: conn.PgConn(), WidePath: widePaths(p.user), HoldPostData: true}
	failures, err := s.loadInRounds(ctx, loader, manifest, p.user, false)
	if err != nil || len(loader.Held) == 0 {
		return failures, err
	}

	postData := loader.Held
	loader.HoldPostData = false
	// A check may read a materialized view, which is filled again later.
	if slices.ContainsFunc(failures, isRowFailure) {
		views := slices.DeleteFunc(slices.Clone(postData), func(e pgdump.Entry) bool {
			return e.Desc != "MATERIALIZED VIEW DATA"
		})
		failures, err = s.loadInRounds(ctx, loader, manifest, append(entriesOf(failures), views...), true)
		if err != nil {
			return nil, err
		}
	}

	var rows, rest []pgdump.Failure
	for _, f := range failures {
		switch {
		case isRowFailure(f):
			rows = append(rows, f)
		case !f.Entry.PostData:
			rest = append(rest, f)
		}
	}

	failures, err = s.loadInRounds(ctx, loader, manifest, append(entriesOf(rest), postData...), false)
	return append(rows, failures...), err
}

// isRowFailure reports whether a table's rows failed to load.
func isRowFailure(f pgdump.Failure) bool { return f.Entry.Desc == "TABLE DATA" }

func entriesOf(failures []pgdump.Failure) []pgdump.Entry {
	entries := make([]pgdump.Entry, len(failures))
	for i, f := range failures {
		entries[i] = f.Entry
	}

	return entries
}

// loadInRounds executes entries, and those that fail again until none of them succeeds.
func (s *Service) loadInRounds(
	ctx context.Context, l *pgdump.Loader, manifest archive.Manifest, entries []pgdump.Entry, retry bool,
) ([]pgdump.Failure, error) {
	for round := 0; ; round++ {
		failures, err := s.loadEntries(ctx, l, manifest, entries, retry || round > 0)
		if err != nil {
			return nil, pg.Fault(err)
		}

		stuck := round > 0 && len(failures) == len(entries)
		if len(failures) == 0 || stuck || round == maxLoadRounds {
			return failures, nil
		}

		entries = entriesOf(failures)
	}
}

// loadEntries executes the statements of entries, which pg_restore prints.
func (s *Service) loadEntries(
	ctx context.Context, l *pgdump.Loader, manifest archive.Manifest, entries []pgdump.Entry, retry bool,
) (failures []pgdump.Failure, err error) {
	if len(entries) == 0 {
		return nil, nil
	}

	err = s.readPart(ctx, DumpKey(manifest.Project, manifest.Backup), func(r io.Reader) error {
		cmd, closeFiles, err := s.tools.RestoreCommand(ctx, pgtool.Connection{}, useList(entries),
			"--no-owner", "--no-privileges", "--enable-row-security", "--verbose", "--file=-")
		if err != nil {
			return err
		}
		defer closeFiles()

		cmd.Stdin = r
		return pgtool.Run(cmd, func(out io.Reader) error {
			if failures, err = l.Load(ctx, out, entries, retry); err != nil {
				return err
			}

			_, err = io.Copy(io.Discard, out) // what follows the end of the script
			return err
		})
	})

	return failures, err
}

// grantPrivileges executes the privilege statements of a dump as the owner. It skips statements for
// roles that this server lacks, such as those of another project. It returns the entries that
// PostgreSQL rejects.
func grantPrivileges(ctx context.Context, c *lifecycle.Copy, entries []pgdump.Entry) ([]pgdump.Failure, error) {
	conn, err := c.ConnectOwner(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	var failures []pgdump.Failure
	for _, e := range entries {
		_, err := conn.PgConn().Exec(ctx, e.Definition).ReadAll()
		if isRoleError(err) {
			err = nil
			for _, one := range strings.SplitAfter(e.Definition, ";\n") {
				if _, roleErr := conn.PgConn().Exec(ctx, one).ReadAll(); roleErr != nil && !isRoleError(roleErr) {
					err = roleErr
				}
			}
		}

		cause, ok := errors.AsType[*pgconn.PgError](err)
		switch {
		case err == nil:
		case !ok || conn.IsClosed():
			return nil, pg.Fault(err)
		default:
			failures = append(failures, pgdump.Failure{Entry: e, Statement: e.Definition, Cause: cause})
		}
	}

	return failures, nil
}

// isRoleError reports whether a statement failed because a role does not exist or belongs to
// another project.
func isRoleError(err error) bool {
	return pg.State(err) == "42704" || pg.State(err) == "42501" // undefined_object, insufficient_privilege
}

// widePaths returns the search paths for entries that fail under the project's path: that path, the
// entry's schema, and the other schemas. An application can set its schema in its sessions' path. A
// schema that shares a name with another one is left out, since the path would decide between the
// two.
func widePaths(entries []pgdump.Entry) func(pgdump.Entry) string {
	schemas := map[string][]string{} // by object name
	for _, e := range entries {
		if !slices.Contains(lookedUpKinds, e.Desc) || slices.Contains(schemas[objectName(e)], e.Namespace) {
			continue
		}
		schemas[objectName(e)] = append(schemas[objectName(e)], e.Namespace)
	}

	ambiguous, others := map[string]bool{"public": true, "extensions": true, "": true}, []string(nil)
	for _, names := range schemas {
		for _, schema := range names {
			others = append(others, schema)
			if len(names) > 1 {
				ambiguous[schema] = true
			}
		}
	}

	slices.Sort(others)
	others = slices.DeleteFunc(slices.Compact(others), func(schema string) bool { return ambiguous[schema] })

	return func(e pgdump.Entry) string {
		path := pgdump.SearchPath
		if e.Namespace != "" {
			path += ", " + pg.Quote(e.Namespace)
		}
		for _, schema := range others {
			path += ", " + pg.Quote(schema)
		}

		return path
	}
}

// lookedUpKinds are the entry kinds that a function body can name without a schema.
var lookedUpKinds = []string{"TABLE", "VIEW", "MATERIALIZED VIEW", "FOREIGN TABLE", "SEQUENCE", "FUNCTION", "PROCEDURE",
	"AGGREGATE", "TYPE", "DOMAIN", "COLLATION"}

// objectName returns an entry's name without arguments.
func objectName(e pgdump.Entry) string {
	name, _, _ := strings.Cut(e.Tag, "(")
	return name
}
