package schema

import (
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// reference is a foreign key. Its column and table names come from the catalog or were checked
// against it. The actions come from the API's closed list, or are "".
type reference struct {
	Columns          []string
	Schema           string
	Table            string
	ReferenceColumns []string
	OnUpdate         string
	OnDelete         string
	Full             bool // MATCH FULL
	Validated        bool
	Deferral
}

// selectReferences selects a table's foreign keys, without a partition's inherited ones.
var selectReferences = `
	select array(select a.attname::text from pg_catalog.unnest(k.conkey) with ordinality n(number, at)
			join pg_catalog.pg_attribute a on a.attrelid = k.conrelid and a.attnum = n.number order by n.at) as columns,
		rn.nspname as schema, r.relname as table,
		array(select a.attname::text from pg_catalog.unnest(k.confkey) with ordinality n(number, at)
			join pg_catalog.pg_attribute a on a.attrelid = k.confrelid and a.attnum = n.number order by n.at) as reference_columns,
		` + keyAction("k.confupdtype") + ` as on_update, ` + keyAction("k.confdeltype") + ` as on_delete,
		k.confmatchtype = 'f' as full, k.condeferrable as deferrable, k.condeferred as initially_deferred, k.convalidated as validated
	from pg_catalog.pg_constraint k
	join pg_catalog.pg_class r on r.oid = k.confrelid
	join pg_catalog.pg_namespace rn on rn.oid = r.relnamespace
	where k.conrelid = @table and k.contype = 'f' and k.conparentid = 0
	order by k.conname`

// clause returns the foreign key's SQL, without a name.
func (r reference) clause() string {
	sql := "foreign key (" + quoted(r.Columns) + ") references " + pg.Quote(r.Schema, r.Table) + " (" +
		quoted(r.ReferenceColumns) + ")"

	if r.Full {
		sql += " match full"
	}
	if r.OnUpdate != "" {
		sql += " on update " + r.OnUpdate
	}
	if r.OnDelete != "" {
		sql += " on delete " + r.OnDelete
	}

	sql += r.Deferral.clause()
	if !r.Validated {
		sql += " not valid"
	}

	return sql
}

// explainReference translates an SQLSTATE from ADD FOREIGN KEY.
func explainReference(prefix string) func(state string) *fault.Error {
	on := func(field, code, message string) *fault.Error {
		return fault.OnField(fault.Unprocessable, prefix+field, code, "%s", message)
	}
	return func(state string) *fault.Error {
		switch state {
		case "42P01": // undefined_table: dropped concurrently
			return on("reference_table", "not_found", "is not one of the project's tables")
		case "42703": // undefined_column: dropped concurrently
			return on("reference_columns", "not_found", "are not columns of the referenced table")
		case "42830", "55000": // invalid_foreign_key: not unique; deferrable unique constraint
			return on("reference_columns", "not_unique",
				"are together neither unique nor the primary key of the referenced table")
			// datatype_mismatch, undefined_function (no comparison operator), undefined_object
		case "42804", "42883", "42704":
			return on("columns", "invalid_type", "can't be compared with the referenced columns")
		case "23503": // foreign_key_violation
			return on("columns", "not_found",
				"have values that the referenced columns lack: set not_valid to check only new rows")
			// insufficient_privilege, other persistence, no table
		case "42501", "42P16", "42809", "0A000", "42601":
			return on("reference_table", "not_supported", "is not a table that this one can reference in this way")
		}

		return nil
	}
}
