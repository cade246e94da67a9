package transfer

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
)

// Export is a table's running export. It holds a connection until it is closed.
type Export struct {
	Table  schema.Table
	Format string
	conn   *pgxpool.Conn
	tx     pgx.Tx
	sql    string
}

// OpenExport prepares to export ref's table, or some columns if columns is not empty. spreadsheet
// prefixes text with an apostrophe if a spreadsheet would interpret it as a formula. It fails as
// [schema.HoldTable] does, and with Invalid on columns. The caller must close the export.
func OpenExport(
	ctx context.Context, p *projectdb.Project, ref, format string, columns []string, spreadsheet bool,
) (*Export, error) {
	conn, err := pg.Acquire(ctx, p.Owner())
	if err != nil {
		return nil, err
	}

	e := &Export{Format: format, conn: conn}
	if err := e.open(ctx, p, ref, columns, spreadsheet); err != nil {
		e.Close()
		return nil, err
	}

	return e, nil
}

func (e *Export) open(ctx context.Context, p *projectdb.Project, ref string, names []string, spreadsheet bool) error {
	var err error
	if e.tx, err = e.conn.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly}); err != nil {
		return pg.Fault(err)
	}
	if err := schema.ApplySettings(ctx, e.tx); err != nil {
		return pg.Fault(err)
	}

	table, columns, err := schema.LockTable(ctx, e.tx, p.UUID, ref)
	if err != nil {
		return err
	}

	e.Table = table

	selected, err := selectColumns(columns, names)
	if err != nil {
		return err
	}

	e.sql = selectSQL(table, columns, selected, spreadsheet && e.Format != JSONL)
	return nil
}

// selectColumns returns the columns with the names, in their order, or all columns without names.
func selectColumns(columns []schema.BulkColumn, names []string) ([]schema.BulkColumn, error) {
	if len(names) == 0 {
		return columns, nil
	}

	var selection []schema.BulkColumn
	for i, name := range names {
		at := slices.IndexFunc(columns, func(c schema.BulkColumn) bool { return c.Name == name })
		if at < 0 || slices.Contains(names[:i], name) {
			return nil, fault.OnField(fault.Invalid, "columns", "not_found", "must be distinct columns of the table")
		}

		selection = append(selection, columns[at])
	}

	return selection, nil
}

// selectSQL returns the query for the table's rows in primary key order.
func selectSQL(t schema.Table, all, columns []schema.BulkColumn, spreadsheet bool) string {
	values := make([]string, len(columns))
	for i, c := range columns {
		name := "t." + pg.Quote(c.Name)
		values[i] = name
		if spreadsheet && !c.Plain {
			values[i] = "case when " + name + `::pg_catalog.text ~ '^[-=+@\t\r]' then '''' || ` + name +
				"::pg_catalog.text else " + name +
				"::pg_catalog.text end as " + pg.Quote(c.Name)
		}
	}

	sql := "select " + strings.Join(values, ", ") + " from " + pg.Quote(t.Schema, t.Name) + " t"
	key := slices.DeleteFunc(slices.Clone(all), func(c schema.BulkColumn) bool { return c.Key == 0 })
	slices.SortFunc(key, func(a, b schema.BulkColumn) int { return cmp.Compare(a.Key, b.Key) })

	for i, c := range key {
		separator := ", "
		if i == 0 {
			separator = " order by "
		}

		sql += separator + "t." + pg.Quote(c.Name)
	}

	return sql
}

// Write writes a consistent table snapshot.
func (e *Export) Write(ctx context.Context, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, exportTimeout)
	defer cancel()

	copyRow := func(row io.Reader) error {
		_, err := io.Copy(w, row)
		return err
	}

	switch e.Format {
	case CSV:
		return translateReadError(
			pg.CopyOut(ctx, e.tx.Conn(), "copy ("+e.sql+") to stdout (format csv, header)", copyRow),
		)
	case TSV:
		return translateReadError(
			pg.CopyOut(ctx, e.tx.Conn(), "copy ("+e.sql+") to stdout (format csv, header, delimiter E'\\t')", copyRow),
		)
	}

	line := func(row io.Reader) error {
		if _, err := io.Copy(oneLine{w}, row); err != nil {
			return err
		}

		_, err := w.Write([]byte{'\n'})
		return err
	}

	return translateReadError(
		pg.CopyOut(ctx, e.tx.Conn(), "select pg_catalog.row_to_json(r.*)::pg_catalog.text from ("+e.sql+") r", line),
	)
}

// oneLine replaces line breaks by spaces. In JSON, raw line breaks occur only outside strings,
// where they are insignificant.
type oneLine struct{ w io.Writer }

// Write writes part of a line.
func (l oneLine) Write(part []byte) (int, error) {
	return l.w.Write(bytes.ReplaceAll(bytes.ReplaceAll(part, []byte("\n"), []byte(" ")), []byte("\r"), []byte(" ")))
}

// translateReadError translates errors from reading a table, during which user code, such as a
// policy, may run.
func translateReadError(err error) error {
	if blamesUser(pg.State(err)) {
		return fault.New(fault.Unprocessable, "the rows of the table can't be read: code of the project failed").
			WithCode("refused").WithCause(err)
	}

	return pg.Fault(err)
}

// Close releases the connection.
func (e *Export) Close() {
	if e.tx != nil {
		ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
		defer cancel()

		_ = e.tx.Rollback(ctx) // read only; the pool discards a connection that fails here
	}

	e.conn.Release()
}
