package tenant

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"socle/internal/pg"
)

// ExtensionChanges is the state of a project's extension members that differs from the extension's
// script. pg_dump includes only their privileges, as statements that only the objects' owner can
// run. It omits multirange types, which have privileges of their own before PostgreSQL 17.
type ExtensionChanges struct {
	Tables []ExtensionTable  `json:"tables"`           // all tables of extensions
	Rights []ExtensionObject `json:"rights,omitempty"` // objects with changed privileges
}

// ExtensionTable is the row security of an extension's table.
type ExtensionTable struct {
	Schema      string            `json:"schema"`
	Name        string            `json:"name"`
	Owned       bool              `json:"owned,omitempty"` // by the project's owner
	RowSecurity bool              `json:"rowSecurity,omitempty"`
	Forced      bool              `json:"forced,omitempty"`
	Policies    []ExtensionPolicy `json:"policies,omitempty"`
}

// ExtensionPolicy is a policy of an extension's table.
type ExtensionPolicy struct {
	Name       string   `json:"name"`
	Permissive bool     `json:"permissive"`
	Command    string   `json:"command"` // as in pg_policy.polcmd: r, a, w, d or *
	Roles      []string `json:"roles"`   // "" is PUBLIC
	Using      string   `json:"using"`   // an expression with all names qualified; "" for none
	Check      string   `json:"check"`
}

// ExtensionObject is the access privileges of an extension's object, or of a multirange type.
type ExtensionObject struct {
	Kind     string           `json:"kind"`     // as pg_identify_object returns it: table, function, type and so on
	Identity string           `json:"identity"` // as pg_identify_object returns it
	Grants   []ExtensionGrant `json:"grants,omitempty"`
}

// ExtensionGrant is a privilege granted to a role other than the object's owner.
type ExtensionGrant struct {
	Role      string `json:"role"` // "" is PUBLIC
	Privilege string `json:"privilege"`
	Grantable bool   `json:"grantable,omitempty"`
}

const selectExtendedTables = `
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

// selectExtendedRights compares the privileges of extension members, and of multirange types, with
// the initial ones. The owner's own privileges are left out, since they follow the owner.
const selectExtendedRights = `
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

// extendedRow is an object of an extension and its privileges.
type extendedRow struct {
	Kind, Identity, Grants string
	Other                  bool // privileges differ from the initial ones
}

