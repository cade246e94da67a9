package schema

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// NewTable describes a table to create. An empty schema means public. Several primary columns form
// a composite key.
type NewTable struct {
	Name        string
	Schema      string
	Comment     string
	Columns     []NewColumn
	Constraints []NewConstraint // in addition to the columns' constraints
}

// CreateTable creates a table with row level security enabled, in one transaction. It fails with
// Invalid on schema if the schema is reserved for the platform, with Conflict on name if the name
// is taken, and with Unprocessable on the field at fault.
func CreateTable(ctx context.Context, owner *pgxpool.Pool, n NewTable) (Table, error) {
	columns, err := n.parse(fault.Unprocessable, checkName)
	if err != nil {
		return Table{}, err
	}

	table := Table{Schema: n.Schema, Name: n.Name}
	err = change(ctx, owner, func(ctx context.Context, tx pgx.Tx) error {
		if table.ID, err = n.create(ctx, tx, columns); err != nil {
			return err
		}
		if err := addConstraints(ctx, tx, table, columns); err != nil {
			return err
		}
		if err := n.addDetails(ctx, tx, table); err != nil {
			return err
		}

		table, err = tableByID(ctx, tx, table.ID)
		return err
	})

	return table, err
}

// CreatePlainTable creates a table without constraints in tx, with row level security enabled. Its
// columns have names in any script. It fails as [CreateTable] does, but with Invalid on the schema
// and the name.
func CreatePlainTable(ctx context.Context, tx pgx.Tx, n NewTable) (Table, error) {
	columns, err := n.parse(fault.Invalid, checkLetters)
	if err != nil {
		return Table{}, err
	}

	id, err := n.create(ctx, tx, columns)
	if err != nil {
		return Table{}, err
	}

	return tableByID(ctx, tx, id)
}

// parse validates the table and returns its columns. A wrong schema or name is a fault of the kind.
func (n *NewTable) parse(kind fault.Kind, checkColumn nameCheck) ([]*newColumn, error) {
	n.Schema = cmp.Or(n.Schema, public)

	if err := checkSchema(kind, n.Schema); err != nil {
		return nil, err
	}
	if err := checkName(kind, "name", n.Name); err != nil {
		return nil, err
	}

	return checkColumns(n.Columns, checkColumn)
}

// create creates the table with its columns, and returns its ID. It adds no constraints.
func (n *NewTable) create(ctx context.Context, tx pgx.Tx, columns []*newColumn) (uint32, error) {
	if err := resolveColumns(ctx, tx, columns); err != nil {
		return 0, err
	}

	clauses := make([]string, len(columns))
	for i, c := range columns {
		clauses[i] = c.clause
	}

	sql := "create table " + pg.Quote(n.Schema, n.Name) + " (" + strings.Join(clauses, ", ") + ")"
	if err := execute(ctx, tx, sql); err != nil {
		return 0, translate(err, explainTable)
	}

	return n.enableRowSecurity(ctx, tx)
}

// enableRowSecurity enables row level security, unless the event trigger for new tables has, and
// returns the table's ID.
func (n *NewTable) enableRowSecurity(ctx context.Context, tx pgx.Tx) (id uint32, err error) {
	name := pg.Quote(n.Schema, n.Name)
	table, err := pg.One[struct {
		ID          uint32
		RowSecurity bool
	}](ctx, tx, `
		select oid as id, relrowsecurity as row_security from pg_catalog.pg_class where oid = pg_catalog.to_regclass(@name)`,
		pgx.StrictNamedArgs{"name": name})
	if err != nil || table.RowSecurity {
		return table.ID, err
	}

	return table.ID, execute(ctx, tx, "alter table "+name+" enable row level security")
}

// addDetails adds the comment and the table constraints to the new table.
func (n *NewTable) addDetails(ctx context.Context, tx pgx.Tx, t Table) error {
	if n.Comment != "" {
		if err := checkComment("comment", n.Comment); err != nil {
			return err
		}
		if err := comment(ctx, tx, "table "+pg.Quote(t.Schema, t.Name), n.Comment); err != nil {
			return translate(err, nil)
		}
	}

	for i, c := range n.Constraints {
		if _, err := c.addTo(ctx, tx, t, "constraints."+strconv.Itoa(i)+"."); err != nil {
			return err
		}
	}

	return nil
}

func explainTable(state string) *fault.Error {
	switch state {
	case "3F000": // invalid_schema_name
		return fault.OnField(fault.Unprocessable, "schema", "not_found", "is not a schema of the project")
	case "42501": // insufficient_privilege
		return fault.OnField(fault.Unprocessable, "schema", "not_owned",
			"requires CREATE on the schema and USAGE on all column types")
	case "42P16", "42804": // invalid_table_definition, datatype_mismatch
		return fault.OnField(fault.Unprocessable, "columns", "invalid_value", "can't be combined in one table")
	}

	return nameTaken(state)
}

