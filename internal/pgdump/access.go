package pgdump

import (
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/dialect"
)

// privileges decides about GRANT, REVOKE and default privileges.
func (r *rules) privileges(ts dialect.Tokens, s dialect.Subject) (verdict, bool) {
	switch {
	case s.Action == "alter" && s.Kind == "default privileges":
		return r.defaultPrivileges(ts), true
	case s.Action != "grant" && s.Action != "revoke":
		return verdict{}, false
	case s.Kind == "":
		return leave(Roles, "membership in a role"), true
	case slices.Contains([]string{"database", "tablespace", "language", "parameter", "large object",
		"foreign data wrapper"}, s.Kind), s.Kind == "foreign":
		return leave(Privileges, "privileges on a %s", s.Kind), true
	case s.Schema() == "extensions" || r.hidden(s.Schema()):
		return leave(Privileges, "privileges on %s, which belongs to the platform", s.Name), true
	case r.omissions.has(s):
		return leave(Objects, "privileges on %s", s.Name), true
	}

	if s.Kind == "schema" && s.Schema() == "public" && ts.Word(len(ts.All)-1) == "public" {
		return leave(Privileges, "privileges of PUBLIC on schema public"), true
	}

	return r.grantees(ts, s.After), true
}

// defaultPrivileges decides about ALTER DEFAULT PRIVILEGES.
func (r *rules) defaultPrivileges(ts dialect.Tokens) verdict {
	if i := ts.Find(3, "for"); i > 0 && (ts.Word(i+1) == "role" || ts.Word(i+1) == "user") {
		if role := ts.Identifier(i + 2); role != "current_user" {
			return leave(Privileges, "default privileges of %s", role)
		}
	}
	if i := ts.Find(3, "schema"); i > 0 && r.hidden(ts.Identifier(i+1)) {
		return leave(Privileges, "default privileges in schema %s", ts.Identifier(i+1))
	}

	return r.grantees(ts, 3)
}

// grantees removes unknown roles from a GRANT or REVOKE. i is a token before the roles.
func (r *rules) grantees(ts dialect.Tokens, i int) verdict {
	from := ts.Grantees(i)
	if from < 0 {
		return verdict{action: run, sql: ts.Text}
	}

	sql, unknown, count := ts.WithoutRoles(from, isUnknownRole, dialect.GranteeEnds...)
	switch {
	case count == 0:
		return leave(Roles, "privileges of %s: no such role in the project", strings.Join(unknown, ", "))
	case len(unknown) > 0:
		return verdict{action: run, sql: sql,
			notes: []note{{Roles, "privileges of " + strings.Join(unknown, ", ") + ": no such role in the project"}}}
	}

	return verdict{action: run, sql: ts.Text}
}

// policy removes unknown roles from a policy, and leaves out a policy for unknown roles only.
func (r *rules) policy(ts dialect.Tokens, s dialect.Subject) (verdict, bool) {
	if s.Kind != "policy" || s.Action != "create" {
		return verdict{}, false
	}

	to := ts.Find(s.After, "to")
	if to < 0 {
		return verdict{}, false
	}

	sql, unknown, count := ts.WithoutRoles(to+1, isUnknownRole, "using", "with")
	if len(unknown) == 0 {
		return verdict{}, false
	}

	n := note{Roles, "policy " + s.Name.String() + " on " + s.Table.String() + " for " + strings.Join(unknown, ", ") +
		": no such role in the project"}
	if count == 0 {
		return verdict{action: leaveOut, notes: []note{n}}, true
	}

	v := r.rewritten(dialect.Tokenize(sql, 0), s)
	v.notes = append(v.notes, n)

	return v, true
}

func isUnknownRole(role string) bool { return !slices.Contains(knownRoles, role) }
