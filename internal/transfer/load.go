package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

const (
	batchBytes = 1 << 20
	batchRows  = 5000
)

// loader stores rows in batches. If PostgreSQL rejects a batch, the loader bisects it to find the
// rows at fault.
type loader struct {
	tx   pgx.Tx
	copy string // COPY statement
	// statement that moves staged rows into the table; "" if COPY writes to it directly
	merge           string
	columns         []ImportedColumn // the file's columns
	hint            string           // remedy for rows with more or fewer values than the header
	skip            bool
	databaseRejects int64 // rows rejected by PostgreSQL

	rows     int64
	rejected int64
	reported []Rejected

	batch       []byte // rows in COPY's text format
	ends        []int  // row end offsets in batch
	lineNumbers []int64

	counters []*counter // for the columns that have a sequence
}

func newLoader(ctx context.Context, tx pgx.Tx, p plan, o Options) (l *loader, err error) {
	table := p.stored()
	names := columnNamesOf(table)
	l = &loader{
		tx:       tx,
		copy:     copySQL(pg.Quote(p.table.Schema, p.table.Name), names),
		columns:  p.columns,
		hint:     p.hint,
		skip:     o.Skip,
		reported: []Rejected{},
	}

	if l.merge, err = o.merge(ctx, tx, p.table, table); err != nil {
		return nil, err
	}
	if l.merge != "" {
		l.copy = copySQL(stagingTable, names)
	}

	l.counters, err = newCounters(ctx, tx, p.table, columnNamesOf(p.columns))
	return l, err
}

func (l *loader) add(ctx context.Context, r row) error {
	if bad := l.check(r); bad != nil {
		return l.reject(*bad)
	}

	for _, c := range l.counters {
		c.add(r.values[c.column])
	}

	first := true
	for i, v := range r.values {
		if l.columns[i].skipped {
			continue
		}
		if !first {
			l.batch = append(l.batch, '\t')
		}
		first = false

		if v.null {
			l.batch = append(l.batch, `\N`...)
			continue
		}

		l.batch = escape(l.batch, v.text)
	}

	l.batch = append(l.batch, '\n')
	l.ends, l.lineNumbers = append(l.ends, len(l.batch)), append(l.lineNumbers, r.line)
	if len(l.batch) < batchBytes && len(l.ends) < batchRows {
		return nil
	}

	return l.flush(ctx)
}

// check validates a row without the database, and converts its values to those that PostgreSQL
// reads.
func (l *loader) check(r row) *Rejected {
	if r.bad != nil {
		return r.bad
	}

	if len(r.values) != len(l.columns) {
		has := fmt.Sprint(len(r.values))
		if len(r.values) > maxColumns {
			has = fmt.Sprintf("more than %d", maxColumns)
		}

		return &Rejected{Line: r.line, Code: "ragged",
			Message: fmt.Sprintf("has %s values, not %d%s", has, len(l.columns), l.hint)}
	}

	for i, v := range r.values {
		if !utf8.Valid(v.text) {
			return invalidEncoding(r.line)
		}
		if bytes.IndexByte(v.text, 0) >= 0 {
			return &Rejected{Line: r.line, Code: "invalid_character", Message: "contains the character NUL"}
		}

		text, bad := l.columns[i].convert(v)
		if bad != nil {
			bad.Line = r.line
			return bad
		}
		r.values[i].text = text
	}

	return nil
}

// reject records a rejected row. It fails if that ends the import.
func (l *loader) reject(r Rejected) error {
	l.rejected++

	if len(l.reported) < maxReported {
		l.reported = append(l.reported, r)
	}

	if !l.skip {
		return r.fatal(l.reported, l.rejected)
	}

	return nil
}

// flush stores the batch.
func (l *loader) flush(ctx context.Context) error {
	if len(l.ends) == 0 {
		return nil
	}

	batchCtx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()

	err := l.store(batchCtx, 0, len(l.ends))
	l.batch, l.ends, l.lineNumbers = l.batch[:0], l.ends[:0], l.lineNumbers[:0]
	for _, c := range l.counters {
		c.batch = c.batch[:0]
	}

	if err != nil && batchCtx.Err() != nil && ctx.Err() == nil {
		return fault.OnField(fault.Unprocessable, "file", "timeout",
			"can't be imported: code of the project took longer than %d seconds for one batch",
			int(batchTimeout.Seconds())).WithCause(err)
	}

	return err
}

