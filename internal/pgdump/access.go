package pgdump

import (
	"slices"
	"strings"
)

// privileges decides about GRANT, REVOKE and default privileges.
func (r *rules) privileges(ts tokens, s subject) (verdict, bool) {
	switch {
	case s.action == "alter" && s.kind == "default privileges":
		return r.defaultPrivileges(ts), true
	case s.action != "grant" && s.action != "revoke":
		return verdict{}, false
	case s.kind == "":
		return leave(Roles, "membership in a role"), true
	case slices.Contains([]string{"database", "tablespace", "language", "parameter", "large object",
		"foreign data wrapper"}, s.kind), s.kind == "foreign":
		return leave(Privileges, "privileges on a %s", s.kind), true
	case s.schema() == "extensions" || r.hidden(s.schema()):
		return leave(Privileges, "privileges on %s, which belongs to the platform", s.name), true
	case r.left.has(s):
		return leave(Objects, "privileges on %s", s.name), true
	}

	if s.kind == "schema" && s.schema() == "public" && ts.word(len(ts.all)-1) == "public" {
		return leave(Privileges, "privileges of PUBLIC on schema public"), true
	}

	return r.grantees(ts, s.after), true
}

// defaultPrivileges decides about ALTER DEFAULT PRIVILEGES.
func (r *rules) defaultPrivileges(ts tokens) verdict {
	if i := ts.find(3, "for"); i > 0 && (ts.word(i+1) == "role" || ts.word(i+1) == "user") {
		if role := ts.identifier(i + 2); role != "current_user" {
			return leave(Privileges, "default privileges of %s", role)
		}
	}
	if i := ts.find(3, "schema"); i > 0 && r.hidden(ts.identifier(i+1)) {
		return leave(Privileges, "default privileges in schema %s", ts.identifier(i+1))
	}

	return r.grantees(ts, 3)
}

// grantees removes unknown roles from a GRANT or REVOKE. i is a token before its roles.
func (r *rules) grantees(ts tokens, i int) verdict {
	from := max(ts.find(i, "to"), ts.find(i, "from"))
	if from < 0 {
		return verdict{action: run, sql: ts.text}
	}

	sql, unknown, left := knownOnly(ts, from+1, "with", "granted", "cascade", "restrict")
	switch {
	case left == 0:
		return leave(Roles, "privileges of %s: no such role in the project", strings.Join(unknown, ", "))
	case len(unknown) > 0:
		return verdict{action: run, sql: sql,
			notes: []note{{Roles, "privileges of " + strings.Join(unknown, ", ") + ": no such role in the project"}}}
	}

	return verdict{action: run, sql: ts.text}
}

// policy removes unknown roles from a policy, and leaves out a policy for unknown roles only.
func (r *rules) policy(ts tokens, s subject) (verdict, bool) {
	if s.kind != "policy" || s.action != "create" {
		return verdict{}, false
	}

	to := ts.find(s.after, "to")
	if to < 0 {
		return verdict{}, false
	}

	sql, unknown, left := knownOnly(ts, to+1, "using", "with")
	if len(unknown) == 0 {
		return verdict{}, false
	}

	n := note{Roles, "policy " + s.name.String() + " on " + s.table.String() + " for " + strings.Join(unknown, ", ") +
		": no such role in the project"}
	if left == 0 {
		return verdict{action: leaveOut, notes: []note{n}}, true
	}

	v := r.rewritten(tokenize(sql, 0), s)
	v.notes = append(v.notes, n)

	return v, true
}

// knownOnly removes unknown roles from a list that begins at token i and ends at the end of the
// statement or at one of some words. It returns the statement, the roles that it has removed, and
// the number of those left.
func knownOnly(ts tokens, i int, ends ...string) (sql string, unknown []string, left int) {
	start := i
	var kept []string
	for ; i < len(ts.all) && !slices.Contains(ends, ts.word(i)); i++ {
		role := ts.identifier(i)
		switch {
		case ts.raw(i) == "," || ts.word(i) == "group":
		case slices.Contains(knownRoles, role):
			kept = append(kept, ts.raw(i))
		default:
			unknown = append(unknown, role)
		}
	}

	if start >= len(ts.all) {
		return ts.text, nil, 1 // incomplete: PostgreSQL says so
	}

	end := len(ts.text)
	if i < len(ts.all) {
		end = ts.all[i].Start
	}

	return ts.text[:ts.all[start].Start] + strings.Join(kept, ", ") + " " + ts.text[end:], unknown, len(kept)
}
