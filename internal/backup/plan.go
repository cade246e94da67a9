package backup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/tenant"
)

// The platform's schemas in a project's database.
var schemas = []string{"auth", "forms", "realtime", "socle", "storage"}

// plans is who restores what of a dump. Whatever is not the platform's is restored as the owner, and nothing of it on
// a stronger login: neither data nor statements.
type plans struct {
	platform   []entry  // data of the platform's tables
	users      []entry  // what pg_restore restores as the owner
	statements []string // what the owner says after it: privileges, and whatever names the owner
}

// plan goes through a table of contents. The owner of the one that it is restored into is called to. It fails with
// Unprocessable if there is something that a project can't have. Extensions that the manifest has are there before.
func plan(entries []entry, manifest Manifest, to string) (plans, error) {
	var p plans
	from := tenant.OwnerIn(manifest.database())
	extended := func(is func(tenant.Extension) bool) bool { return slices.ContainsFunc(manifest.Extensions, is) }
	for _, e := range entries {
		kind, name, _ := strings.Cut(e.tag, " ")
		switch {
		case e.desc == "EXTENSION" && extended(func(x tenant.Extension) bool { return x.Name == e.tag }):
		case e.desc == "SCHEMA" && extended(func(x tenant.Extension) bool { return x.Schema == e.tag }):
		case slices.Contains([]string{
			"ENCODING", "STDSTRINGS", "SEARCHPATH", "DATABASE", "DATABASE PROPERTIES",
		}, e.desc):
		case slices.Contains(schemas, e.namespace):
			if e.desc == "TABLE DATA" &&
				!(e.namespace == tenant.Schema && slices.Contains(tenant.BookkeepingTables, e.tag)) {
				p.platform = append(p.platform, e)
			}
		case e.desc == "SCHEMA" && (e.tag == "public" || slices.Contains(schemas, e.tag)):
		case e.desc == "EVENT TRIGGER" && strings.HasPrefix(e.tag, "socle_"):
		case e.namespace == "pg_catalog", e.desc == "COMMENT" && kind == "EXTENSION",
			e.desc == "COMMENT" && kind == "SCHEMA" && slices.Contains(schemas, name):
		case slices.Contains([]string{
			"EVENT TRIGGER", "EXTENSION", "SUBSCRIPTION", "PROCEDURAL LANGUAGE", "FOREIGN DATA WRAPPER", "TRANSFORM",
		}, e.desc):
			return p, fault.New(fault.Unprocessable, "the backup has an object that a project can't have: %s %s",
				strings.ToLower(e.desc), e.tag)
		case e.desc == "ACL" && e.namespace == "" && (kind != "SCHEMA" || slices.Contains(schemas, name)):
		case e.desc == "DEFAULT ACL" && e.owner != from:
		case e.desc == "ACL", e.desc == "DEFAULT ACL",
			e.desc == "POLICY" && from != to && strings.Contains(e.definition, from):
			p.statements = append(p.statements, strings.ReplaceAll(e.definition, from, to))
		default:
			p.users = append(p.users, e)
		}
	}

	return p, nil
}

// ofExtensions takes out what is about tables of extensions, which belong to the platform: the manifest says how they are.
func (p *plans) ofExtensions(members []tenant.Member) {
	p.users = slices.DeleteFunc(p.users, func(e entry) bool {
		return slices.ContainsFunc(members, func(m tenant.Member) bool {
			return e.namespace == m.Schema &&
				(e.desc == "ROW SECURITY" && e.tag == m.Name ||
					e.desc == "POLICY" && strings.HasPrefix(e.tag, m.Name+" "))
		})
	})
}

// listOf returns what tells pg_restore what to restore.
func listOf(entries []entry) string {
	var text strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&text, "%d;\n", e.id)
	}

	return text.String()
}

// grant says as the owner what a dump says of privileges. A role that this server does not have, another project's perhaps, gets nothing.
func grant(ctx context.Context, c *tenant.Copy, statements []string) error {
	conn, err := c.ConnectOwner(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	for _, sql := range statements {
		_, err := conn.PgConn().Exec(ctx, sql).ReadAll()
		if refused(err) {
			err = nil
			for _, one := range strings.SplitAfter(sql, ";\n") {
				if _, e := conn.PgConn().Exec(ctx, one).ReadAll(); e != nil && !refused(e) {
					err = e
				}
			}
		}

		if err != nil {
			return err
		}
	}

	return nil
}

// refused reports whether a statement names a role that is not there, or speaks for another one.
func refused(err error) bool {
	return pg.State(err) == "42704" || pg.State(err) == "42501" // undefined_object, insufficient_privilege
}
