package backup

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"math/bits"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/socle-dev/socle/internal/backup/archive"
	"github.com/socle-dev/socle/internal/backup/pgtool"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/namespace"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgdump"
)

// compare fails unless each restored table in a copy has the manifest's row count. It skips tables
// that PostgreSQL has not created again or whose rows it has rejected.
func (s *Service) compare(
	ctx context.Context, c *lifecycle.Copy, manifest archive.Manifest, failures []pgdump.Failure,
) error {
	conn, err := c.ConnectDump(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{
		IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly,
	}, func(tx pgx.Tx) error {
		tables, err := countRows(ctx, tx)
		if err != nil {
			return err
		}

		got, want := s.rows(tables), s.rows(manifest.Tables)
		for _, f := range failures {
			if f.Entry.Desc == "TABLE" || f.Entry.Desc == "TABLE DATA" {
				table := archive.Table{Schema: f.Entry.Namespace, Name: f.Entry.Tag}
				delete(got, table)
				delete(want, table)
			}
		}

		if !maps.Equal(got, want) {
			return fmt.Errorf("restored row counts: got %v, want %v", got, want)
		}

		return nil
	})
}

// rows returns the restored tables' row counts.
func (s *Service) rows(tables []archive.Table) map[archive.Table]int64 {
	all := map[archive.Table]int64{}
	for _, t := range tables {
		if !isRestored(s.Subjects, t.Schema, t.Name) {
			continue
		}
		all[archive.Table{Schema: t.Schema, Name: t.Name}] = t.Rows
	}

	return all
}

// compareRows fails with Unprocessable unless the user's tables in a copy have exactly the dump's
// rows, in any order. It skips the platform's tables, which a restore changes on purpose, and dumps
// with an unknown time zone, whose times cannot be compared.
func (s *Service) compareRows(
	ctx context.Context, c *lifecycle.Copy, manifest archive.Manifest, entries []pgdump.Entry,
) error {
	if manifest.TimeZone == "" {
		return nil
	}

	conn, err := c.ConnectDump(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	if _, err := conn.PgConn().Exec(ctx, asDumped(manifest)).ReadAll(); err != nil {
		return err
	}

	counts := s.rows(manifest.Tables)
	entries = slices.DeleteFunc(slices.Clone(entries), func(e pgdump.Entry) bool {
		_, ok := counts[archive.Table{Schema: e.Namespace, Name: e.Tag}]
		// extension tables have rows that are in no dump
		return e.Desc != "TABLE DATA" || slices.Contains(namespace.Platform, e.Namespace) || !ok
	})
	if len(entries) == 0 {
		return nil
	}

	return s.readPart(ctx, DumpKey(manifest.Project, manifest.Backup), func(r io.Reader) error {
		cmd, closeFiles, err := s.tools.RestoreCommand(ctx, pgtool.Connection{}, useList(entries),
			"--data-only", "--file=-")
		if err != nil {
			return err
		}
		defer closeFiles()

		cmd.Stdin = r
		return pgtool.Run(cmd, func(out io.Reader) error {
			script := bufio.NewReaderSize(out, scriptBufferSize)
			for _, e := range entries {
				if err := compareTable(ctx, conn, e, script); err != nil {
					return err
				}
			}

			_, err := io.Copy(io.Discard, script)
			return err
		})
	})
}

// asDumped returns settings under which a session formats values as pg_dump did.
func asDumped(manifest archive.Manifest) string {
	return "set timezone = " + pg.Literal(manifest.TimeZone) +
		"; set datestyle = iso; set intervalstyle = postgres; set extra_float_digits = 3; " +
		"set search_path = ''; set statement_timeout = 0; set row_security = off"
}

// compareTable compares a table's rows with the next rows in pg_restore's output.
func compareTable(ctx context.Context, conn *pgx.Conn, e pgdump.Entry, script *bufio.Reader) error {
	sql, err := copyOut(e.Copy)
	if err != nil {
		return err
	}

	if err := skipPast(script, e.Copy); err != nil {
		return fmt.Errorf("read rows of %s.%s: %w", e.Namespace, e.Tag, err)
	}

	want, got := &lineDigest{hash: sha256.New()}, &lineDigest{hash: sha256.New()}
	both, reading := errgroup.WithContext(ctx)
	both.Go(func() error {
		_, err := io.Copy(want, &rowReader{r: script, lineStart: true})
		return err
	})

	both.Go(func() error {
		return pg.CopyOut(reading, conn, sql, func(row io.Reader) error {
			_, err := io.Copy(got, row)
			return err
		})
	})

	if err := both.Wait(); err != nil {
		return err
	}

	if want.sum != got.sum {
		return fault.New(fault.Unprocessable, "the restored rows of table %s.%s differ from the backup",
			e.Namespace, e.Tag)
	}

	return nil
}

// skipPast reads a script up to and including a statement, which can span lines.
func skipPast(script *bufio.Reader, statement string) error {
	first, rest, _ := strings.Cut(statement, "\n")
	for {
		line, err := readLine(script)
		if err != nil {
			return fmt.Errorf("%w: COPY statement not found", errors.Join(archive.ErrDamaged, err))
		}

		if line == first+"\n" {
			break
		}
	}

	following := make([]byte, len(rest))
	if _, err := io.ReadFull(script, following); err != nil || string(following) != rest {
		return fmt.Errorf("%w: COPY statement continues with %q", archive.ErrDamaged, following)
	}

	return nil
}

const identifier = `(?:"(?:[^"]|"")+"|[a-z_][a-z0-9_$]*)`

var (
	copyIn = regexp.MustCompile(`^COPY (` + identifier + `)\.(` + identifier + `) (?:\((` + identifier + `(?:, ` +
		identifier + `)*)\))? FROM stdin;\n$`)
	identifiers = regexp.MustCompile(identifier)
)

// copyOut converts pg_dump's COPY ... FROM statement to COPY ... TO STDOUT.
func copyOut(statement string) (string, error) {
	match := copyIn.FindStringSubmatch(statement)
	if match == nil {
		return "", fmt.Errorf("%w: not a COPY statement: %q", pgdump.ErrTOC, statement)
	}

	columns := identifiers.FindAllString(match[3], -1)
	for i, column := range columns {
		columns[i] = requote(column)
	}

	sql := "copy " + requote(match[1]) + "." + requote(match[2])
	if len(columns) > 0 {
		sql += " (" + strings.Join(columns, ", ") + ")"
	}

	return sql + " to stdout", nil
}

// requote quotes an identifier, which may be quoted already.
func requote(name string) string {
	if inside, ok := strings.CutPrefix(name, `"`); ok {
		name = strings.ReplaceAll(strings.TrimSuffix(inside, `"`), `""`, `"`)
	}
	return pg.Quote(name)
}

// lineDigest computes an order-independent checksum of lines. It adds the hashes, so that two equal
// lines do not cancel out.
type lineDigest struct {
	hash hash.Hash // for the current, incomplete line
	sum  [4]uint64
}

func (l *lineDigest) Write(b []byte) (int, error) {
	for line := range bytes.Lines(b) {
		l.hash.Write(line)
		if line[len(line)-1] == '\n' {
			l.addLine()
		}
	}

	return len(b), nil
}

func (l *lineDigest) addLine() {
	var sum [sha256.Size]byte
	l.hash.Sum(sum[:0])
	l.hash.Reset()
	carry := uint64(0)
	for i := range l.sum {
		l.sum[i], carry = bits.Add64(l.sum[i], binary.LittleEndian.Uint64(sum[8*i:]), carry)
	}
}
