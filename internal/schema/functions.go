package schema

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Parameter is a function parameter.
type Parameter struct {
	Name string `json:"name" doc:"1 to 63 letters, digits or _, not starting with a digit."`
	Type string `json:"type" doc:"A type of the database; modifiers are ignored." example:"integer"`
}

// Function is a user's function or procedure.
type Function struct {
	FunctionInfo
	Definition string `json:"definition" doc:"Body of the function, in its language."`
}

// FunctionInfo describes a user's function or procedure without its body.
type FunctionInfo struct {
	Schema          string      `json:"schema"`
	Name            string      `json:"name"`
	Kind            string      `json:"kind" enum:"function,procedure,window"`
	Arguments       string      `json:"arguments" doc:"Types of the parameters, which distinguish functions of the same name." example:"integer, text"`
	Parameters      []Parameter `json:"parameters" doc:"Input parameters; the name is empty for an unnamed one."`
	ReturnType      string      `json:"returnType" doc:"Empty for a procedure."`
	Language        string      `json:"language"`
	Volatility      string      `json:"volatility" enum:"immutable,stable,volatile"`
	SecurityDefiner bool        `json:"securityDefiner" doc:"It runs with the privileges of its owner instead of its caller."`
	Execute         []string    `json:"execute" doc:"Roles of anon and authenticated that may execute it."`
}

// routine is a [selectRoutines] row.
type routine struct {
	OID             uint32
	Schema          string
	Name            string
	Kind            string
	Language        string
	Volatility      string
	SecurityDefiner bool
	Definition      string
	Result          string
	ReturnsSet      bool
	Modes           []string
	Names           []string
	Types           []string
	Execute         []string
	Total           int64
}

// userRoutines is the from clause for users' functions, without extension members.
const userRoutines = `
	from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
	where p.prokind in ('f', 'p', 'w') and ` + userSchema + `
		and not exists (select from pg_catalog.pg_depend d
			where d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass and d.objid = p.oid and d.deptype = 'e')`

// selectRoutines describes the functions in found, a relation with the columns oid and total.
const selectRoutines = `
	select p.oid, n.nspname as schema, p.proname as name, found.total,
		case p.prokind when 'f' then 'function' when 'p' then 'procedure' else 'window' end as kind,
		l.lanname as language, case p.provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end as volatility,
		p.prosecdef as security_definer, coalesce(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc) as definition, p.proretset as returns_set,
		case when p.prokind = 'p' then '' else (
			select ` + displayType + ` from (select pg_catalog.format_type(p.prorettype, null) as full_name) printed) end as result,
		a.modes, a.names, a.types,
		array(select r.rolname::text from pg_catalog.pg_roles r
			where r.rolname in ('anon', 'authenticated') and pg_catalog.has_function_privilege(r.oid, p.oid, 'execute') order by 1) as execute
	from found
	join pg_catalog.pg_proc p on p.oid = found.oid
	join pg_catalog.pg_namespace n on n.oid = p.pronamespace
	join pg_catalog.pg_language l on l.oid = p.prolang
	cross join lateral (
		select coalesce(pg_catalog.array_agg(coalesce(p.proargmodes[t.n], 'i')::text order by t.n), '{}') as modes,
			coalesce(pg_catalog.array_agg(coalesce(p.proargnames[t.n], '') order by t.n), '{}') as names,
			coalesce(pg_catalog.array_agg(` + displayType + ` order by t.n), '{}') as types
		from pg_catalog.unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) with ordinality t(type, n)
		cross join lateral (select pg_catalog.format_type(t.type, null) as full_name) printed
	) a`

var routineSorts = map[string]string{"name": "name", "schema": "schema", "language": "language"}

// ListFunctions returns a page of functions and procedures in a schema, or in all schemas if it is
// "", and the total number. Pages are sorted by name, schema or language. It fails with Invalid on
// schema if the schema is reserved for the platform.
func ListFunctions(ctx context.Context, q pg.Querier, schema string, page pg.Page) ([]FunctionInfo, int64, error) {
	if schema != "" {
		if err := checkSchema(fault.Invalid, schema); err != nil {
			return nil, 0, err
		}
	}

	const condition = ` and (@schema = '' or n.nspname = @schema)`
	args := pgx.StrictNamedArgs{"schema": schema}

	// Functions are described for the page only, which is then sorted again.
	rows, err := pg.All[routine](ctx, q, `with found as (
		select p.oid, count(*) over () as total, p.proname as name, n.nspname as schema,
			(select l.lanname from pg_catalog.pg_language l where l.oid = p.prolang) as language `+
		userRoutines+condition+
		page.Clause(routineSorts, "oid")+`)`+selectRoutines+
		page.Order(map[string]string{"name": "p.proname", "schema": "n.nspname", "language": "l.lanname"}, "p.oid"),
		page.Args(args))
	if err != nil {
		return nil, 0, err
	}

	if len(rows) == 0 && page.Number > 1 { // past the end, where no row has the total
		total, err := pg.Value[int64](ctx, q, "select count(*)"+userRoutines+condition, args)
		return []FunctionInfo{}, total, err
	}

	functions := make([]FunctionInfo, len(rows))
	var total int64
	for i, r := range rows {
		functions[i], total = r.describe().FunctionInfo, r.Total
	}

	return functions, total, nil
}

