package dialect

import (
	"slices"
	"strings"
)

// WithoutRoles removes roles from a list that begins at token i and ends at a word in ends or with
// the statement. It returns the new statement, the removed roles, and how many others remain.
func (ts Tokens) WithoutRoles(i int, drop func(role string) bool, ends ...string) (
	sql string, roles []string, remaining int,
) {
	start := i
	var others []string
	for ; i < len(ts.All) && !slices.Contains(ends, ts.Word(i)); i++ {
		role := ts.Identifier(i)
		switch {
		case ts.Raw(i) == "," || ts.Word(i) == "group":
		case drop(role):
			roles = append(roles, role)
		default:
			others = append(others, ts.Raw(i))
		}
	}

	if start >= len(ts.All) {
		return ts.Text, nil, 1 // incomplete: PostgreSQL says so
	}

	end := len(ts.Text)
	if i < len(ts.All) {
		end = ts.All[i].Start
	}

	return ts.Text[:ts.All[start].Start] + strings.Join(others, ", ") + " " + ts.Text[end:], roles, len(others)
}

// Grantees returns the index of the first role in a GRANT or REVOKE, or -1. i is a token before the
// roles.
func (ts Tokens) Grantees(i int) int {
	at := max(ts.Find(i, "to"), ts.Find(i, "from"))
	if at < 0 {
		return -1
	}

	return at + 1
}

// GranteeEnds are the words that end the roles in a GRANT or REVOKE.
var GranteeEnds = []string{"with", "granted", "cascade", "restrict"}

// NewOwner returns the owner that an ALTER … OWNER TO names, or "" for another statement.
func (ts Tokens) NewOwner(s Subject) string {
	if s.Action != "alter" {
		return ""
	}

	to := ts.Find(s.After, "owner")
	if to < 0 || ts.Word(to+1) != "to" || to+3 != len(ts.All) || ts.Find(s.After, "rename") >= 0 {
		return ""
	}

	return ts.Identifier(to + 2)
}

// superuser is the role that owns everything in Supabase's databases. A project has its owner
// instead.
const superuser = "postgres"

// platformRoles are the roles in Supabase's databases that no project has.
var platformRoles = []string{superuser, "authenticator", "dashboard_user", "pg_database_owner", "pgbouncer",
	"pgsodium_keyholder", "pgsodium_keyiduser", "pgsodium_keymaker", "supabase_admin", "supabase_auth_admin",
	"supabase_etl_admin", "supabase_functions_admin", "supabase_read_only_user", "supabase_realtime_admin",
	"supabase_replication_admin", "supabase_storage_admin"}

// sharedRoles are the rows API's roles, which all projects on a server share.
var sharedRoles = []string{"anon", "authenticated", "service_role"}

func isPlatformRole(role string) bool { return slices.Contains(platformRoles, role) }

// namedRoles are the words for roles that every project has, beside [sharedRoles].
var namedRoles = []string{"public", "current_user", "current_role", "session_user", "socle_reader", "all"}

// isAbsent reports whether a name is that of a role which no project has: one of Supabase's, or one
// that a project there has created. Roles belong to a server, so a project can't have its own.
func isAbsent(role string) bool {
	switch {
	case isPlatformRole(role):
		return true
	case role == "" || slices.Contains(sharedRoles, role) || slices.Contains(namedRoles, role):
		return false
	}

	return !strings.HasPrefix(role, "pg_") && !strings.HasPrefix(role, "socle_")
}

// role leaves out roles that no project has: their creation, change and deletion, and comments.
func role(_ Tokens, s Subject) (Verdict, bool) {
	isRole := s.Kind == "role" || s.Kind == "user" || s.Kind == "group"
	if !isRole || len(s.Name) != 1 || !isAbsent(s.Name[0]) || isPlatformRole(s.Name[0]) {
		return Verdict{}, false
	}

	return leaveOut("%s %s %s: left out, since a project has no roles of its own", s.Action, s.Kind, s.Name), true
}

// owner leaves out an object's ownership by a role that no project has.
func owner(ts Tokens, s Subject) (Verdict, bool) {
	role := ts.NewOwner(s)
	if !isAbsent(role) {
		return Verdict{}, false
	}

	return leaveOut("owner %s is left out: everything belongs to the project's owner", role), true
}

// absentFunctions are functions of left-out extensions that Supabase's users have in their schemas.
// A dump has the privileges on them.
var absentFunctions = []string{"pgaudit_ddl_command_end", "pgaudit_sql_drop"}

// grants removes roles that no project has from GRANT and REVOKE.
func grants(ts Tokens, s Subject) (Verdict, bool) {
	if s.Action != "grant" && s.Action != "revoke" {
		return Verdict{}, false
	}

	if s.Kind == "" {
		return membership(ts)
	}
	if s.Kind == "function" && len(s.Name) > 0 && slices.Contains(absentFunctions, s.Name[len(s.Name)-1]) {
		return leaveOut("privileges on %s are left out: projects can't have its extension", s.Name), true
	}

	return withoutAbsentRoles(ts, ts.Grantees(s.After), "privileges", GranteeEnds...)
}

