// Package extension keeps extension state that no dump has: privileges, row security and owners
// that an operator changed after CREATE EXTENSION.
package extension

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// Changes is how a project's extension members differ from the extensions' scripts. pg_dump
// includes only their privileges, as statements that only the objects' owner can run. It omits
// multirange types, which have separate privileges before PostgreSQL 17.
type Changes struct {
	Tables []Table  `json:"tables"`           // all extension tables
	Rights []Object `json:"rights,omitempty"` // objects with changed privileges
}

// Table is an extension table's row security.
type Table struct {
	Schema      string   `json:"schema"`
	Name        string   `json:"name"`
	Owned       bool     `json:"owned,omitempty"` // by the project's owner
	RowSecurity bool     `json:"rowSecurity,omitempty"`
	Forced      bool     `json:"forced,omitempty"`
	Policies    []Policy `json:"policies,omitempty"`
}

// Policy is a policy on an extension table.
type Policy struct {
	Name       string   `json:"name"`
	Permissive bool     `json:"permissive"`
	Command    string   `json:"command"` // as in pg_policy.polcmd: r, a, w, d or *
	Roles      []string `json:"roles"`   // "" is PUBLIC
	Using      string   `json:"using"`   // an expression with all names qualified; "" for none
	Check      string   `json:"check"`
}

// Object is an extension member or a multirange type with changed privileges.
type Object struct {
	Kind     string  `json:"kind"`     // as pg_identify_object returns it: table, function, type and so on
	Identity string  `json:"identity"` // as pg_identify_object returns it
	Grants   []Grant `json:"grants,omitempty"`
}

// Grant is a privilege granted to a role other than the object's owner.
type Grant struct {
	Role      string `json:"role"` // "" is PUBLIC
	Privilege string `json:"privilege"`
	Grantable bool   `json:"grantable,omitempty"`
}

const selectTables = `
	select n.nspname as schema, c.relname as name, pg_get_userbyid(c.relowner) = @owner as owned, c.relrowsecurity as row_security, c.relforcerowsecurity as forced,
		coalesce((
			select jsonb_agg(jsonb_build_object('name', p.polname, 'permissive', p.polpermissive, 'command', p.polcmd,
				'roles', (select jsonb_agg(case when r = 0 then '' else pg_get_userbyid(r) end order by r) from unnest(p.polroles) r),
				'using', coalesce(pg_get_expr(p.polqual, p.polrelid), ''), 'check', coalesce(pg_get_expr(p.polwithcheck, p.polrelid), '')) order by p.polname)
			from pg_policy p where p.polrelid = c.oid), '[]')::text as policies
	from pg_depend d
	join pg_class c on c.oid = d.objid
	join pg_namespace n on n.oid = c.relnamespace
	where d.classid = 'pg_class'::regclass and d.refclassid = 'pg_extension'::regclass and d.deptype = 'e' and c.relkind in ('r', 'p')
	order by 1, 2`

// selectRights compares the privileges on extension members and multirange types with the initial
// ones. The owner's own privileges are left out, since they follow the owner.
const selectRights = `
	with members as (
		select d.classid, d.objid from pg_depend d where d.refclassid = 'pg_extension'::regclass and d.deptype = 'e'
		union
		select 'pg_type'::regclass, t.oid from pg_type t where t.typtype = 'm' and t.oid >= 16384 and current_setting('server_version_num')::int < 170000
	), objects as (
		select m.classid, m.objid, 0 as part, c.relacl as acl, acldefault(case c.relkind when 'S' then 's' else 'r' end::"char", c.relowner) as usual
		from members m join pg_class c on c.oid = m.objid where m.classid = 'pg_class'::regclass and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
		union all
		select m.classid, m.objid, a.attnum, a.attacl, acldefault('c', c.relowner)
		from members m join pg_class c on c.oid = m.objid join pg_attribute a on a.attrelid = m.objid
		where m.classid = 'pg_class'::regclass and a.attnum > 0 and not a.attisdropped
		union all
		select m.classid, m.objid, 0, p.proacl, acldefault('f', p.proowner) from members m join pg_proc p on p.oid = m.objid where m.classid = 'pg_proc'::regclass
		union all
		select m.classid, m.objid, 0, t.typacl, acldefault('T', t.typowner) from members m join pg_type t on t.oid = m.objid
		where m.classid = 'pg_type'::regclass and t.typtype <> 'p' and t.typelem = 0
	), compared as (
		select o.*, (
				select array_agg(row(x.grantee, x.privilege_type, x.is_grantable) order by x.grantee, x.privilege_type, x.is_grantable)
				from aclexplode(coalesce(o.acl, o.usual)) x where x.grantee <> x.grantor) as now,
			(
				select array_agg(row(x.grantee, x.privilege_type, x.is_grantable) order by x.grantee, x.privilege_type, x.is_grantable)
				from aclexplode(coalesce((
					select i.initprivs from pg_init_privs i where i.classoid = o.classid and i.objoid = o.objid and i.objsubid = o.part), o.usual)) x
				where x.grantee <> x.grantor) as made
		from objects o
	)
	select i.type as kind, i.identity as identity, coalesce((
			select jsonb_agg(jsonb_build_object('role', case when x.grantee = 0 then '' else pg_get_userbyid(x.grantee) end,
				'privilege', x.privilege_type, 'grantable', x.is_grantable))
			from aclexplode(coalesce(c.acl, c.usual)) x where x.grantee <> x.grantor), '[]')::text as grants,
		c.now is distinct from c.made as other
	from compared c cross join lateral pg_identify_object(c.classid, c.objid, c.part) i
	order by 1, 2`

