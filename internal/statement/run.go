package statement

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/dialect"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// endTimeout bounds the end of a session.
const endTimeout = 5 * time.Second

// settings are a query's initial settings. Reading them fixes the access mode: the transaction
// can't become writable any more.
const settings = `
	select pg_catalog.set_config('search_path', 'public, extensions', true),
	       pg_catalog.set_config('lock_timeout', '5s', true),
	       pg_catalog.set_config('extra_float_digits', '1', true),
	       pg_catalog.set_config('bytea_output', 'hex', true)`

// session is one query's connection.
type session struct {
	conn  *pgconn.PgConn
	query Query
	types []columnType
	full  bool // the query may not grow the database

	reservation reservation // memory for the response
}

// columnType is a result column's type.
type columnType struct {
	oid      uint32
	modifier int32
}

// run runs the statements in one transaction. It commits if all succeed and the query may write.
func (s *session) run(ctx context.Context, steps []Step, params [][]byte) ([]Result, error) {
	begin := "begin read write;"
	if s.query.ReadOnly {
		begin = "begin read only;"
	}

	if _, err := s.conn.Exec(ctx, begin+settings).ReadAll(); err != nil {
		return nil, pg.Fault(err)
	}

	if err := s.assume(ctx); err != nil {
		return nil, err
	}

	var baseline map[string]relationSize
	if s.full {
		var err error
		if baseline, err = s.sizes(ctx, selectSizes); err != nil {
			return nil, pg.Fault(err)
		}
	}

	results := make([]Result, 0, len(steps))
	for i, step := range steps {
		r, err := s.result(ctx, step, params)
		if err != nil {
			return nil, translate("query", err, i, step)
		}

		if s.conn.TxStatus() != 'T' {
			return nil, fault.OnField(fault.Unprocessable, "query", "not_allowed",
				"must not end its transaction")
		}

		results = append(results, r)
	}

	if err := s.nameTypes(ctx, results); err != nil {
		return nil, translate("query", err, len(steps)-1, steps[len(steps)-1])
	}

	if s.full {
		sizes, err := s.sizes(ctx, sealTransaction+selectSizes)
		if err != nil {
			return nil, translate("query", err, len(steps)-1, steps[len(steps)-1])
		}

		if growth(baseline, sizes) > 0 {
			return nil, errGrows
		}
	}

	end := "commit"
	if s.query.ReadOnly {
		end = "rollback"
	}

	// a deferred constraint can fail here
	if _, err := s.conn.Exec(ctx, end).ReadAll(); err != nil {
		return nil, translate("query", err, len(steps)-1, steps[len(steps)-1])
	}

	return results, nil
}

// assume gives the transaction the role and the claims of the query's caller.
func (s *session) assume(ctx context.Context) error {
	if s.query.As == nil {
		return nil
	}

	identity := s.query.As.Identity()
	values := make([][]byte, len(identity))
	for i, setting := range identity {
		values[i] = setting.Value
	}

	_, err := s.conn.ExecParams(ctx, "select "+actor.SettingsSQL(identity), values, nil, nil, nil).Close()
	return pg.Fault(err)
}

// result returns a step's result. It is empty if the step is left out.
func (s *session) result(ctx context.Context, step Step, params [][]byte) (Result, error) {
	r := Result{Columns: []ResultColumn{}}
	switch {
	case step.Action == dialect.LeaveOut:
		return r, nil
	case s.query.ReadOnly && (step.Action != dialect.Run || len(step.Extensions) > 0):
		step.SQL = step.Text // PostgreSQL refuses it
	case step.Action == dialect.CreateExtension:
		r.Command = "CREATE EXTENSION"
		return r, nil
	case step.Action == dialect.DropExtension:
		r.Command = "DROP EXTENSION"
		return r, nil
	case step.Action == dialect.MoveExtension:
		r.Command = "ALTER EXTENSION"
		return r, nil
	}

	return s.execute(ctx, step.SQL, params)
}

