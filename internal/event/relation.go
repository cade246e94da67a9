package event

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// relation is a table whose changes clients may follow, as one role may see them.
type relation struct {
	OID           uint32
	Schema, Table string
	SQLName       string // quoted, with its schema
	Full          bool   // REPLICA IDENTITY FULL
	Secured       bool   // policies decide about the role
	Conditions    string // the policies' condition on a row, in SQL; "" if not secured
	Columns       []relationColumn
}

type relationColumn struct {
	Name     string
	Type     string // pg_type.typname
	SQLType  string // as SQL names it
	Key      bool   // part of the replica identity
	Readable bool   // the role may select it, and the publication has it
}

// findRelations selects the tables of a schema in a publication, or one of them, as a role sees
// them. An empty publication stands for all tables.
const findRelations = `
	select c.oid::bigint as oid, n.nspname::text as schema, c.relname::text as "table", format('%I.%I', n.nspname, c.relname) as sql_name,
		c.relreplident = 'f' as full,
		c.relrowsecurity and not r.rolbypassrls and not r.rolsuper as secured,
		array(select pg_get_expr(p.polqual, p.polrelid) from pg_policy p
			where p.polrelid = c.oid and p.polpermissive and p.polcmd in ('r', '*') and p.polqual is not null
			and exists (select from unnest(p.polroles) m where m = 0 or pg_has_role(r.oid, m, 'usage'))) as permissive,
		array(select pg_get_expr(p.polqual, p.polrelid) from pg_policy p
			where p.polrelid = c.oid and not p.polpermissive and p.polcmd in ('r', '*') and p.polqual is not null
			and exists (select from unnest(p.polroles) m where m = 0 or pg_has_role(r.oid, m, 'usage'))) as restrictive,
		(select json_agg(json_build_object('Name', a.attname, 'Type', t.typname, 'SQLType', format_type(a.atttypid, a.atttypmod),
				'Key', coalesce(a.attnum = any(i.indkey), false),
				'Readable', has_column_privilege(r.oid, c.oid, a.attnum, 'select')
					and (b.prattrs is null or a.attnum = any(b.prattrs))) order by a.attnum)
			from pg_attribute a join pg_type t on t.oid = a.atttypid
			where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped)::text as columns,
		coalesce(b.prqual is not null, false) as row_filter
	from pg_class c
	join pg_namespace n on n.oid = c.relnamespace
	left join pg_publication u on u.pubname = @publication
	left join pg_publication_rel b on b.prpubid = u.oid and b.prrelid = c.oid
	left join pg_index i on i.indrelid = c.oid and case c.relreplident when 'i' then i.indisreplident else i.indisprimary end
	cross join (select * from pg_roles where rolname = @role) r
	where (n.nspname = @schema or @schema = '*') and (@table = '' or c.relname = @table) and c.relkind in ('r', 'p') and c.relpersistence = 'p'
		and (@publication = '' or b.oid is not null or u.puballtables
			or exists (select from pg_publication_namespace s where s.pnpubid = u.oid and s.pnnspid = n.oid))
		and has_schema_privilege(r.oid, n.oid, 'usage')
	order by c.relname
	limit @max::bigint`

// maxRelations bounds the tables of a binding without a table.
const maxRelations = 200

// relations returns the tables in a publication that a binding names, as a role sees them. It fails
// with Invalid if there is none. An empty publication stands for all tables.
func relations(ctx context.Context, q pg.Querier, publication, role string, b Binding) ([]relation, error) {
	rows, err := pg.All[struct {
		OID                     int64 `db:"oid"`
		Schema, Table, SQLName  string
		Full, Secured           bool
		Permissive, Restrictive []string
		Columns                 string
		RowFilter               bool
	}](ctx, q, findRelations, pgx.StrictNamedArgs{"publication": publication, "role": role,
		"schema": b.Schema, "table": strings.TrimPrefix(b.Table, "*"), "max": maxRelations})
	if err != nil {
		return nil, err
	}

	var found []relation
	for _, row := range rows {
		r := relation{OID: uint32(row.OID), Schema: row.Schema, Table: row.Table, SQLName: row.SQLName, Full: row.Full,
			Secured: row.Secured}
		if err := json.Unmarshal([]byte(row.Columns), &r.Columns); err != nil {
			return nil, err
		}
		if row.RowFilter {
			return nil, fault.New(fault.Unprocessable, "table %s has a row filter in publication %s, which changes do not obey",
				row.SQLName, publication)
		}
		if row.Secured {
			r.Conditions = policyCondition(row.Permissive, row.Restrictive)
		}
		if slices.ContainsFunc(r.Columns, func(c relationColumn) bool { return c.Readable }) {
			found = append(found, r)
		}
	}

	if len(found) == 0 && publication == "" {
		return nil, fault.New(fault.Invalid, "the project has no table %s.%s", b.Schema, b.Table)
	}
	if len(found) == 0 && b.Table != "" {
		return nil, fault.New(fault.Invalid, "table %s.%s can't be followed: it does not exist, %s may not select it, or "+
			"publication %s lacks it; add it by: alter publication %[4]s add table %[5]s",
			b.Schema, b.Table, role, publication, pg.Quote(b.Schema, b.Table))
	}

	return found, nil
}

// policyCondition joins policies' conditions: one permissive policy must hold, and all restrictive
// ones.
func policyCondition(permissive, restrictive []string) string {
	if len(permissive) == 0 {
		return "false"
	}

	conditions := []string{"(" + strings.Join(permissive, ") or (") + ")"}
	conditions = append(conditions, restrictive...)

	return "(" + strings.Join(conditions, ") and (") + ")"
}

// column returns a column by name, nil if there is none that the role may read.
func (r *relation) column(name string) *relationColumn {
	for i, c := range r.Columns {
		if c.Name == name && c.Readable {
			return &r.Columns[i]
		}
	}

	return nil
}

// capture begins to capture a table, see migration 56. A busy table is a conflict.
func capture(ctx context.Context, q pg.Querier, oid uint32) error {
	_, err := pg.Exec(ctx, q, `select socle.capture($1)`, oid)
	return lockedFault(err)
}

// CodeLocked is the code of a failure to capture a table that another transaction has locked.
const CodeLocked = "table_locked"

// lockedFault turns a lock_not_available error into Unavailable.
func lockedFault(err error) error {
	if pg.State(err) == "55P03" {
		return fault.New(fault.Unavailable, "the table is locked by another transaction; try again").
			WithCode(CodeLocked)
	}

	return err
}
