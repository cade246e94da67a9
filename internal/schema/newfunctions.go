package schema

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// maxParameters is PostgreSQL's limit per function.
const maxParameters = 100

// NewFunction describes a function to create. Definition is the body in the language. ReturnType is
// a type, void, trigger, setof with a type, or table with a parenthesized list of names and types.
type NewFunction struct {
	Schema     string
	Name       string
	Parameters []Parameter
	Definition string
	Language   string
	ReturnType string
	Replace    bool // replace a function with the same name and argument types
	// roles (anon, authenticated) that may execute it; nil means none, or no change if it is
	// replaced
	Execute *[]string
}

// CreateFunction creates a function that belongs to the project's owner and runs with its caller's
// rights. Only roles with a grant may execute it. Unqualified names in its body resolve to the
// function's own schema, then public, then the extensions, for each caller. It fails with Conflict
// on name for the same name and argument types, unless n.Replace is set. It fails with Invalid on
// schema if the schema is reserved for the platform, with NotFound for an unknown schema, and with
// Unprocessable on the field at fault.
func CreateFunction(ctx context.Context, owner *pgxpool.Pool, n NewFunction) (Function, error) {
	if err := checkSchema(fault.Invalid, n.Schema); err != nil {
		return Function{}, err
	}

	var function Function
	err := changeNamed(ctx, owner, func(ctx context.Context, tx pgx.Tx) error {
		if err := schemaExists(ctx, tx, n.Schema); err != nil {
			return err
		}
		if err := n.validate(); err != nil {
			return err
		}
		if err := checkLanguage(ctx, tx, n.Language); err != nil {
			return err
		}

		d, err := n.declare(ctx, newTypes(tx))
		if err != nil {
			return err
		}

		existing, err := d.findOID(ctx, tx)
		if err != nil {
			return err
		}

		if err := d.create(ctx, tx); err != nil {
			return err
		}

		if existing == 0 {
			if err := execute(ctx, tx, "revoke execute on function "+d.signature()+" from public"); err != nil {
				return err
			}
		}

		if n.Execute != nil {
			if err := d.grantExecute(ctx, tx, *n.Execute); err != nil {
				return err
			}
		}

		id, err := d.findOID(ctx, tx)
		if err != nil {
			return err
		}

		function, err = functionByID(ctx, tx, id)
		return err
	})

	return function, err
}

func schemaExists(ctx context.Context, q pg.Querier, schema string) error {
	exists, err := pg.Value[bool](ctx, q, `select exists (select from pg_catalog.pg_namespace where nspname = @schema)`,
		pgx.StrictNamedArgs{"schema": schema})
	if err == nil && !exists {
		return fault.New(fault.NotFound, "there is no such schema")
	}

	return err
}

// validate checks the function without the database.
func (n NewFunction) validate() error {
	if err := checkName(fault.Unprocessable, "name", n.Name); err != nil {
		return err
	}

	if len(n.Parameters) > maxParameters {
		return fault.OnField(fault.Unprocessable, "parameters", "too_many", "must be at most %d", maxParameters)
	}

	if n.Execute != nil {
		if err := checkExecuteRoles(*n.Execute); err != nil {
			return err
		}
	}

	if strings.TrimSpace(n.Definition) == "" {
		return fault.OnField(fault.Unprocessable, "definition", "required", "must not be empty")
	}
	if !pg.Storable(n.Definition) {
		return fault.OnField(fault.Unprocessable, "definition", "invalid_value", "must be text without a NUL")
	}

	return nil
}

// declaration is a function with resolved types.
type declaration struct {
	NewFunction
	parameters []dataType
	returns    string // SQL
}

// declare resolves the parameter and result types.
func (n NewFunction) declare(ctx context.Context, types *types) (*declaration, error) {
	d := &declaration{NewFunction: n}
	names := map[string]bool{}
	for i, p := range n.Parameters {
		prefix := "parameters." + strconv.Itoa(i) + "."
		if err := checkName(fault.Unprocessable, prefix+"name", p.Name); err != nil {
			return nil, err
		}

		if names[p.Name] {
			return nil, fault.OnField(fault.Unprocessable, prefix+"name", "duplicate",
				"is a duplicate of an earlier parameter")
		}

		names[p.Name] = true

		t, err := types.getNonSerial(ctx, prefix+"type", p.Type)
		if err != nil {
			return nil, err
		}

		d.parameters = append(d.parameters, t)
	}

	var err error
	d.returns, err = n.result(ctx, types, names)
	return d, err
}

