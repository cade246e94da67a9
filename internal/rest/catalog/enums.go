package catalog

import (
	"context"

	"github.com/socle-dev/socle/internal/pg"
)

// Enum is an enum type.
type Enum struct {
	Name
	Type   string // SQL text, as in the columns and parameters of the type
	Values []string
}

// ReadEnums returns the enums of all schemas, by schema and name. They are not part of a [Catalog]:
// only generated descriptions of a database need them, requests do not.
func ReadEnums(ctx context.Context, q pg.Querier) ([]Enum, error) {
	type row struct {
		Schema, Name, Type string
		Labels             []string
	}

	rows, err := pg.All[row](ctx, q, `
		select n.nspname as schema, t.typname as name, pg_catalog.format_type(t.oid, -1) as type,
			array(select e.enumlabel::text from pg_catalog.pg_enum e where e.enumtypid = t.oid order by e.enumsortorder) as labels
		from pg_catalog.pg_type t join pg_catalog.pg_namespace n on n.oid = t.typnamespace
		where t.typtype = 'e'
		order by n.nspname, t.typname`)

	enums := make([]Enum, len(rows))
	for i, r := range rows {
		enums[i] = Enum{Name{r.Schema, r.Name}, r.Type, r.Labels}
	}

	return enums, err
}