// store stores the batch's rows [from, to).
func (l *loader) store(ctx context.Context, from, to int) error {
	start := 0
	if from > 0 {
		start = l.ends[from-1]
	}

	begin := "savepoint part"
	if l.merge != "" {
		// TRUNCATE runs before the savepoint, where it leaves no old files behind.
		begin = "truncate " + stagingTable + "; " + begin
	}

	if _, err := l.tx.Exec(ctx, begin); err != nil {
		return err
	}

	tag, err := l.tx.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(l.batch[start:l.ends[to-1]]), l.copy)
	if err == nil && l.merge != "" {
		tag, err = l.tx.Exec(ctx, l.merge)
	}
	if err == nil {
		l.rows += tag.RowsAffected()
		for _, c := range l.counters {
			c.store(from, to)
		}

		_, err = l.tx.Exec(ctx, "release savepoint part")
		return err
	}

	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || !blamesUser(e.Code) {
		return err
	}
	if e.Code[:2] == "42" || e.Code[:2] == "0A" { // not a row's fault
		return fault.New(fault.Unprocessable,
			"the database can't store rows in this table, or code of the project failed").
			WithCode("refused").WithCause(err)
	}

	if _, err := l.tx.Exec(ctx, "rollback to savepoint part; release savepoint part"); err != nil {
		return err
	}

	if to-from == 1 {
		if l.databaseRejects++; l.databaseRejects > maxDatabaseRejects {
			return fault.OnField(fault.Unprocessable, "file", "too_many_rejected",
				"can't be imported: the database rejected more than %d rows", maxDatabaseRejects)
		}

		return l.reject(explain(e, l.lineNumbers[from]))
	}

	middle := (from + to) / 2
	if err := l.store(ctx, from, middle); err != nil {
		return err
	}

	return l.store(ctx, middle, to)
}

var copiedColumn = regexp.MustCompile(`^COPY .*?, line \d+, column (.+?)(: .*)?$`)

// explain translates PostgreSQL's error for a row.
func explain(e *pgconn.PgError, line int64) Rejected {
	r := Rejected{Line: line, Code: "invalid_value", Message: "has a value that does not match the type of its column"}
	switch {
	case e.Code == "23502":
		r.Code, r.Message = "required", "has no value for a required column"
	case e.Code == "23505" || e.Code == "23P01":
		r.Code, r.Message = "already_exists", "has a duplicate value in a unique column"
	case e.Code == "23503":
		r.Code, r.Message = "reference", "references a row that does not exist"
	case e.Code == "23514":
		r.Code, r.Message = "check", "violates a check constraint of the table"
	case e.Code == "22001":
		r.Code, r.Message = "too_long", "has a value that is too long for its column"
	case e.Code == "22003":
		r.Code, r.Message = "out_of_range", "has a number that is out of range for its column"
	case e.Code[:2] != "22":
		r.Code, r.Message = "refused", "was rejected by code of the project"
	}

	column := e.ColumnName
	if column == "" && e.Code[:2] == "22" {
		first, _, _ := strings.Cut(e.Where, "\n")
		if m := copiedColumn.FindStringSubmatch(first); m != nil {
			column = m[1]
		}
	}

	if column != "" {
		r.Column = &column
	}

	return r
}

// escape appends text in COPY's text format.
func escape(to, text []byte) []byte {
	for {
		i := bytes.IndexAny(text, "\\\n\r\t")
		if i < 0 {
			return append(to, text...)
		}

		to = append(to, text[:i]...)
		to = append(to, '\\')
		switch text[i] {
		case '\n':
			to = append(to, 'n')
		case '\r':
			to = append(to, 'r')
		case '\t':
			to = append(to, 't')
		default:
			to = append(to, '\\')
		}

		text = text[i+1:]
	}
}

// copySQL returns the COPY statement for the columns. table is a quoted name.
func copySQL(table string, columns []string) string {
	return "copy " + table + " (" + quoteColumns(columns) + ") from stdin"
}
