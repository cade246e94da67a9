package explain

import (
	"regexp"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/namespace"
	"github.com/socle-dev/socle/internal/pg"
)

// denial is PostgreSQL's message about a missing privilege.
type denial struct {
	kind   string
	schema string // "": the message does not say
	name   string // a type's is SQL already, others stand as they are
}

var (
	deniedObject = regexp.MustCompile(`^(?s)permission denied for (materialized view|foreign table|[a-z]+) (.+)$`)
	deniedColumn = regexp.MustCompile(`^(?s)permission denied for column "?.+"? of relation "(.+)"$`)
)

// parseDenial returns what a message of SQLSTATE 42501 denies. It returns false for other messages
// of this state, such as those of policies.
func parseDenial(message string) (denial, bool) {
	if m := deniedColumn.FindStringSubmatch(message); m != nil {
		return denial{kind: "table", name: m[1]}, true
	}
	if m := deniedObject.FindStringSubmatch(message); m != nil {
		return denial{kind: m[1], name: m[2]}, true
	}

	return denial{}, false
}

// isRelation reports whether the object has rows.
func (d denial) isRelation() bool {
	return slices.Contains([]string{"table", "view", "materialized view", "foreign table"}, d.kind)
}

// tableName matches the names of tables that socle grants takes.
var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// privilegesByKind has the privilege that a request needs on an object without rows.
var privilegesByKind = map[string]string{
	"sequence": "usage", "schema": "usage", "type": "usage", "domain": "usage",
	"function": "execute", "procedure": "execute",
}

// isPlatform reports whether the object is a schema in which a project's owner grants nothing. A
// schema of a service can be the owner's own, which is rare.
func (d denial) isPlatform() bool {
	return d.kind == "schema" && (namespace.IsReserved(d.name) || slices.Contains(namespace.Services, d.name))
}

// platformAdvice is the remedy for a schema of the platform.
const platformAdvice = "It belongs to the platform, and no role is granted more. A function of yours that is security " +
	"definer may read it for the role."

// command returns the command that grants a role the privilege, or "" for an object of another
// kind. privilege is the one on an object with rows.
func (d denial) command(privilege, role string) string {
	object := d.kind
	if d.isRelation() {
		object = "table"
	} else if privilege = privilegesByKind[d.kind]; privilege == "" {
		return ""
	}

	sql := "grant " + privilege + " on " + object + " " + d.sql() + " to " + quotePlain(role)
	return "socle sql run --read-only=false --query " + config.ShellWord(sql)
}

// typeName matches the names of types in messages, which have quotes and a schema where necessary.
var typeName = regexp.MustCompile(`^(?:(?:[a-z_][a-z0-9_]*|"(?:[^"]|"")+")(?:\.|$)){1,2}$`)

// sql returns the object's name as SQL.
func (d denial) sql() string {
	switch {
	case d.schema != "":
		return quotePlain(d.schema, d.name)
	case (d.kind == "type" || d.kind == "domain") && typeName.MatchString(d.name) && !strings.HasSuffix(d.name, "."):
		return d.name
	}

	return quotePlain(d.name)
}

// String returns the object's name for people.
func (d denial) String() string {
	if d.schema != "" {
		return d.schema + "." + d.name
	}

	return d.name
}

var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// quotePlain returns a name as SQL, with quotes only where they are necessary in most cases.
func quotePlain(parts ...string) string {
	all := make([]string, len(parts))
	for i, part := range parts {
		if all[i] = part; !plainName.MatchString(part) {
			all[i] = pg.Quote(part)
		}
	}

	return strings.Join(all, ".")
}

// GrantHint returns the hint for a role that lacks a privilege, from PostgreSQL's message. It names
// nothing but what the message names.
func GrantHint(role, message string) string {
	const lacks = "The role has no privilege on it. "

	d, ok := parseDenial(message)
	switch {
	case !ok:
		return ""
	case d.isPlatform():
		return lacks + platformAdvice
	case d.kind == "table" && tableName.MatchString(d.name):
		return lacks + "Grant it with: socle grants update, or as Supabase does for all tables: " +
			"socle default-privileges update --mode supabase --existing"
	}

	command := d.command("select", role)
	if command == "" {
		return ""
	}
	if d.kind == "function" {
		return lacks + "Grant it as Supabase does with all functions: socle default-privileges update --mode supabase " +
			"--existing, or alone with: " + command
	}
	if d.isRelation() && d.kind != "materialized view" {
		return lacks + "Grant it, or insert, update or delete, with: " + command
	}

	return lacks + "Grant it with: " + command
}
