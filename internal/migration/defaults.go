package migration

import (
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/pgdump"
)

// PostgreSQL gives a new object the default privileges of its owner, and the platform row level
// security to a new table. A dump has neither as such, so the statements that create an object are
// followed by those that correct it.

// grantable is how GRANT names the objects of a kind of entry, and ALTER DEFAULT PRIVILEGES all.
type grantable struct{ one, all string }

var grantables = map[string]grantable{
	"TABLE": {"TABLE", "TABLES"}, "VIEW": {"TABLE", "TABLES"}, "MATERIALIZED VIEW": {"TABLE", "TABLES"},
	"SEQUENCE": {"SEQUENCE", "SEQUENCES"},
	"FUNCTION": {"FUNCTION", "FUNCTIONS"}, "AGGREGATE": {"FUNCTION", "FUNCTIONS"},
	"PROCEDURE": {"PROCEDURE", "FUNCTIONS"},
	"TYPE":      {"TYPE", "TYPES"}, "DOMAIN": {"TYPE", "TYPES"},
	"SCHEMA": {"SCHEMA", "SCHEMAS"},
}

// correct returns the statements that correct a new object. It leaves an object with default
// privileges of its schema to the next comparison: they add to those of its owner.
func (c *comparison) correct(e *pgdump.Entry) []change {
	var all []change
	if e.Desc == "TABLE" && c.new["ROW SECURITY\n"+e.Namespace+"\n"+e.Tag] == nil {
		all = append(all, change{sql: "ALTER TABLE " + objectName(e.Drop) + " DISABLE ROW LEVEL SECURITY"})
	}

	defaults, known := c.defaultGrants(e)
	if !known {
		return all
	}

	own := ""
	var columns []change
	for i := range c.to {
		switch acl := &c.to[i]; {
		case acl.Desc != "ACL" || !slices.Contains(acl.Depends, e.ID):
		case strings.HasPrefix(acl.Tag, "COLUMN "):
			columns = append(columns, regrant("", acl.Definition)...)
		default:
			own = acl.Definition
		}
	}

	return slices.Concat(all, regrant(defaults, own), columns)
}

// defaultGrants returns the GRANT and REVOKE statements of the privileges that a new object has. It
// reports false if they are unknown.
func (c *comparison) defaultGrants(e *pgdump.Entry) (sql string, ok bool) {
	kind, ok := grantables[e.Desc]
	name := grantName(e)
	if !ok || name == "" {
		return "", false
	}

	var b strings.Builder
	for i := range c.from {
		d := &c.from[i]
		switch {
		case d.Desc != "DEFAULT ACL" || d.Tag != "DEFAULT PRIVILEGES FOR "+kind.all:
		case d.Namespace == "":
			for _, sql := range grants(d.Definition) {
				b.WriteString(grantOn(sql, kind, name) + ";\n")
			}
		case d.Namespace == e.Namespace:
			return "", false
		}
	}

	return b.String(), true
}

// grantOn returns the GRANT or REVOKE of a default privilege, on an object.
func grantOn(sql string, kind grantable, name string) string {
	all := tokens(sql)
	verb := slices.IndexFunc(all, func(t sqlToken) bool { return t.is("GRANT", "REVOKE") })
	objects := slices.IndexFunc(all, func(t sqlToken) bool { return t.is(kind.all) && t.depth == 0 })
	if verb < 0 || objects < verb {
		return sql
	}

	return sql[all[verb].Start:all[objects].Start] + kind.one + " " + name + " " +
		strings.TrimSpace(sql[all[objects].End:])
}

// grantName returns the name of an object in GRANT, or "".
func grantName(e *pgdump.Entry) string {
	if isIdentity(e) {
		_, name, _ := strings.Cut(e.Definition, "SEQUENCE NAME ")
		name, _, _ = strings.Cut(name, "\n")

		return name
	}

	if name, ok := strings.CutPrefix(trimmed(e.Drop), "DROP "+e.Desc+" "); ok {
		return name
	}

	return ""
}
