package schema

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"socle/internal/fault"
	"socle/internal/pg"
)

// declaration is a function with resolved types.
type declaration struct {
	NewFunction
	parameters []dataType
	returns    string // SQL
}

// declare resolves the types of the parameters and of the result.
func (n NewFunction) declare(ctx context.Context, types *types) (*declaration, error) {
	d := &declaration{NewFunction: n}
	seen := map[string]bool{}
	for i, p := range n.Parameters {
		prefix := "parameters." + strconv.Itoa(i) + "."
		if err := checkName(fault.Unprocessable, prefix+"name", p.Name); err != nil {
			return nil, err
		}

		if seen[p.Name] {
			return nil, fault.OnField(fault.Unprocessable, prefix+"name", "duplicate",
				"is the name of an earlier parameter")
		}

		seen[p.Name] = true

		t, err := types.getNonSerial(ctx, prefix+"type", p.Type)
		if err != nil {
			return nil, err
		}

		d.parameters = append(d.parameters, t)
	}

	var err error
	d.returns, err = n.result(ctx, types, seen)
	return d, err
}

const resultField = "return_type"

// result resolves the return type to SQL. taken has the parameter names, which columns of a
// returned table must not repeat.
func (n NewFunction) result(ctx context.Context, types *types, taken map[string]bool) (string, error) {
	text := strings.TrimSpace(n.ReturnType)
	p, err := newTypeParser(text)
	if err != nil {
		return "", badType(resultField, err.Error())
	}

	switch {
	case len(p.tokens) == 1 && p.accept("void"):
		return "void", nil
	case len(p.tokens) == 1 && p.accept("trigger"):
		if len(n.Parameters) > 0 {
			return "", fault.OnField(fault.Unprocessable, "parameters", "not_applicable",
				"must be empty for a trigger's function")
		}
		if n.Language == "sql" {
			return "", badType(resultField, "can't be trigger for a function in sql: write it in plpgsql")
		}

		return "trigger", nil
	case p.accept("table", "("):
		return types.tableResult(ctx, p, taken)
	}

	setof := ""
	if p.accept("setof") {
		setof = "setof "
		text = strings.TrimSpace(text[len("setof"):])
	}

	t, err := types.getNonSerial(ctx, resultField, text)
	return setof + t.SQL, err
}

// tableResult resolves a returned table. The parser stands after the opening parenthesis.
func (t *types) tableResult(ctx context.Context, p *typeParser, taken map[string]bool) (string, error) {
	var columns []string
	for {
		token, ok := p.name()
		if !ok {
			return "", badType(resultField,
				"must name each column of the table and its type: table(id integer, title text)")
		}

		name := unquoted(token)
		if err := checkName(fault.Unprocessable, resultField, name); err != nil {
			return "", err
		}

		if taken[name] {
			return "", fault.OnField(fault.Unprocessable, resultField, "duplicate",
				"has a column with the name of a parameter or of an earlier column")
		}

		taken[name] = true

		spec, err := p.parse()
		if err != nil {
			return "", badType(resultField, err.Error())
		}

		if spec.identity {
			return "", badType(resultField, "can't be serial here: use integer")
		}

		d, err := t.resolve(ctx, resultField, spec)
		if err != nil {
			return "", err
		}

		columns = append(columns, pg.Quote(name)+" "+d.SQL)

		if p.accept(",") {
			continue
		}
		if !p.accept(")") || !p.done() || len(columns) > maxColumns {
			return "", badType(resultField, errType.Error())
		}

		return "table (" + strings.Join(columns, ", ") + ")", nil
	}
}

// signature returns the SQL name of the function with its argument types.
func (d *declaration) signature() string {
	arguments := make([]string, len(d.parameters))
	for i, t := range d.parameters {
		arguments[i] = t.SQL
	}

	return pg.Quote(d.Schema, d.Name) + "(" + strings.Join(arguments, ", ") + ")"
}