// execute runs one statement with the extended protocol, which rejects further statements. It
// fetches at most one row more than the limit.
func (s *session) execute(ctx context.Context, sql string, params [][]byte) (Result, error) {
	f := s.conn.Frontend()
	f.SendParse(&pgproto3.Parse{Query: sql})
	f.SendBind(&pgproto3.Bind{Parameters: params})
	f.SendDescribe(&pgproto3.Describe{ObjectType: 'P'})
	f.SendExecute(&pgproto3.Execute{MaxRows: uint32(s.query.MaxRows) + 1})
	f.SendSync(&pgproto3.Sync{})

	if err := f.Flush(); err != nil {
		return Result{}, err
	}

	r := Result{Columns: []ResultColumn{}}
	var serverErr error
	for {
		message, err := s.conn.ReceiveMessage(ctx)
		if err != nil {
			return Result{}, err
		}

		switch m := message.(type) {
		case *pgproto3.RowDescription:
			if len(s.types)+len(m.Fields) > maxResultColumns {
				return Result{}, fault.OnField(fault.Unprocessable, "query", "too_large",
					"has results of more than %d columns in total", maxResultColumns)
			}

			s.describe(&r, m.Fields)
		case *pgproto3.DataRow:
			if err := s.row(&r, m.Values); err != nil {
				return Result{}, err
			}
		case *pgproto3.CommandComplete:
			r.Command = validUTF8(string(m.CommandTag))
			n := pgconn.NewCommandTag(r.Command).RowsAffected()
			r.RowCount = &n
		case *pgproto3.PortalSuspended:
			r.Truncated = true
		case *pgproto3.ErrorResponse:
			serverErr = pgconn.ErrorResponseToPgError(m)
		case *pgproto3.CopyInResponse, *pgproto3.CopyOutResponse, *pgproto3.CopyBothResponse:
			return Result{}, fault.OnField(fault.Unprocessable, "query", "not_allowed", "must not contain COPY")
		case *pgproto3.ReadyForQuery:
			return r, serverErr
		}
	}
}

func (s *session) describe(r *Result, fields []pgproto3.FieldDescription) {
	for _, f := range fields {
		r.Columns = append(r.Columns, ResultColumn{Name: validUTF8(string(f.Name))})
		s.types = append(s.types, columnType{f.DataTypeOID, f.TypeModifier})
	}
}

// row appends a row to the result if the budget allows it.
func (s *session) row(r *Result, values [][]byte) error {
	if r.numRows == s.query.MaxRows || r.Truncated {
		r.Truncated = true
		return nil
	}

	start, size := len(r.Rows.text), 0
	for _, v := range values {
		size += len(v)
	}

	if s.reservation.size+size > maxBytes {
		r.Truncated = true
		return nil
	}

	if err := r.Rows.addRow(s.types[len(s.types)-len(values):], values); err != nil {
		return err
	}

	if !s.reservation.grow(len(r.Rows.text) - start) {
		r.Rows.text = r.Rows.text[:start]
		r.Truncated = true

		return nil
	}

	r.numRows++
	return nil
}

// nameTypes sets the column type names. It runs in the transaction, which may have created types.
func (s *session) nameTypes(ctx context.Context, results []Result) error {
	if len(s.types) == 0 {
		return nil
	}

	var oids, modifiers []string
	for _, t := range s.types {
		oids, modifiers = append(oids, fmt.Sprint(t.oid)), append(modifiers, fmt.Sprint(t.modifier))
	}

	read := s.conn.ExecParams(ctx, `
		select pg_catalog.format_type(t.oid, t.modifier)
		from rows from (pg_catalog.unnest($1::pg_catalog.oid[]), pg_catalog.unnest($2::pg_catalog.int4[])) with ordinality t(oid, modifier, n)
		order by t.n`,
		[][]byte{array(oids), array(modifiers)}, nil, nil, nil).Read()
	if read.Err != nil {
		return read.Err
	}

	n := 0
	for _, r := range results {
		for i := range r.Columns {
			if n < len(read.Rows) {
				r.Columns[i].Type = validUTF8(string(read.Rows[n][0]))
			}
			n++
		}
	}

	return nil
}

func array(items []string) []byte { return []byte("{" + strings.Join(items, ",") + "}") }

// translate translates PostgreSQL's error for a statement in a field. The statement's author may
// read the original error. A lost connection and exhausted server resources are not the statement's
// fault.
func translate(field string, err error, index int, step Step) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		if _, large := errors.AsType[*pgproto3.ExceededMaxBodyLenErr](err); large {
			return fault.OnField(fault.Unprocessable, field, "too_large", "has a row of more than %d bytes", maxRow).
				WithCause(err)
		}

		return pg.Fault(err)
	}

	switch {
	case pg.EndedByLimit(e):
		return pg.Fault(err)
	case e.Code[:2] == "08" && e.Code != "08P01", // 08P01: wrong number of parameters
		// 53200 and 53400: a session's memory and file limits
		e.Code[:2] == "53" && e.Code != "53200" && e.Code != "53400",
		e.Code == "57P02", e.Code == "57P03":
		return pg.Fault(err)
	}

	code := "sql_error"
	switch e.Code {
	case "25006":
		code = "read_only"
	case "57014":
		code = "cancelled"
	case "55P03", "40P01", "40001":
		code = "busy"
	}

	f := fault.OnField(fault.Unprocessable, field, code, "was rejected by the database").WithCause(err)
	position := 0
	switch {
	case e.Position > 0 && step.SQL == step.Text:
		position = step.Char + int(e.Position)
	case e.Position > 0: // position in the changed statement
		position = step.FirstChar() + 1
	}

	report := pg.NewReport(e)
	report.Hint = cmp.Or(report.Hint, hint(e, step.Statement))
	f.Extra = map[string]any{"postgres": step.place(report, index, position)}

	return f
}