// GetFunction returns a function or procedure. arguments selects one as in [DeleteFunction], and
// errors are the same. It runs as the owner, since PostgreSQL parses the client's types.
func GetFunction(ctx context.Context, owner *pgxpool.Pool, schema, name string, arguments *string) (Function, error) {
	if err := checkSchema(fault.Invalid, schema); err != nil {
		return Function{}, err
	}
	if err := checkName(fault.Invalid, "functionName", name); err != nil {
		return Function{}, err
	}

	var function Function
	err := change(ctx, owner, func(ctx context.Context, tx pgx.Tx) error {
		f, err := findFunction(ctx, tx, schema, name, arguments)
		if err != nil {
			return err
		}

		function, err = functionByID(ctx, tx, f.OID)
		return err
	})

	return function, err
}

func functionByID(ctx context.Context, q pg.Querier, id uint32) (Function, error) {
	r, err := pg.One[routine](ctx, q, `with found as (select @id::oid as oid, 1::bigint as total)`+selectRoutines,
		pgx.StrictNamedArgs{"id": id})
	if fault.Is(err, fault.NotFound) {
		return Function{}, noFunction().WithCause(err)
	}

	return r.describe(), err
}

// describe returns the function in its form for clients.
func (r routine) describe() Function {
	f := Function{Definition: r.Definition, FunctionInfo: FunctionInfo{Schema: r.Schema, Name: r.Name, Kind: r.Kind,
		Language: r.Language, Volatility: r.Volatility,
		SecurityDefiner: r.SecurityDefiner, Execute: r.Execute,
		Parameters: []Parameter{}, ReturnType: shortType(r.Result)}}

	var arguments, columns []string
	for i, mode := range r.Modes {
		typ := shortType(r.Types[i])
		switch mode {
		case "t":
			columns = append(columns, displayName(r.Names[i])+" "+typ)
		case "i", "b", "v":
			f.Parameters = append(f.Parameters, Parameter{Name: r.Names[i], Type: typ})
			arguments = append(arguments, typ)
		}
	}

	f.Arguments = strings.Join(arguments, ", ")

	switch {
	case len(columns) > 0:
		f.ReturnType = "table(" + strings.Join(columns, ", ") + ")"
	case r.ReturnsSet:
		f.ReturnType = "setof " + f.ReturnType
	}

	return f
}

// displayName quotes a name unless it is valid without quotes.
func displayName(name string) string {
	if identifier.MatchString(name) && strings.ToLower(name) == name {
		return name
	}
	return pg.Quote(name)
}

// Language is a language for project functions.
type Language struct {
	Name string `json:"name" example:"plpgsql"`
}

const selectLanguages = `select l.lanname as name from pg_catalog.pg_language l where l.lanpltrusted order by l.lanname`

// ListLanguages returns the database's trusted languages.
func ListLanguages(ctx context.Context, q pg.Querier) ([]Language, error) {
	return pg.All[Language](ctx, q, selectLanguages)
}

// checkLanguage fails with Unprocessable on language unless the language is trusted.
func checkLanguage(ctx context.Context, q pg.Querier, name string) error {
	languages, err := ListLanguages(ctx, q)
	if err != nil || slices.Contains(languages, Language{name}) {
		return err
	}

	return fault.OnField(fault.Unprocessable, "language", "not_supported",
		"must be a trusted language of the database, such as sql or plpgsql")
}