// find returns the OID of the function with this name and these argument types, or 0.
func (d *declaration) find(ctx context.Context, tx pgx.Tx) (uint32, error) {
	types := make([]uint32, len(d.parameters))
	for i, t := range d.parameters {
		types[i] = t.OID
	}

	return pg.Value[uint32](ctx, tx, `
		select coalesce((
			select p.oid from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
			where n.nspname = @schema and p.proname = @name and array(select pg_catalog.unnest(p.proargtypes::oid[])) = @types::oid[]), 0)::oid`,
		pgx.StrictNamedArgs{"schema": d.Schema, "name": d.Name, "types": types})
}

// create runs the statement. It pins the function's search_path, so that names in the body have the
// same meaning for each caller and after a restore.
func (d *declaration) create(ctx context.Context, tx pgx.Tx) error {
	parameters := make([]string, len(d.parameters))
	for i, t := range d.parameters {
		parameters[i] = pg.Quote(d.Parameters[i].Name) + " " + t.SQL
	}

	path := pg.Quote(d.Schema)
	if d.Schema != public {
		path += ", " + public
	}

	path += ", " + Extensions
	verb := "create function "
	if d.Replace {
		verb = "create or replace function "
	}

	head := verb + pg.Quote(d.Schema, d.Name) + "(" + strings.Join(parameters, ", ") + ") returns " + d.returns +
		" language " + pg.Quote(d.Language) + " security invoker set search_path = " + path + ", pg_temp as "
	err := execute(ctx, tx, head+pg.Literal(d.Definition))
	// PostgreSQL reports a concurrent replacement only as an internal error.
	if d.Replace && pg.State(err) == "XX000" {
		return errConcurrentChange
	}

	return translate(err, func(state string) *fault.Error {
		switch state {
		case "42723", "23505": // duplicate_function, unique_violation in the catalog
			return fault.OnField(fault.Conflict, "name", "already_exists",
				"is the name of a function with the same argument types")
		case "42809": // wrong_object_type
			return fault.OnField(fault.Unprocessable, "name", "not_replaceable",
				"is the name of a procedure or an aggregate with the same argument types")
		case "42501": // insufficient_privilege
			return fault.OnField(fault.Unprocessable, "schema", "not_owned",
				"is not one that the project may make functions in, or a type not one it may use")
		}

		// The existing function prevents the replacement.
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && state == "42P13" && e.Routine == "ProcedureCreate" {
			return fault.OnField(fault.Unprocessable, resultField, "not_replaceable",
				"must be that of the function that is replaced, and the parameters' names too; delete it first to change them")
		}
		if !blamesUser(state) {
			return nil
		}

		return badDefinition(state, errorPosition(err, head, pg.Literal(d.Definition)))
	})
}

// badDefinition translates an SQLSTATE for a function body. place is the output of [errorPosition].
func badDefinition(state, place string) *fault.Error {
	code, message := "invalid_definition", "does not fit the language, the parameters or the return type"
	switch state {
	case "42601": // syntax_error
		code, message = "syntax_error", "has a syntax error"
		// undefined table, column, function, object, schema, parameter
	case "42P01", "42703", "42883", "42704", "3F000", "42P02":
		code, message = "unknown_name", "uses the name of something that does not exist, or not with these types"
	case "42P13": // invalid_function_definition
		code, message = "result_mismatch", "does not return what return_type says"
	}

	return fault.OnField(fault.Unprocessable, "definition", code, "%s", message+place)
}

var nearText = regexp.MustCompile(`^\S{1,40}`)

// errorPosition returns the line of the body and the word next to the error, or "" if PostgreSQL
// reported no position. Positions count characters: of the body, or of the whole statement, which
// is head followed by literal.
func errorPosition(err error, head, literal string) string {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return ""
	}

	text, position := []rune(literal), int(e.Position)-utf8.RuneCountInString(head)
	if e.InternalPosition > 0 {
		text, position = []rune(e.InternalQuery), int(e.InternalPosition)
	}

	if position < 1 || position > len(text) {
		return ""
	}

	before, after := string(text[:position-1]), strings.TrimSuffix(string(text[position-1:]), "'")
	line := fmt.Sprintf(", at line %d", 1+strings.Count(before, "\n"))

	near := nearText.FindString(after)
	if near == "" {
		return line
	}

	return line + " near " + strings.ReplaceAll(near, "''", "'")
}
