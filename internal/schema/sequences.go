package schema

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// Sequence is an identity or serial column's sequence.
type Sequence struct {
	Column   string
	Schema   string
	Name     string
	Identity bool
	NotNull  bool
}

// ListSequences returns the sequences for a table's identity and serial columns.
func ListSequences(ctx context.Context, tx pgx.Tx, table uint32) ([]Sequence, error) {
	return pg.All[Sequence](ctx, tx, `
		select a.attname as column, n.nspname as schema, c.relname as name, d.deptype = 'i' as identity, a.attnotnull as not_null
		from pg_catalog.pg_depend d
		join pg_catalog.pg_class c on c.oid = d.objid and c.relkind = 'S'
		join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		join pg_catalog.pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
		where d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
			and d.refobjid = @table and d.deptype in ('a', 'i')
		order by a.attnum`, pgx.StrictNamedArgs{"table": table})
}

// AdvanceSequence moves a sequence past values that were stored in its column, from lowest to
// highest. A sequence past them stays. Like nextval, it is not undone by a rollback.
func AdvanceSequence(ctx context.Context, tx pgx.Tx, s Sequence, lowest, highest int64) error {
	name := pg.Quote(s.Schema, s.Name)

	err := execute(ctx, tx, fmt.Sprintf(`
		select case
			when o.seqincrement > 0 and (l.last_value < '%[3]d' or (l.last_value = '%[3]d' and not l.is_called))
				then pg_catalog.setval(o.seqrelid, least('%[3]d', o.seqmax))
			when o.seqincrement < 0 and (l.last_value > '%[4]d' or (l.last_value = '%[4]d' and not l.is_called))
				then pg_catalog.setval(o.seqrelid, greatest('%[4]d', o.seqmin))
		end
		from %[1]s l join pg_catalog.pg_sequence o on o.seqrelid = %[2]s::pg_catalog.regclass`,
		name, pg.Literal(name), highest, lowest))

	return translate(err, nil)
}