// DeleteFunction drops a function or procedure. arguments are its argument types, separated by
// commas; nil selects the only function with the name. It fails with Invalid on schema,
// functionName or arguments if the value is malformed, with Invalid, code ambiguous and the member
// signatures, if several functions have the name, with NotFound if none has it, and with Conflict,
// code in_use, if other objects depend on it.
func DeleteFunction(ctx context.Context, owner *pgxpool.Pool, schema, name string, arguments *string) error {
	if err := checkSchema(fault.Invalid, schema); err != nil {
		return err
	}
	if err := checkName(fault.Invalid, "functionName", name); err != nil {
		return err
	}

	return changeNamed(ctx, owner, func(ctx context.Context, tx pgx.Tx) error {
		f, err := findFunction(ctx, tx, schema, name, arguments)
		if err != nil {
			return err
		}

		_, err = drop(ctx, tx, "drop "+f.Kind+" "+pg.Quote(schema, name)+"("+f.Arguments+")",
			object{"pg_proc", f.OID, 0}, false)
		switch pg.State(err) {
		// undefined_function, invalid_schema_name, undefined_object; internal_error if it is
		// dropped between PostgreSQL's lookup and its lock
		case "42883", "3F000", "42704", "XX000":
			return errConcurrentChange
		}

		return err
	})
}

func noFunction() *fault.Error { return fault.New(fault.NotFound, "there is no such function") }

// storedFunction is a function in the catalog.
type storedFunction struct {
	OID       uint32
	Kind      string   // function or procedure
	Arguments string   // argument types as SQL, quoted by PostgreSQL
	OIDs      []uint32 // argument types
	Types     []string // argument type names, for clients
}

// findFunction returns the function with a name and optional argument types. It fails as
// [DeleteFunction] does.
func findFunction(ctx context.Context, tx pgx.Tx, schema, name string, arguments *string) (storedFunction, error) {
	all, err := pg.All[storedFunction](ctx, tx, `
		select p.oid, case p.prokind when 'p' then 'procedure' else 'function' end as kind,
			p.proargtypes::oid[] as oids, a.arguments, a.types
		from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
		cross join lateral (
			select coalesce(pg_catalog.string_agg(printed.full_name, ', ' order by t.n), '') as arguments,
				coalesce(pg_catalog.array_agg(`+displayType+` order by t.n), '{}') as types
			from pg_catalog.unnest(p.proargtypes) with ordinality t(type, n)
			cross join lateral (select pg_catalog.format_type(t.type, null) as full_name) printed
		) a
		where n.nspname = @schema and p.proname = @name and p.prokind in ('f', 'p', 'w') and `+userSchema+`
		order by p.oid`,
		pgx.StrictNamedArgs{"schema": schema, "name": name})
	if err != nil {
		return storedFunction{}, err
	}

	if arguments != nil {
		return functionByArguments(ctx, tx, all, *arguments)
	}

	switch len(all) {
	case 0:
		return storedFunction{}, noFunction()
	case 1:
		return all[0], nil
	}

	signatures := make([]string, len(all))
	for i, f := range all {
		for j, t := range f.Types {
			f.Types[j] = shortType(t)
		}
		signatures[i] = strings.Join(f.Types, ",")
	}

	ambiguous := fault.OnField(fault.Invalid, "arguments", "ambiguous",
		"is required: %d functions have this name", len(all))
	ambiguous.Extra = map[string]any{"signatures": signatures}

	return storedFunction{}, ambiguous
}

// functionByArguments returns the function with a client's argument types.
func functionByArguments(
	ctx context.Context, tx pgx.Tx, all []storedFunction, arguments string,
) (storedFunction, error) {
	specs, err := parseTypes(arguments)
	if err != nil {
		return storedFunction{}, fault.OnField(fault.Invalid, "arguments", "invalid_type",
			"must be a list of types separated by commas")
	}

	oids := make([]uint32, len(specs))
	for i, s := range specs {
		if oids[i], err = typeOID(ctx, tx, s); err != nil {
			return storedFunction{}, err
		}
	}

	for _, f := range all {
		if slices.Equal(f.OIDs, oids) {
			return f, nil
		}
	}

	return storedFunction{}, noFunction()
}

// typeOID returns the OID of any type, or 0 for an unknown one.
func typeOID(ctx context.Context, tx pgx.Tx, s typeSpec) (uint32, error) {
	oid, err := pg.Value[uint32](ctx, tx, `
select coalesce(pg_catalog.to_regtype(`+resolvedType+`), 0)::oid`, s.arguments())
	if err == nil {
		return oid, nil
	}

	return 0, translate(err, func(state string) *fault.Error {
		if blamesUser(state) {
			return fault.OnField(fault.Invalid, "arguments", "invalid_type",
				"must be a list of types separated by commas")
		}
		return nil
	})
}
