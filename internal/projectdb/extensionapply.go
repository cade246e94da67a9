package projectdb

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/pg"
)

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
