package schema

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"socle/internal/fault"
	"socle/internal/pg"
)

// maxParameters is PostgreSQL's limit of parameters per function.
const maxParameters = 100

// Parameter is a parameter of a function.
type Parameter struct {
	Name string `json:"name" doc:"1 to 63 letters, digits or _, not starting with a digit."`
	Type string `json:"type" doc:"A type of the database; modifiers mean nothing here." example:"integer"`
}

// Function is a user's function or procedure.
type Function struct {
	FunctionInfo
	Definition string `json:"definition" doc:"Its body, in its language."`
}

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
	// roles of anon and authenticated that may execute it; nil means none, or no change if it is
	// replaced
	Execute *[]string
}

// CreateFunction creates a function of the project's owner that runs with the rights of its caller.
// Only roles with a grant may execute it. Unqualified names in its body resolve to the function's
// own schema, then public, then the extensions, for each caller. It fails with Conflict on name for
// the same name and argument types, unless n.Replace is set. It fails with Invalid on schema if the
// schema is reserved for the platform, with NotFound for an unknown schema, and with Unprocessable
// on the field at fault.
func CreateFunction(ctx context.Context, owner *pgxpool.Pool, n NewFunction) (Function, error) {
	if err := checkSchema(fault.Invalid, n.Schema); err != nil {
		return Function{}, err
	}

	var created Function
	err := changeNamed(ctx, owner, func(ctx context.Context, tx pgx.Tx) error {
		if err := schemaExists(ctx, tx, n.Schema); err != nil {
			return err
		}
		if err := n.check(); err != nil {
			return err
		}
		if err := checkLanguage(ctx, tx, n.Language); err != nil {
			return err
		}

		d, err := n.declare(ctx, newTypes(tx))
		if err != nil {
			return err
		}

		existing, err := d.find(ctx, tx)
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

		id, err := d.find(ctx, tx)
		if err != nil {
			return err
		}

		created, err = functionByID(ctx, tx, id)
		return err
	})

	return created, err
}

func schemaExists(ctx context.Context, q pg.Querier, schema string) error {
	found, err := pg.Value[bool](ctx, q, `select exists (select from pg_catalog.pg_namespace where nspname = @schema)`,
		pgx.StrictNamedArgs{"schema": schema})
	if err == nil && !found {
		return fault.New(fault.NotFound, "there is no such schema")
	}

	return err
}

// check validates the function without the database.
func (n NewFunction) check() error {
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
	if !storable(n.Definition) {
		return fault.OnField(fault.Unprocessable, "definition", "invalid_value", "must be text without a NUL")
	}

	return nil
}

// DeleteFunction drops a function or procedure. arguments are its argument types, separated by
// commas; nil selects the only function of the name. It fails with Invalid on schema, functionName
// or arguments if the value is malformed, with Invalid, code ambiguous and the member signatures,
// if several functions have the name, with NotFound if none has it, and with Conflict, code in_use,
// if other objects depend on it.
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

		err = execute(ctx, tx, "drop "+f.Kind+" "+pg.Quote(schema, name)+"("+f.Arguments+") restrict")
		switch pg.State(err) {
		// undefined_function, invalid_schema_name, undefined_object; internal_error if it is
		// dropped between PostgreSQL's lookup and its lock
		case "42883", "3F000", "42704", "XX000":
			return errConcurrentChange
		}

		return translate(err, nil)
	})
}

func noFunction() *fault.Error { return fault.New(fault.NotFound, "there is no such function") }

// storedFunction is a function as the catalog has it.
type storedFunction struct {
	OID       uint32
	Kind      string   // function or procedure
	Arguments string   // argument types as SQL, quoted by PostgreSQL
	OIDs      []uint32 // of the argument types
	Types     []string // of the argument types, for clients
}

// findFunction returns the function of a name and optional argument types. It fails as
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
		"must say which one of %d functions is meant", len(all))
	ambiguous.Extra = map[string]any{"signatures": signatures}

	return storedFunction{}, ambiguous
}

// functionByArguments returns the function with the argument types that a client wrote.
func functionByArguments(ctx context.Context, tx pgx.Tx, all []storedFunction, arguments string) (storedFunction, error) {
	specs, err := parseTypes(arguments)
	if err != nil {
		return storedFunction{}, fault.OnField(fault.Invalid, "arguments", "invalid_type",
			"must be types separated by commas")
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
			return fault.OnField(fault.Invalid, "arguments", "invalid_type", "must be types separated by commas")
		}
		return nil
	})
}
