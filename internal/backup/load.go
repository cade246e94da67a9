package backup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/backup/archive"
	"github.com/socle-dev/socle/internal/backup/pgtool"
	"github.com/socle-dev/socle/internal/namespace"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

// platformTable is a platform table in a project's database.
type platformTable struct {
	Schema, Name string
	Columns      []string
}

// loadPlatform loads the platform tables' data and nothing else. The trusted login copies rows with
// this package's statements; pg_restore only extracts them from the dump. Files get new blobs,
// since the old ones belong to the database being replaced. In a new project forms get new UUIDs.
func (s *Service) loadPlatform(
	ctx context.Context, conn *pgx.Conn, project uuid.UUID, manifest archive.Manifest, p restorePlan, newProject bool,
) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		tables, err := emptyTables(ctx, tx)
		if err != nil {
			return err
		}

		if err := s.readPart(ctx, DumpKey(manifest.Project, manifest.Backup), func(r io.Reader) error {
			cmd, closeFiles, err := s.tools.RestoreCommand(ctx, pgtool.Connection{}, useList(p.platform),
				"--data-only", "--file=-")
			if err != nil {
				return err
			}
			defer closeFiles()

			cmd.Stdin = r
			return pgtool.Run(cmd, func(out io.Reader) error {
				return load(ctx, tx, bufio.NewReaderSize(out, scriptBufferSize), tables)
			})
		}); err != nil {
			return err
		}

		if err := s.prepareRows(ctx, tx); err != nil {
			return err
		}
		if err := s.projects.RestoreVaultKey(ctx, tx, manifest.Project, project); err != nil {
			return err
		}
		if err := s.projects.RestoreFunctionSecrets(ctx, tx, manifest.Project, project); err != nil {
			return err
		}
		if manifest.Project != project {
			if err := s.detachRows(ctx, tx); err != nil {
				return err
			}
		}
		if newProject || manifest.Imported() {
			return s.renewRows(ctx, tx, project, newProject)
		}

		return nil
	})
}

// emptyTables deletes the platform tables' rows and returns the tables. A new copy has few rows:
// DELETE is faster than TRUNCATE, which replaces all table and index files. Triggers and foreign
// keys stay disabled until the transaction ends, since the rows passed them when they were written.
func emptyTables(ctx context.Context, tx pgx.Tx) (map[string]platformTable, error) {
	if _, err := tx.Exec(ctx, "set local session_replication_role = replica"); err != nil {
		return nil, err
	}

	all, err := pg.All[platformTable](ctx, tx, `
		select n.nspname as schema, c.relname as name, array_agg(a.attname::text order by a.attnum) as columns
		from pg_class c
		join pg_namespace n on n.oid = c.relnamespace
		join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
		where c.relkind = 'r' and (n.nspname = any(@schemas) or (n.nspname = any(@services)
				and n.nspowner = (select nspowner from pg_namespace where nspname = @own)))
			and not (n.nspname = @own and c.relname = any(@bookkeeping))
		group by 1, 2 order by 1, 2`, pgx.StrictNamedArgs{
		"schemas": namespace.Platform, "services": namespace.Services, "own": projectdb.Schema,
		"bookkeeping": projectdb.BookkeepingTables,
	})
	if err != nil {
		return nil, err
	}

	tables := map[string]platformTable{}
	var statements strings.Builder
	for _, t := range all {
		if projectdb.IsPolicyTable(t.Schema, t.Name) {
			continue
		}

		tables[t.Schema+"."+t.Name] = t
		statements.WriteString("delete from " + pg.Quote(t.Schema, t.Name) + ";")
	}

	_, err = tx.Conn().PgConn().Exec(ctx, statements.String()).ReadAll()
	return tables, err
}

var copyStatement = regexp.MustCompile(`^COPY (\w+)\.(\w+) \(([\w", ]+)\) FROM stdin;\n$`)

// load reads pg_restore's script and copies the rows into their tables.
func load(ctx context.Context, tx pgx.Tx, script *bufio.Reader, tables map[string]platformTable) error {
	for {
		line, err := readLine(script)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}

		match := copyStatement.FindStringSubmatch(line)
		if match == nil {
			continue // settings, comments
		}

		t, ok := tables[match[1]+"."+match[2]]
		if !ok {
			return fmt.Errorf("%w: unknown table %s.%s", archive.ErrDamaged, match[1], match[2])
		}

		columns := strings.Split(strings.ReplaceAll(match[3], `"`, ""), ", ")
		for i, column := range columns {
			if !slices.Contains(t.Columns, column) {
				return fmt.Errorf("%w: table %s.%s has no column %s", archive.ErrDamaged, t.Schema, t.Name, column)
			}
			columns[i] = pg.Quote(column)
		}

		sql := "copy " + pg.Quote(t.Schema) + "." + pg.Quote(t.Name) + " (" + strings.Join(columns, ", ") +
			") from stdin"
		if _, err := tx.Conn().PgConn().CopyFrom(ctx, &rowReader{r: script, lineStart: true}, sql); err != nil {
			return err
		}
	}
}

// scriptBufferSize is the size in bytes of the buffer for reading pg_restore's script.
const scriptBufferSize = 64 << 10

// maxLine is the number of bytes kept from a script line. COPY statements are shorter.
const maxLine = 1 << 20

// readLine reads a line and returns its first maxLine bytes.
func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part[:min(len(part), maxLine-len(line))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return string(line), err
		}
	}
}

// rowReader reads rows up to the line that terminates them.
type rowReader struct {
	r         *bufio.Reader
	buf       []byte
	lineStart bool // at a line start
	atEnd     bool
}

func (c *rowReader) Read(b []byte) (int, error) {
	if len(c.buf) == 0 && !c.atEnd {
		line, err := c.r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}

		if c.atEnd = c.lineStart && string(line) == "\\.\n"; !c.atEnd {
			c.buf = line // valid until the next read
		}

		c.lineStart = err == nil
	}

	if c.atEnd {
		return 0, io.EOF
	}

	n := copy(b, c.buf)
	c.buf = c.buf[n:]

	return n, nil
}