// ExtensionChanges returns the changes to the extension members and multirange types of a project's
// database, to which q is connected.
func (r *Registry) ExtensionChanges(ctx context.Context, q pg.Querier, project uuid.UUID) (*ExtensionChanges, error) {
	type table struct {
		Schema, Name               string
		Owned, RowSecurity, Forced bool
		Policies                   string
	}

	tables, err := pg.All[table](ctx, q, selectExtendedTables, pgx.StrictNamedArgs{"owner": r.login(project, owner)})
	if err != nil {
		return nil, err
	}

	e := &ExtensionChanges{Tables: make([]ExtensionTable, len(tables))}
	for i, t := range tables {
		e.Tables[i] = ExtensionTable{
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

	objects, err := pg.All[extendedRow](ctx, q, selectExtendedRights)
	if err != nil {
		return nil, err
	}

	for _, o := range objects {
		if !o.Other {
			continue
		}

		object := ExtensionObject{Kind: o.Kind, Identity: o.Identity}
		if err := json.Unmarshal([]byte(o.Grants), &object.Grants); err != nil {
			return nil, err
		}

		e.Rights = append(e.Rights, object)
	}

	return e, nil
}

// UnrestoredChanges returns warnings about changes to the tables of extensions, and to the
// project's logins, that are in no dump.
//
// A restore does not repeat them: expressions on an operator's table would run with an operator's
// privileges. Added objects are recognized by an OID above those of all objects that the
// extension's script created. Columns and comments have no OID and are recognized by the
// transaction that wrote them. A grant on a column, which is restored, writes the column too.
func UnrestoredChanges(ctx context.Context, q pg.Querier) ([]string, error) {
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
		select format('the %s of %s, a table of an extension, is in no backup', what, name) as said from added
		union all
		select format('the setting %s of a login of the project is in no backup', split_part(setting, '=', 1))
		from pg_db_role_setting s
		join pg_roles r on r.oid = s.setrole and starts_with(r.rolname, current_database() || '_') and r.rolname <> current_user
		cross join unnest(s.setconfig) setting
		where (s.setdatabase = 0 or s.setdatabase = (select oid from pg_database where datname = current_database())) and not `+isLoginSetting+`
		order by 1`)
}

// ApplyExtensionChanges applies the changes e to the extension members and multirange types of the
// copy. source is the name of the database that e was read from.
//
// Of a foreign backup it applies nothing that could trap other roles: neither ownership of tables
// nor the privilege to create triggers on them. It returns descriptions of the skipped changes, for
// the log.
func (c *Copy) ApplyExtensionChanges(
	ctx context.Context, e *ExtensionChanges, source string, foreign bool,
) (skipped []string, err error) {
	conn, err := c.ConnectTrusted(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	current, err := c.registry.ExtensionChanges(ctx, conn, c.Project)
	if err != nil {
		return nil, err
	}

	// Backups of older releases have no such record: use the state after CREATE EXTENSION.
	if e == nil {
		e = &ExtensionChanges{Tables: slices.Clone(current.Tables)}
		for i := range e.Tables {
			e.Tables[i].RowSecurity = true
		}
	}

	roles, err := pg.Values[string](ctx, conn, `select rolname::text from pg_roles where not rolsuper`)
	if err != nil {
		return nil, err
	}

	x := extender{Copy: c, conn: conn, source: source, foreign: foreign, roles: roles}
	if err := x.restoreRights(ctx, e.Rights); err != nil {
		return nil, err
	}

	for _, t := range e.Tables {
		if !slices.ContainsFunc(current.Tables, func(o ExtensionTable) bool {
			return o.Schema == t.Schema && o.Name == t.Name
		}) {
			x.skip("table %s.%s", t.Schema, t.Name)
			continue
		}

		if err := x.restoreTable(ctx, t); err != nil {
			return nil, err
		}
	}

	return x.skipped, nil
}

// extender is a run of [Copy.ApplyExtensionChanges].
type extender struct {
	*Copy
	conn    *pgx.Conn // of the platform's login
	source  string    // name of the source database
	foreign bool
	roles   []string // all roles of the server without superuser
	skipped []string
}

func (x *extender) skip(format string, args ...any) {
	x.skipped = append(x.skipped, fmt.Sprintf(format, args...))
}

// role returns the quoted name of a role in this project for a role of the source, or "" if it gets
// no privileges here.
func (x *extender) role(name string) string {
	if name == "" {
		return "public"
	}

	if login, ok := strings.CutPrefix(name, x.source+"_"); ok {
		name = x.registry.Database(x.Project) + "_" + login
	}

	known := slices.Contains(x.roles, name)
	if x.foreign {
		known = slices.Contains([]string{"anon", "authenticated", "service_role"}, name) ||
			strings.HasPrefix(name, x.registry.Database(x.Project)+"_") && known
	}

	if !known {
		return ""
	}

	return pg.Quote(name)
}

// privileges maps the privileges that a GRANT may contain to true if they are accepted from a
// foreign backup. The others let the grantee attach code to a table.
var privileges = map[string]bool{"SELECT": true, "INSERT": true, "UPDATE": true, "DELETE": true, "EXECUTE": true,
	"USAGE": true, "TRUNCATE": false, "REFERENCES": false, "TRIGGER": false, "MAINTAIN": false}

// restoreRights restores the privileges of objects. The statements contain only names of this
// server and keywords of this package.
func (x *extender) restoreRights(ctx context.Context, wanted []ExtensionObject) error {
	if len(wanted) == 0 {
		return nil
	}

	current, err := pg.All[extendedRow](ctx, x.conn, selectExtendedRights)
	if err != nil {
		return err
	}

	objects := map[[2]string]extendedRow{}
	for _, o := range current {
		objects[[2]string{o.Kind, o.Identity}] = o
	}

	var statements []string
	for _, w := range wanted {
		o, ok := objects[[2]string{w.Kind, w.Identity}]
		if !ok {
			x.skip("privileges of %s %s", w.Kind, w.Identity)
			continue
		}

		var grants []ExtensionGrant
		if err := json.Unmarshal([]byte(o.Grants), &grants); err != nil {
			return err
		}

		for _, g := range grants {
			if role := x.role(g.Role); role != "" {
				statements = append(statements, "revoke all "+grantedOn(o.Kind, o.Identity, "")+" from "+role)
			}
		}

		for _, g := range w.Grants {
			harmless, known := privileges[g.Privilege]

			role := x.role(g.Role)
			if role == "" || !known || (x.foreign && !harmless) {
				x.skip("%s on %s %s for %s", g.Privilege, o.Kind, o.Identity, g.Role)
				continue
			}

			sql := "grant " + grantedOn(o.Kind, o.Identity, g.Privilege) + " to " + role
			if g.Grantable && role != "public" {
				sql += " with grant option"
			}

			statements = append(statements, sql)
		}
	}

	return execAll(ctx, x.conn, statements)
}

// grantedOn returns the part of a GRANT or REVOKE from the privilege to the object. privilege is
// empty for REVOKE ALL.
func grantedOn(kind, identity, privilege string) string {
	keyword := map[string]string{
		"sequence": "sequence", "function": "routine", "procedure": "routine", "aggregate": "routine",
		"type": "type", "domain": "domain",
	}[kind]

	if kind == "table column" {
		at := columnAt(identity)
		return privilege + " (" + identity[at+1:] + ") on table " + identity[:at]
	}

	if keyword == "" {
		keyword = "table" // views and the like too
	}

	return privilege + " on " + keyword + " " + identity
}

// columnAt returns the offset of the last dot outside of quotes in schema.table.column.
func columnAt(identity string) int {
	at, quoted := 0, false
	for i, b := range []byte(identity) {
		switch {
		case b == '"':
			quoted = !quoted
		case b == '.' && !quoted:
			at = i
		}
	}

	return at
}

// restoreTable restores the row security of a table.
//
// Expressions of policies are untrusted, so the owner executes the statements and owns the table
// meanwhile. They are sent one at a time: a text that begins with CREATE POLICY can be nothing
// else, and CREATE POLICY runs no user code.
func (x *extender) restoreTable(ctx context.Context, t ExtensionTable) error {
	name, own := pg.Quote(t.Schema)+"."+pg.Quote(t.Name), pg.Quote(x.registry.login(x.Project, owner))
	formerOwner, err := pg.Value[string](ctx, x.conn,
		`select pg_get_userbyid(relowner) from pg_class where oid = @name::regclass`, pgx.StrictNamedArgs{"name": name})
	if err != nil {
		return err
	}

	if len(t.Policies) > 0 {
		if err := x.createPoliciesAsOwner(ctx, name, own, pg.Quote(formerOwner), t.Policies); err != nil {
			return err
		}
	}

	var statements []string
	if t.RowSecurity {
		statements = append(statements, "alter table "+name+" enable row level security")
	}
	if t.Forced {
		statements = append(statements, "alter table "+name+" force row level security")
	}

	if t.Owned && x.foreign {
		x.skip("the owner of %s", name)
	} else if t.Owned {
		statements = append(statements, "alter table "+name+" owner to "+own)
	}

	return execAll(ctx, x.conn, statements)
}

// createPoliciesAsOwner creates policies of a table as the owner, with the table temporarily owned
// by it.
func (x *extender) createPoliciesAsOwner(
	ctx context.Context, name, own, formerOwner string, policies []ExtensionPolicy,
) error {
	if err := execAll(ctx, x.conn, []string{"alter table " + name + " owner to " + own}); err != nil {
		return err
	}

	err := x.createPolicies(ctx, name, policies)
	if e := execAll(ctx, x.conn, []string{"alter table " + name + " owner to " + formerOwner}); err == nil {
		err = e
	}

	return err
}

func (x *extender) createPolicies(ctx context.Context, table string, policies []ExtensionPolicy) error {
	conn, err := x.ConnectOwner(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	commands := map[string]string{"r": "select", "a": "insert", "w": "update", "d": "delete", "*": "all"}
	for _, p := range policies {
		sql := "create policy " + pg.Quote(p.Name) + " on " + table
		if !p.Permissive {
			sql += " as restrictive"
		}

		var to []string
		for _, r := range p.Roles {
			if role := x.role(r); role != "" {
				to = append(to, role)
			}
		}

		if len(to) == 0 || commands[p.Command] == "" {
			x.skip("policy %s of %s", p.Name, table)
			continue
		}

		sql += " for " + commands[p.Command] + " to " + strings.Join(to, ", ")
		if p.Using != "" {
			sql += " using (" + p.Using + ")"
		}
		if p.Check != "" {
			sql += " with check (" + p.Check + ")"
		}

		// The extended protocol accepts a single statement.
		err := oneStatement(ctx, conn.PgConn(), sql)
		// A permissive policy with undefined or forbidden names is skipped: that shows rows to
		// fewer roles.
		if state := pg.State(err); p.Permissive && strings.HasPrefix(state, "42") {
			x.skip("policy %s of %s: %v", p.Name, table, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("create policy %s on %s: %w", p.Name, table, err)
		}
	}

	return nil
}

func oneStatement(ctx context.Context, conn *pgconn.PgConn, sql string) error {
	_, err := conn.ExecParams(ctx, sql, nil, nil, nil, nil).Close()
	return err
}