// rightsRow is an extension member or a multirange type, and its privileges.
type rightsRow struct {
	Kind, Identity, Grants string
	Other                  bool // privileges differ from the initial ones
}

// Read returns the changes to extension members and multirange types in q's database. owner is the
// project owner's login.
func Read(ctx context.Context, q pg.Querier, owner string) (*Changes, error) {
	type table struct {
		Schema, Name               string
		Owned, RowSecurity, Forced bool
		Policies                   string
	}

	tables, err := pg.All[table](ctx, q, selectTables, pgx.StrictNamedArgs{"owner": owner})
	if err != nil {
		return nil, err
	}

	e := &Changes{Tables: make([]Table, len(tables))}
	for i, t := range tables {
		e.Tables[i] = Table{
			Schema:      t.Schema,
			Name:        t.Name,
			Owned:       t.Owned,
			RowSecurity: t.RowSecurity,
			Forced:      t.Forced,
		}
		if err := json.Unmarshal([]byte(t.Policies), &e.Tables[i].Policies); err != nil {
			return nil, err
		}
	}

	objects, err := pg.All[rightsRow](ctx, q, selectRights)
	if err != nil {
		return nil, err
	}

	for _, o := range objects {
		if !o.Other {
			continue
		}

		object := Object{Kind: o.Kind, Identity: o.Identity}
		if err := json.Unmarshal([]byte(o.Grants), &object.Grants); err != nil {
			return nil, err
		}

		e.Rights = append(e.Rights, object)
	}

	return e, nil
}

// Unrestored returns warnings about changes to extension tables that are in no backup.
//
// A restore does not repeat them: expressions on an operator's table would run with an operator's
// privileges. An added object has a higher OID than all objects that the extension's script
// created. Columns and comments have no OID and are recognized by the transaction that wrote them.
// A grant on a column, which is restored, writes the column too.
func Unrestored(ctx context.Context, q pg.Querier) ([]string, error) {
	return pg.Values[string](ctx, q, `
		with tables as (
			select c.oid, format('%I.%I', n.nspname, c.relname) as name, e.xmin as updated,
				(select a.xmin from pg_attribute a where a.attrelid = c.oid and a.attnum = -6) as made, -- tableoid, which nobody changes
				(select max(o.objid::bigint) from pg_depend o where o.refclassid = 'pg_extension'::regclass and o.refobjid = d.refobjid and o.deptype = 'e') as last
			from pg_depend d
			join pg_extension e on e.oid = d.refobjid
			join pg_class c on c.oid = d.objid
			join pg_namespace n on n.oid = c.relnamespace
			where d.classid = 'pg_class'::regclass and d.refclassid = 'pg_extension'::regclass and d.deptype = 'e' and c.relkind in ('r', 'p')
		), columns as (
			select t.*, a.attname, a.attacl, a.attnum, a.xmin not in (t.made, t.updated) as written,
				max(a.attnum) filter (where a.xmin in (t.made, t.updated)) over (partition by t.oid) as untouched
			from tables t join pg_attribute a on a.attrelid = t.oid where a.attnum > 0 and not a.attisdropped
		), added as (
			select t.name, 'index ' || i.indexrelid::regclass::text as what from tables t join pg_index i on i.indrelid = t.oid where i.indexrelid::bigint > t.last
			union all
			select t.name, 'trigger ' || quote_ident(g.tgname) from tables t join pg_trigger g on g.tgrelid = t.oid where not g.tgisinternal and g.oid::bigint > t.last
			union all
			select t.name, 'rule ' || quote_ident(r.rulename) from tables t join pg_rewrite r on r.ev_class = t.oid where r.oid::bigint > t.last
			union all
			select t.name, 'constraint ' || quote_ident(k.conname) from tables t join pg_constraint k on k.conrelid = t.oid where k.oid::bigint > t.last
			union all
			select t.name, 'statistics ' || quote_ident(x.stxname) from tables t join pg_statistic_ext x on x.stxrelid = t.oid where x.oid::bigint > t.last
			union all
			select name, 'added or changed column ' || quote_ident(attname) from columns where written and (attacl is null or attnum > untouched)
			union all
			select t.name, 'comment' || coalesce(' on column ' || quote_ident(a.attname), '')
			from tables t
			join pg_description c on c.objoid = t.oid and c.classoid = 'pg_class'::regclass and c.xmin not in (t.made, t.updated)
			left join pg_attribute a on a.attrelid = t.oid and a.attnum = c.objsubid and c.objsubid > 0
		)
		select format('the %s of %s, a table of an extension, is in no backup', what, name) as warning from added
		order by 1`)
}