// membership leaves out role memberships in which a role takes part that no project has.
func membership(ts Tokens) (Verdict, bool) {
	for i := 1; i < len(ts.All) && !slices.Contains(GranteeEnds, ts.Word(i)); i++ {
		role := ts.Identifier(i)
		if role != "to" && role != "from" && isAbsent(role) {
			return leaveOut("membership of %s is left out: the project has no such role", role), true
		}
	}

	return Verdict{}, false
}

// withoutAbsentRoles removes the roles that no project has from a list that begins at token i. It
// reports false if there is none, or no list.
func withoutAbsentRoles(ts Tokens, i int, what string, ends ...string) (Verdict, bool) {
	if i <= 0 {
		return Verdict{}, false
	}

	sql, roles, remaining := ts.WithoutRoles(i, isAbsent, ends...)
	if len(roles) == 0 {
		return Verdict{}, false
	}

	v := leaveOut("%s of %s: left out, since the project has no such role", what, strings.Join(roles, ", "))
	if remaining > 0 {
		v.Action, v.SQL = Run, sql
	}

	return v, true
}

// policy removes roles that no project has from a policy, and leaves out a policy for them only.
func policy(ts Tokens, s Subject) (Verdict, bool) {
	if s.Kind != "policy" || (s.Action != "create" && s.Action != "alter") {
		return Verdict{}, false
	}

	to := ts.Find(s.After, "to")
	if to < 0 || ts.Word(to-1) == "rename" {
		return Verdict{}, false
	}

	return withoutAbsentRoles(ts, to+1, "policy "+s.Describe(), "using", "with")
}

// defaultPrivileges gives the superuser's default privileges to the project's owner, who creates
// all objects, and leaves out other platform roles'.
func defaultPrivileges(ts Tokens, s Subject) (Verdict, bool) {
	if s.Action != "alter" || s.Kind != "default privileges" {
		return Verdict{}, false
	}

	var notes []string
	if i := ts.Find(3, "for"); i > 0 && (ts.Word(i+1) == "role" || ts.Word(i+1) == "user") {
		sql, roles, remaining := ts.WithoutRoles(i+2, isAbsent, "in", "grant", "revoke")
		mine := slices.Contains(roles, superuser)
		switch {
		case len(roles) > 0 && remaining == 0 && !mine:
			return leaveOut("default privileges of %s: left out, since the project has no such role",
				strings.Join(roles, ", ")), true
		case mine && remaining > 0:
			first := ts.All[i+2].Start
			sql = sql[:first] + "current_user, " + sql[first:]
		case mine:
			sql = ts.Text[:ts.All[i].Start] + sql[ts.All[i+2].Start:]
		}

		if len(roles) > 0 {
			notes = append(notes, note("default privileges of %s: changed to those of the project's owner",
				strings.Join(roles, ", ")))
			ts = Tokenize(sql, 0)
		}
	}

	v, ok := withoutAbsentRoles(ts, ts.Grantees(3), "default privileges", GranteeEnds...)
	switch {
	case ok:
		v.Notes = append(notes, v.Notes...)
		return v, true
	case notes != nil:
		return Verdict{SQL: ts.Text, Notes: notes}, true
	}

	return Verdict{}, false
}

// roleSettings leaves out settings for roles that the project does not own, and for the database in
// Supabase's projects.
func roleSettings(ts Tokens, s Subject) (Verdict, bool) {
	if s.Action != "alter" || len(s.Name) != 1 {
		return Verdict{}, false
	}

	switch role := s.Name[0]; {
	case (s.Kind == "role" || s.Kind == "user") && (isPlatformRole(role) || slices.Contains(sharedRoles, role)):
		return leaveOut("alter %s %s: left out, since the role belongs to the platform", s.Kind, role), true
	case s.Kind == "database" && role == superuser && ts.NewOwner(s) == "":
		return leaveOut("alter database %s: left out, since the project's database has another name", role), true
	}

	return Verdict{}, false
}

// sessionRole leaves out a change to a platform role: statements run as the project's owner.
func sessionRole(ts Tokens, _ Subject) (Verdict, bool) {
	role, ok := sessionRoleName(ts)
	if !ok || !isPlatformRole(role) {
		return Verdict{}, false
	}

	return leaveOut("role %s is left out: everything runs as the project's owner", role), true
}

// sessionRoleName returns the role of a SET ROLE or SET SESSION AUTHORIZATION.
func sessionRoleName(ts Tokens) (string, bool) {
	if ts.Word(0) != "set" {
		return "", false
	}

	i := ts.SkipAny(1, "session", "local")
	switch {
	case ts.Has(i, "role"):
		i++
	case ts.Has(1, "session", "authorization"):
		i = 3
	default:
		return "", false
	}

	i = ts.SkipAny(i, "to")
	if ts.Raw(i) == "=" {
		i++
	}

	return strings.Trim(ts.Raw(i), `"'`), true
}
