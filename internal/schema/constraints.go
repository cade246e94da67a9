package schema

import (
	"context"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Constraint is a table constraint. Not null constraints are column properties.
type Constraint struct {
	Name             string   `json:"name"`
	Type             string   `json:"type" enum:"check,unique,primary,foreign,exclude"`
	Columns          []string `json:"columns" nullable:"false" doc:"In the order of the constraint."`
	Definition       string   `json:"definition" doc:"As the database prints it."`
	ReferenceTable   *string  `json:"referenceTable" nullable:"true" doc:"Full name of the table that a foreign key references."`
	ReferenceColumns []string `json:"referenceColumns" nullable:"false"`
	OnUpdate         *string  `json:"onUpdate" nullable:"true" doc:"Action of a foreign key when the referenced row changes."`
	OnDelete         *string  `json:"onDelete" nullable:"true" doc:"Action of a foreign key when the referenced row is deleted."`
	Validated        bool     `json:"validated" doc:"False if the constraint is checked for new rows only; older rows may violate it."`
	Deferral
}

// NewConstraint describes a constraint to create. If Name is empty, PostgreSQL chooses one.
type NewConstraint struct {
	Name              string   `json:"name,omitempty" doc:"1 to 63 letters, digits or _, not starting with a digit. By default, the database chooses a name."`
	Type              string   `json:"type" enum:"check,unique,primary,foreign"`
	Columns           []string `json:"columns,omitempty" maxItems:"32" doc:"For all types except check."`
	Expression        string   `json:"expression,omitempty" maxLength:"10000" doc:"For check: an SQL condition on one row. Unqualified names are searched in pg_catalog, the table's schema and public."`
	ReferenceTable    string   `json:"reference_table,omitempty" doc:"For foreign: schema.table, or table for public.table."`
	ReferenceColumns  []string `json:"reference_columns,omitempty" maxItems:"32" doc:"As many as columns; together they must be unique or the primary key of the referenced table."`
	OnUpdate          string   `json:"on_update,omitempty" enum:"no action,restrict,cascade,set null,set default"`
	OnDelete          string   `json:"on_delete,omitempty" enum:"no action,restrict,cascade,set null,set default"`
	NotValid          bool     `json:"not_valid,omitempty" doc:"For check and foreign: existing rows are not checked until the constraint is validated."`
	Deferrable        bool     `json:"deferrable,omitempty" doc:"For all types except check: SET CONSTRAINTS can defer it until the end of the transaction."`
	InitiallyDeferred bool     `json:"initially_deferred,omitempty" doc:"For a deferrable constraint: deferred by default."`
}

// keyAction is the SQL expression for a foreign key action, from its letter in the catalog.
func keyAction(letter string) string {
	return `case ` + letter +
		` when 'a' then 'no action' when 'r' then 'restrict' when 'c' then 'cascade' when 'n' then 'set null' when 'd' then 'set default' end`
}

var selectConstraints = `
	select k.conname as name, case k.contype when 'c' then 'check' when 'u' then 'unique' when 'p' then 'primary'
			when 'f' then 'foreign' else 'exclude' end as type,
		array(select a.attname::text from pg_catalog.unnest(k.conkey) with ordinality n(number, at)
			join pg_catalog.pg_attribute a on a.attrelid = k.conrelid and a.attnum = n.number order by n.at) as columns,
		coalesce(pg_catalog.pg_get_constraintdef(k.oid), '') as definition, -- null if dropped concurrently
		(select rn.nspname || '.' || r.relname from pg_catalog.pg_class r join pg_catalog.pg_namespace rn on rn.oid = r.relnamespace
			where r.oid = k.confrelid) as reference_table,
		array(select a.attname::text from pg_catalog.unnest(k.confkey) with ordinality n(number, at)
			join pg_catalog.pg_attribute a on a.attrelid = k.confrelid and a.attnum = n.number order by n.at) as reference_columns,
		` + keyAction("k.confupdtype") + ` as on_update, ` + keyAction("k.confdeltype") + ` as on_delete, k.convalidated as validated,
		k.condeferrable as deferrable, k.condeferred as initially_deferred
	from pg_catalog.pg_constraint k
	where k.conrelid = @table and k.contype in ('c', 'u', 'p', 'f', 'x') and ` + notClone + `
	order by k.conname`

// notClone is the SQL condition that constraint k is no clone. PostgreSQL clones a foreign key to a
// partitioned table for each partition that the key can refer to.
const notClone = `not exists (select from pg_catalog.pg_constraint whole where whole.oid = k.conparentid and whole.conrelid = k.conrelid)`

// ListConstraints returns a table's constraints by name. It fails as [GetTable] does.
func ListConstraints(ctx context.Context, q pg.Querier, project uuid.UUID, ref string) ([]Constraint, error) {
	t, err := GetTable(ctx, q, project, ref)
	if err != nil {
		return nil, err
	}

	return constraintsOf(ctx, q, t)
}

func constraintsOf(ctx context.Context, q pg.Querier, t Table) ([]Constraint, error) {
	return pg.All[Constraint](ctx, q, selectConstraints, pgx.StrictNamedArgs{"table": t.ID})
}

func constraintByName(ctx context.Context, q pg.Querier, t Table, name string) (Constraint, error) {
	all, err := constraintsOf(ctx, q, t)
	if err != nil {
		return Constraint{}, err
	}

	for _, c := range all {
		if c.Name == name {
			return c, nil
		}
	}

	return Constraint{}, fault.New(fault.NotFound, "there is no such constraint")
}

// CreateConstraint adds a constraint to a table. It fails as [GetTable] does, with Conflict on name
// or type if the table has that name or a primary key already, with Conflict, code busy, if the
// table is locked, and with Unprocessable on the field at fault.
func CreateConstraint(
	ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref string, n NewConstraint,
) (Constraint, error) {
	var constraint Constraint
	err := changeTable(ctx, owner, project, ref, func(ctx context.Context, tx pgx.Tx, t Table) error {
		var err error
		constraint, err = n.addTo(ctx, tx, t, "")
		return err
	})
	return constraint, err
}

// addTo adds the constraint to a table. prefix precedes field names in errors.
func (n NewConstraint) addTo(ctx context.Context, tx pgx.Tx, t Table, prefix string) (Constraint, error) {
	if n.Name != "" {
		if err := checkName(fault.Unprocessable, prefix+"name", n.Name); err != nil {
			return Constraint{}, err
		}
	}

	existing, err := constraintsOf(ctx, tx, t)
	if err != nil {
		return Constraint{}, err
	}

	err = withSearchPath(ctx, tx, t.Schema, func() error {
		clause, err := n.clause(ctx, tx, t, prefix)
		if err != nil {
			return err
		}

		if n.Name != "" {
			clause = "constraint " + pg.Quote(n.Name) + " " + clause
		}

		err = alter(ctx, tx, t, "add "+clause)
		if pg.Violates(err, relationNameIndex) {
			return n.explain(prefix)("42P07").WithCause(err)
		}

		return translate(err, n.explain(prefix))
	})
	if err != nil {
		return Constraint{}, err
	}

	constraints, err := constraintsOf(ctx, tx, t)
	for _, c := range constraints {
		if !slices.ContainsFunc(existing, func(b Constraint) bool { return b.Name == c.Name }) {
			return c, err
		}
	}

	return Constraint{}, err
}

func (n NewConstraint) deferral() Deferral { return Deferral{n.Deferrable, n.InitiallyDeferred} }

// clause returns the constraint's SQL, without the name.
func (n NewConstraint) clause(ctx context.Context, tx pgx.Tx, t Table, prefix string) (string, error) {
	if err := n.checkParts(prefix); err != nil {
		return "", err
	}

	valid := ""
	if n.NotValid {
		valid = " not valid"
	}

	if n.Type == "check" {
		text, err := condition(ctx, tx, t, prefix+"expression", n.Expression)
		return "check " + text + valid, err
	}

	if err := checkColumnNames(ctx, tx, t, prefix+"columns", n.Columns); err != nil {
		return "", err
	}

	switch n.Type {
	case "unique":
		return "unique (" + quoted(n.Columns) + ")" + n.deferral().clause(), nil
	case "primary":
		return "primary key (" + quoted(n.Columns) + ")" + n.deferral().clause(), nil
	}

	noTable := fault.OnField(fault.Unprocessable, prefix+"reference_table", "not_found",
		"is not one of the project's tables")

	target, err := namedTable(ctx, tx, n.ReferenceTable)
	if fault.Is(err, fault.NotFound) {
		return "", noTable.WithCause(err)
	}
	if err != nil {
		return "", err
	}
	if err := checkColumnNames(ctx, tx, target, prefix+"reference_columns", n.ReferenceColumns); err != nil {
		return "", err
	}

	r := reference{Columns: n.Columns, Schema: target.Schema, Table: target.Name, ReferenceColumns: n.ReferenceColumns,
		OnUpdate: n.OnUpdate, OnDelete: n.OnDelete, Deferral: n.deferral(), Validated: !n.NotValid}
	return r.clause(), nil
}

// checkParts checks that the constraint has the parts that its type requires, and no others.
func (n NewConstraint) checkParts(prefix string) error {
	for _, part := range []struct {
		field string
		isSet bool
		types []string
		need  bool
	}{
		{"expression", n.Expression != "", []string{"check"}, true},
		{"columns", len(n.Columns) > 0, []string{"unique", "primary", "foreign"}, true},
		{"reference_table", n.ReferenceTable != "", []string{"foreign"}, true},
		{"reference_columns", len(n.ReferenceColumns) > 0, []string{"foreign"}, true},
		{"on_update", n.OnUpdate != "", []string{"foreign"}, false},
		{"on_delete", n.OnDelete != "", []string{"foreign"}, false},
		{"not_valid", n.NotValid, []string{"check", "foreign"}, false},
		{"deferrable", n.Deferrable, []string{"unique", "primary", "foreign"}, false},
		{"initially_deferred", n.InitiallyDeferred, []string{"unique", "primary", "foreign"}, false},
	} {
		switch applies := slices.Contains(part.types, n.Type); {
		case part.isSet && !applies:
			return fault.OnField(fault.Unprocessable, prefix+part.field, "not_applicable",
				"does not apply to this type of constraint")
		case !part.isSet && applies && part.need:
			return fault.OnField(fault.Unprocessable, prefix+part.field, "required",
				"is required for this type of constraint")
		}
	}

	if n.InitiallyDeferred && !n.Deferrable {
		return fault.OnField(fault.Unprocessable, prefix+"initially_deferred", "not_applicable",
			"requires deferrable")
	}
	if n.Type == "foreign" && len(n.Columns) != len(n.ReferenceColumns) {
		return fault.OnField(fault.Unprocessable, prefix+"reference_columns", "mismatch",
			"must have as many names as columns")
	}

	return nil
}

// checkColumnNames checks that the names are distinct columns in a table.
func checkColumnNames(ctx context.Context, tx pgx.Tx, t Table, field string, names []string) error {
	columns, err := columnNames(ctx, tx, t.ID)
	if err != nil {
		return err
	}

	for i, name := range names {
		at := field + "." + strconv.Itoa(i)
		if !slices.Contains(columns, name) {
			return fault.OnField(fault.Unprocessable, at, "not_found", "is not a column of the table")
		}
		if slices.Contains(names[:i], name) {
			return fault.OnField(fault.Unprocessable, at, "duplicate", "is a duplicate")
		}
	}

	return nil
}

// explain translates an SQLSTATE from ADD CONSTRAINT.
func (n NewConstraint) explain(prefix string) func(state string) *fault.Error {
	return func(state string) *fault.Error {
		switch state {
		case "42710", "42P07": // duplicate_object, duplicate_table for its index
			return fault.OnField(fault.Conflict, prefix+"name", "already_exists",
				"is already used by a constraint of the table, or by a table or index of the schema")
		case "42P16": // invalid_table_definition
			if n.Type == "primary" {
				return fault.OnField(fault.Conflict, prefix+"type", "already_exists",
					"can't be primary: the table already has a primary key")
			}
		}

		switch n.Type {
		case "foreign":
			return explainReference(prefix)(state)
		case "check":
			if state == "23514" { // check_violation
				return fault.OnField(fault.Unprocessable, prefix+"expression", "violated",
					"is violated by existing rows: set not_valid to check only new rows")
			}
			if blamesUser(state) {
				return badExpression(prefix+"expression", state)
			}

			return nil
		}

		switch state {
		case "23505": // unique_violation
			return fault.OnField(fault.Unprocessable, prefix+"columns", "not_unique",
				"can't be unique: the table has rows with duplicate values")
		case "23502": // not_null_violation
			return fault.OnField(fault.Unprocessable, prefix+"columns", "null",
				"can't be the primary key: some rows have no value")
			// no operator class, not part of the partition key, too large
		case "42704", "0A000", "54000", "54011":
			return fault.OnField(fault.Unprocessable, prefix+"columns", "not_supported",
				"can't be unique: a type has no ordering, the values are too large, or the partition key is not included")
		}

		return nil
	}
}

// ValidateConstraint validates a constraint that was created for new rows only. It fails as
// [GetTable] does, with NotFound for an unknown constraint, with Conflict, code violated, if
// existing rows violate it, and with Conflict, code busy, if the table is locked.
func ValidateConstraint(
	ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref, name string,
) (Constraint, error) {
	var valid Constraint
	err := changeNamed(ctx, owner, func(ctx context.Context, tx pgx.Tx) error {
		t, err := GetTable(ctx, tx, project, ref)
		if err != nil {
			return err
		}

		// This mode allows concurrent reads and writes.
		if err := lockInMode(ctx, tx, t, "share update exclusive"); err != nil {
			return err
		}

		if valid, err = constraintByName(ctx, tx, t, name); err != nil || valid.Validated {
			return err
		}

		if err := alter(ctx, tx, t, "validate constraint "+pg.Quote(name)); err != nil {
			return translate(err, func(state string) *fault.Error {
				if !blamesUser(state) {
					return nil
				}
				return fault.New(fault.Conflict, "existing rows violate the constraint").WithCode("violated")
			})
		}

		valid, err = constraintByName(ctx, tx, t, name)
		return err
	})

	return valid, err
}

// DeleteConstraint drops a constraint. With cascade it also drops its dependents and returns them.
// It fails as [GetTable] does, with NotFound for an unknown constraint, with Conflict, code in_use
// and the member dependents, if other objects depend on it and cascade is not set, and with
// Conflict, code busy, if the table is locked.
func DeleteConstraint(
	ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref, name string, cascade bool,
) (constraint Constraint, dependents []Dependent, err error) {
	err = changeTable(ctx, owner, project, ref, func(ctx context.Context, tx pgx.Tx, t Table) error {
		var err error
		if constraint, err = constraintByName(ctx, tx, t, name); err != nil {
			return err
		}

		id, err := pg.Value[uint32](ctx, tx,
			`select oid from pg_catalog.pg_constraint where conrelid = @table and conname = @name`,
			pgx.StrictNamedArgs{"table": t.ID, "name": name})
		if err != nil {
			return err
		}

		dependents, err = drop(ctx, tx, "alter table "+pg.Quote(t.Schema, t.Name)+" drop constraint "+pg.Quote(name),
			object{"pg_constraint", id, 0}, cascade)
		return err
	})

	return constraint, dependents, err
}