// DuplicateTable creates a table with the given name in the source table's schema. It copies
// columns, defaults, constraints, indexes and comments, and with withRows the rows. Identity and
// serial columns get sequences of their own. Policies, grants and triggers are not copied, and row
// level security is enabled. It fails as [GetTable] does, with Conflict on name if the name is
// taken, with Conflict, code busy, if the table is locked, and with Unprocessable on the field at
// fault.
func DuplicateTable(
	ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref, name string, withRows bool,
) (Table, error) {
	var duplicate Table
	err := changeNamed(ctx, owner, func(ctx context.Context, tx pgx.Tx) error {
		t, err := GetTable(ctx, tx, project, ref)
		if err != nil {
			return err
		}

		if err := checkName(fault.Unprocessable, "name", name); err != nil {
			return err
		}
		if err := lockInMode(ctx, tx, t, "share"); err != nil { // allows concurrent reads
			return err
		}

		sql := "create table " + pg.Quote(t.Schema, name) + " (like " + pg.Quote(t.Schema, t.Name) + " including all)"
		if err := execute(ctx, tx, sql); err != nil {
			return translate(err, nameTaken)
		}

		if duplicate, err = tableByName(ctx, tx, t.Schema, name); err != nil {
			return err
		}
		if err := alter(ctx, tx, duplicate, "enable row level security"); err != nil {
			return err
		}
		if err := copyComment(ctx, tx, t, duplicate); err != nil {
			return err
		}
		if err := copySequences(ctx, tx, t, duplicate, withRows); err != nil {
			return err
		}

		if withRows {
			if err := copyRows(ctx, tx, t, duplicate); err != nil {
				return err
			}
		}

		if err := copyReferences(ctx, tx, t, duplicate); err != nil {
			return err
		}

		duplicate, err = tableByID(ctx, tx, duplicate.ID)
		return err
	})

	return duplicate, err
}

func copyComment(ctx context.Context, tx pgx.Tx, from, to Table) error {
	details, err := GetTableDetails(ctx, tx, from.ID)
	if err != nil || details.Comment == "" {
		return err
	}

	return comment(ctx, tx, "table "+pg.Quote(to.Schema, to.Name), details.Comment)
}

// copySequences gives the new table's identity and serial columns sequences of their own. With
// keepValues they continue at the current values. LIKE has copied identity columns already. A
// serial column, whose default still uses the old sequence, becomes an identity column, which makes
// no difference to writers. A nullable column can't be an identity column and loses its default.
func copySequences(ctx context.Context, tx pgx.Tx, from, to Table, keepValues bool) error {
	all, err := ListSequences(ctx, tx, from.ID)
	if err != nil {
		return err
	}

	for _, s := range all {
		if s.Identity {
			continue
		}

		action := "alter column " + pg.Quote(s.Column) + " drop default"
		if s.NotNull {
			action += ", alter column " + pg.Quote(s.Column) + " add generated by default as identity"
		}

		if err := alter(ctx, tx, to, action); err != nil {
			return translate(err, nil)
		}
	}

	if !keepValues {
		return nil
	}

	copies, err := ListSequences(ctx, tx, to.ID)
	if err != nil {
		return err
	}

	for _, m := range copies {
		i := slices.IndexFunc(all, func(s Sequence) bool { return s.Column == m.Column })
		if i < 0 {
			continue
		}

		if err := execute(ctx, tx,
			"select pg_catalog.setval("+pg.Literal(pg.Quote(m.Schema, m.Name))+
				"::pg_catalog.regclass, s.last_value, s.is_called) from "+
				pg.Quote(all[i].Schema, all[i].Name)+" s"); err != nil {
			return translate(err, nil)
		}
	}

	return nil
}

// copyRows copies the rows without generated columns. It fails if a policy applies to the owner,
// since the copy would be incomplete.
func copyRows(ctx context.Context, tx pgx.Tx, from, to Table) error {
	names, err := pg.Values[string](ctx, tx, `
		select attname from pg_catalog.pg_attribute
		where attrelid = @table and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`,
		pgx.StrictNamedArgs{"table": from.ID})
	if err != nil || len(names) == 0 {
		return err
	}

	if _, err := pg.Exec(ctx, tx, `select pg_catalog.set_config('row_security', 'off', true)`); err != nil {
		return err
	}

	err = execute(ctx, tx,
		"insert into "+pg.Quote(to.Schema, to.Name)+" ("+quoted(names)+") overriding system value select "+
			quoted(names)+" from "+pg.Quote(from.Schema, from.Name))
	return translate(err, func(state string) *fault.Error {
		if !blamesUser(state) {
			return nil
		}

		return fault.OnField(fault.Unprocessable, "with_rows", "not_copied",
			"can't be true: some rows violate the table's constraints or policies")
	})
}

// copyReferences copies the foreign keys. A self-reference becomes the new table's self-reference.
func copyReferences(ctx context.Context, tx pgx.Tx, from, to Table) error {
	all, err := pg.All[reference](ctx, tx, selectReferences, pgx.StrictNamedArgs{"table": from.ID})
	if err != nil {
		return err
	}

	for _, r := range all {
		if r.Schema == from.Schema && r.Table == from.Name {
			r.Table = to.Name
		}

		err := alter(ctx, tx, to, "add "+r.clause())
		if err := translate(err, explainReference("")); err != nil {
			return err
		}
	}

	return nil
}