const resultField = "return_type"

// result resolves the return type to SQL. names has the parameter names, which columns in a
// returned table must not repeat.
func (n NewFunction) result(ctx context.Context, types *types, names map[string]bool) (string, error) {
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
				"must be empty for a trigger function")
		}
		if n.Language == "sql" {
			return "", badType(resultField, "can't be trigger for a function in sql: write it in plpgsql")
		}

		return "trigger", nil
	case p.accept("table", "("):
		return types.tableResult(ctx, p, names)
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
func (t *types) tableResult(ctx context.Context, p *typeParser, names map[string]bool) (string, error) {
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

		if names[name] {
			return "", fault.OnField(fault.Unprocessable, resultField, "duplicate",
				"has a column that duplicates a parameter or an earlier column")
		}

		names[name] = true

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

// signature returns the function's SQL name with argument types.
func (d *declaration) signature() string {
	arguments := make([]string, len(d.parameters))
	for i, t := range d.parameters {
		arguments[i] = t.SQL
	}

	return pg.Quote(d.Schema, d.Name) + "(" + strings.Join(arguments, ", ") + ")"
}

// findOID returns the OID of the function with this name and these argument types, or 0.
func (d *declaration) findOID(ctx context.Context, tx pgx.Tx) (uint32, error) {
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

	path += ", " + ExtensionsSchema
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

	return translateText(err, fragment{head, d.Definition, true}, func(state string) *fault.Error {
		switch state {
		case "42723", "23505": // duplicate_function, unique_violation in the catalog
			return fault.OnField(fault.Conflict, "name", "already_exists",
				"is already used by a function with the same argument types")
		case "42809": // wrong_object_type
			return fault.OnField(fault.Unprocessable, "name", "not_replaceable",
				"is already used by a procedure or aggregate with the same argument types")
		case "42501": // insufficient_privilege
			return fault.OnField(fault.Unprocessable, "schema", "not_owned",
				"requires CREATE on the schema and USAGE on all types")
		}

		// The existing function prevents the replacement.
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && state == "42P13" && e.Routine == "ProcedureCreate" {
			return fault.OnField(fault.Unprocessable, resultField, "not_replaceable",
				"and the parameter names must be those of the replaced function: delete it first to change them")
		}
		if !blamesUser(state) {
			return nil
		}

		return badDefinition(state)
	})
}

// badDefinition translates an SQLSTATE for a function body.
func badDefinition(state string) *fault.Error {
	code, message := "invalid_definition", "does not fit the language, the parameters or the return type"
	switch state {
	case "42601": // syntax_error
		code, message = "syntax_error", "has a syntax error"
		// undefined table, column, function, object, schema, parameter
	case "42P01", "42703", "42883", "42704", "3F000", "42P02":
		code, message = "unknown_name", "uses a name that does not exist, or not for these types"
	case "42P13": // invalid_function_definition
		code, message = "result_mismatch", "does not return what return_type says"
	}

	return onText("definition", code, message)
}

// executeRoles are the roles that may get execute on a function.
var executeRoles = []string{"anon", "authenticated"}

// checkExecuteRoles validates the roles that get execute on a function.
func checkExecuteRoles(roles []string) error {
	for _, role := range roles {
		if !slices.Contains(executeRoles, role) {
			return fault.OnField(fault.Unprocessable, "execute", "not_allowed", "must only contain %s",
				strings.Join(executeRoles, ", "))
		}
	}

	return nil
}

// grantExecute grants execute on the function to the given [executeRoles] and revokes it from the
// others.
func (d *declaration) grantExecute(ctx context.Context, tx pgx.Tx, roles []string) error {
	for _, role := range executeRoles {
		sql := "revoke execute on function " + d.signature() + " from " + pg.Quote(role)
		if slices.Contains(roles, role) {
			sql = "grant execute on function " + d.signature() + " to " + pg.Quote(role)
		}

		if err := execute(ctx, tx, sql); err != nil {
			return translate(err, nil)
		}
	}

	return nil
}
