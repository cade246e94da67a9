package extension

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

// Target is a database that is filled from a backup.
type Target struct {
	Conn         *pgx.Conn // connection with the platform's login
	ConnectOwner func(context.Context) (*pgx.Conn, error)
	Database     string // the project database's name, with which its login names begin
	Owner        string // the project owner's login
	Source       string // name of the database from which the changes were read
	Foreign      bool   // the backup may come from another install
}

// Apply applies changes to t's extension members and multirange types. c is nil in a backup by a
// release that did not record changes.
//
// From a foreign backup it applies nothing that could trap other roles: neither table ownership nor
// the privilege to create triggers. It returns descriptions of the skipped changes, for the log.
func Apply(ctx context.Context, t Target, c *Changes) (omissions []string, err error) {
	current, err := Read(ctx, t.Conn, t.Owner)
	if err != nil {
		return nil, err
	}

	// Use the state after CREATE EXTENSION.
	if c == nil {
		c = &Changes{Tables: slices.Clone(current.Tables)}
		for i := range c.Tables {
			c.Tables[i].RowSecurity = true
		}
	}

	roles, err := pg.Values[string](ctx, t.Conn, `select rolname::text from pg_roles where not rolsuper`)
	if err != nil {
		return nil, err
	}

	x := extender{Target: t, roles: roles}
	if err := x.restoreRights(ctx, c.Rights); err != nil {
		return nil, err
	}

	for _, table := range c.Tables {
		if !slices.ContainsFunc(current.Tables, func(o Table) bool {
			return o.Schema == table.Schema && o.Name == table.Name
		}) {
			x.skip("table %s.%s", table.Schema, table.Name)
			continue
		}

		if err := x.restoreTable(ctx, table); err != nil {
			return nil, err
		}
	}

	return x.omissions, nil
}

// extender is one run of [Apply].
type extender struct {
	Target
	roles     []string // the server's roles except superusers
	omissions []string // descriptions of skipped changes
}

func (x *extender) skip(format string, args ...any) {
	x.omissions = append(x.omissions, fmt.Sprintf(format, args...))
}

// role returns this project's quoted role for a role in the source, or "" if it gets no privileges
// here.
func (x *extender) role(name string) string {
	if name == "" {
		return "public"
	}

	if login, ok := strings.CutPrefix(name, x.Source+"_"); ok {
		name = x.Database + "_" + login
	}

	isGrantee := slices.Contains(x.roles, name)
	if x.Foreign {
		isGrantee = slices.Contains([]string{"anon", "authenticated", "service_role"}, name) ||
			strings.HasPrefix(name, x.Database+"_") && isGrantee
	}

	if !isGrantee {
		return ""
	}

	return pg.Quote(name)
}

// privileges maps the privileges that a GRANT may contain to true if they are accepted from a
// foreign backup. The others let the grantee attach code to a table.
var privileges = map[string]bool{"SELECT": true, "INSERT": true, "UPDATE": true, "DELETE": true, "EXECUTE": true,
	"USAGE": true, "TRUNCATE": false, "REFERENCES": false, "TRIGGER": false, "MAINTAIN": false}

// restoreRights restores object privileges. The statements contain only names from this server and
// keywords from this package.
func (x *extender) restoreRights(ctx context.Context, targets []Object) error {
	if len(targets) == 0 {
		return nil
	}

	current, err := pg.All[rightsRow](ctx, x.Conn, selectRights)
	if err != nil {
		return err
	}

	objects := map[[2]string]rightsRow{}
	for _, o := range current {
		objects[[2]string{o.Kind, o.Identity}] = o
	}

	var statements []string
	for _, w := range targets {
		o, ok := objects[[2]string{w.Kind, w.Identity}]
		if !ok {
			x.skip("privileges of %s %s", w.Kind, w.Identity)
			continue
		}

		var grants []Grant
		if err := json.Unmarshal([]byte(o.Grants), &grants); err != nil {
			return err
		}

		for _, g := range grants {
			if role := x.role(g.Role); role != "" {
				statements = append(statements, "revoke all "+grantTarget(o.Kind, o.Identity, "")+" from "+role)
			}
		}

		for _, g := range w.Grants {
			harmless, ok := privileges[g.Privilege]

			role := x.role(g.Role)
			if role == "" || !ok || (x.Foreign && !harmless) {
				x.skip("%s on %s %s for %s", g.Privilege, o.Kind, o.Identity, g.Role)
				continue
			}

			sql := "grant " + grantTarget(o.Kind, o.Identity, g.Privilege) + " to " + role
			if g.Grantable && role != "public" {
				sql += " with grant option"
			}

			statements = append(statements, sql)
		}
	}

	return executeAll(ctx, x.Conn, statements)
}

// grantTarget returns a GRANT or REVOKE from the privilege to the object. privilege is empty for
// REVOKE ALL.
func grantTarget(kind, identity, privilege string) string {
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

// columnAt returns the offset of the last dot outside quotes in schema.table.column.
func columnAt(identity string) int {
	at, inQuotes := 0, false
	for i, b := range []byte(identity) {
		switch {
		case b == '"':
			inQuotes = !inQuotes
		case b == '.' && !inQuotes:
			at = i
		}
	}

	return at
}

// restoreTable restores a table's row security.
//
// Policy expressions are untrusted, so the owner executes the statements and owns the table
// meanwhile. They are sent one at a time: a text that begins with CREATE POLICY can be nothing
// else, and CREATE POLICY runs no user code.
func (x *extender) restoreTable(ctx context.Context, t Table) error {
	name, owner := pg.Quote(t.Schema)+"."+pg.Quote(t.Name), pg.Quote(x.Owner)
	formerOwner, err := pg.Value[string](ctx, x.Conn,
		`select pg_get_userbyid(relowner) from pg_class where oid = @name::regclass`, pgx.StrictNamedArgs{"name": name})
	if err != nil {
		return err
	}

	if len(t.Policies) > 0 {
		if err := x.createPoliciesAsOwner(ctx, name, owner, pg.Quote(formerOwner), t.Policies); err != nil {
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

	if t.Owned && x.Foreign {
		x.skip("the owner of %s", name)
	} else if t.Owned {
		statements = append(statements, "alter table "+name+" owner to "+owner)
	}

	return executeAll(ctx, x.Conn, statements)
}

// createPoliciesAsOwner creates a table's policies as the owner, which temporarily owns the table.
func (x *extender) createPoliciesAsOwner(
	ctx context.Context, name, owner, formerOwner string, policies []Policy,
) error {
	if err := executeAll(ctx, x.Conn, []string{"alter table " + name + " owner to " + owner}); err != nil {
		return err
	}

	err := x.createPolicies(ctx, name, policies)
	if e := executeAll(ctx, x.Conn, []string{"alter table " + name + " owner to " + formerOwner}); err == nil {
		err = e
	}

	return err
}

func (x *extender) createPolicies(ctx context.Context, table string, policies []Policy) error {
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

		err := executeOne(ctx, conn.PgConn(), sql)
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

func executeAll(ctx context.Context, conn *pgx.Conn, statements []string) error {
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}

	return nil
}

// executeOne executes a text that is a single statement; PostgreSQL rejects any other.
func executeOne(ctx context.Context, conn *pgconn.PgConn, sql string) error {
	_, err := conn.ExecParams(ctx, sql, nil, nil, nil, nil).Close()
	return err
}
