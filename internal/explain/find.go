package explain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/requestlog"
	"github.com/socle-dev/socle/internal/schema"
)

// advice explains codes that need no look at the catalog.
var advice = map[string]string{
	"22P02":    "A value in the request is not one of its column's type.",
	"23502":    "A column that must not be null got no value: send one, or give it a default.",
	"23503":    "A foreign key refers to a row that does not exist, or that other rows still refer to.",
	"23505":    "A row with this key exists already. To replace it, upsert: Prefer: resolution=merge-duplicates.",
	"23514":    "A check of the table refuses the row.",
	"42703":    "The table has no such column.",
	"57014":    "The statement exceeded the timeout of its role, see the settings of the rows API.",
	"P0001":    "A function or trigger of the project raised this error.",
	"PGRST100": "The query string does not follow the grammar of the rows API.",
	"PGRST116": "The request asks for exactly one row, and the filters match none or several.",
	"PGRST200": "No foreign key relates the two tables, so they can't be embedded.",
	"PGRST301": "The key or token is not valid for this project, or has expired.",
	"PGRST303": "The claims of the token are not valid, for example its expiry.",
}

// commandsByCode maps codes to commands that show more about the failure.
var commandsByCode = map[string]string{
	"57014": "socle rest-settings get", "PGRST301": "socle keys list",
}

// findCauses returns the causes of a response, the likeliest first.
func findCauses(r requestlog.Request, t target, f facts, policies []schema.Policy) []Cause {
	code := ""
	if r.ErrorCode != nil {
		code = *r.ErrorCode
	}

	switch {
	case code == "42501":
		return findRefusal(r, t, f, policies)
	case code == "PGRST205", code == "42P01":
		return findMissingTable(t, f)
	case code == "PGRST202", code == "42883":
		return []Cause{cause("No function of this name takes these arguments. Names and number of arguments must match.",
			"socle sql-functions list")}
	case advice[code] != "":
		return []Cause{cause(advice[code], commandsByCode[code])}
	case code != "":
		return []Cause{cause("The message has all that the log knows of this failure.", "")}
	case r.Status >= 500:
		return []Cause{cause("The server failed; its own log has the cause under the ID of the request.", "")}
	case isEmpty(r, t):
		return findHiddenRows(r, t, f, policies)
	}

	return []Cause{cause("The request succeeded.", "")}
}

// isEmpty reports whether a request read or changed no row.
func isEmpty(r requestlog.Request, t target) bool {
	return t.table != "" && r.Rows != nil && *r.Rows == 0 && r.Status < 300 && t.command != "insert"
}

// findRefusal explains SQLSTATE 42501: a missing privilege, or a policy that rejects a new row.
func findRefusal(r requestlog.Request, t target, f facts, policies []schema.Policy) []Cause {
	role, message := text(r.Role), text(r.ErrorMessage)
	d, denied := denialOf(r, t)
	switch {
	case strings.HasPrefix(message, "new row violates row-level security"):
		return findRefusedRow(t, f, policies, role)
	case denied && d.kind != "table":
		return []Cause{findDenial(r, t, d, role)}
	}

	if f.table == "" {
		return []Cause{cause("The log does not tell which table it is; a view, trigger or policy may read another one.",
			"socle projects lint")}
	}

	var missing []string
	for _, p := range requiredPrivileges(r, t) {
		if !slices.Contains(f.privileges, p) {
			missing = append(missing, p)
		}
	}
	if relationOf(r, t) != t.table && !slices.Contains(f.privileges, "select") {
		missing = []string{"select"} // a view, trigger or policy reads it
	}

	if len(missing) == 0 {
		return []Cause{cause(role+" has the privileges on "+f.table+" now. They were granted since, or it lacks one on a "+
			"column or on a table that a view, trigger or policy reads.", "socle grants list "+f.table)}
	}

	return []Cause{
		cause(fmt.Sprintf("%s lacks %s on %s.", role, strings.Join(missing, ", "), f.table),
			grantCommand(f, role, missing)),
		cause("Or grant all tables, as Supabase does.", "socle default-privileges update --mode supabase --existing"),
	}
}

// findDenial explains a missing privilege on an object that socle grants does not take.
func findDenial(r requestlog.Request, t target, d denial, role string) Cause {
	privilege := privilegesByKind[d.kind]
	switch {
	case d.isPlatform():
		return cause(role+" has no usage on the schema "+d.name+". "+platformAdvice, "")
	case d.isRelation() && relationOf(r, t) == t.table:
		privilege = t.command
	case d.isRelation(): // a view, trigger or policy reads it
		privilege = "select"
	case privilege == "":
		privilege = "a privilege"
	}

	object, command := d.kind+" "+d.String()+".", d.command(privilege, role)
	switch privilege {
	case "execute":
		return cause(role+" may not execute the "+object, command)
	case "usage":
		return cause(role+" has no usage on the "+object, command)
	}

	return cause(role+" lacks "+privilege+" on the "+object, command)
}

// requiredPrivileges returns the privileges that a request needs on its table. Filters and returned
// rows need select.
func requiredPrivileges(r requestlog.Request, t target) []string {
	query := text(r.Query)
	privileges := []string{t.command}
	if t.command == "insert" && (r.Method == "PUT" || strings.Contains(query, "on_conflict=")) {
		privileges = append(privileges, "update")
	}
	if t.command != "select" && (strings.Contains(query, "=") || r.Method == "PUT") {
		privileges = append(privileges, "select")
	}

	return privileges
}

// grantCommand returns the command that grants a role the missing privileges. The command replaces
// the role's privileges, so it repeats those already granted.
func grantCommand(f facts, role string, missing []string) string {
	privileges := append(slices.Clone(f.grants), missing...)
	slices.Sort(privileges)
	grant := schema.Grant{Role: role, Privileges: slices.Compact(privileges)}
	grants, _ := json.Marshal([]schema.Grant{grant}) // texts have no error

	command := "socle grants update " + f.table + " --grants '" + string(grants) + "'"
	if role == "anon" && slices.ContainsFunc(privileges, func(p string) bool { return p != "select" }) {
		command += " --confirm"
	}

	return command
}

// findRefusedRow explains why no policy accepts a new row.
func findRefusedRow(t target, f facts, policies []schema.Policy, role string) []Cause {
	if !slices.ContainsFunc(policies, func(p schema.Policy) bool { return p.Permissive }) {
		return []Cause{cause(fmt.Sprintf("No policy of %s lets %s %s rows.", f.table, role, t.command),
			policyCommand(f.table, t.command, role))}
	}

	var all []Cause
	for _, p := range policies {
		check := text(p.WithCheck)
		if check == "" {
			check = text(p.Using)
		}
		all = append(all, cause(fmt.Sprintf("The policy %s accepts a new row only if %s.", p.Name, check),
			"socle policies list "+f.table))
	}

	return all
}

// findHiddenRows explains a response without rows.
func findHiddenRows(r requestlog.Request, t target, f facts, policies []schema.Policy) []Cause {
	role := text(r.Role)
	switch {
	case f.table == "":
		return []Cause{cause("No row matches, or policies of the tables behind the view hide them.", "")}
	case !f.rowSecurity || role == "service_role":
		return []Cause{cause("No policy applies: no row matches the filters.", "socle rows list "+f.table)}
	case !slices.ContainsFunc(policies, func(p schema.Policy) bool { return p.Permissive }):
		return []Cause{cause(fmt.Sprintf("No policy of %s lets %s %s rows, so every row is hidden.", f.table, role, t.command),
			policyCommand(f.table, t.command, role))}
	}

	var all []Cause
	for _, p := range policies {
		all = append(all, cause(fmt.Sprintf("The policy %s hides all rows but those where %s.", p.Name, text(p.Using)), ""))
	}

	all = append(all, cause("Compare all rows with the filters of the request.", "socle rows list "+f.table))
	if r.EndUserUUID != nil {
		all = append(all, cause("See what this user sees.", "socle rows list "+f.table+" --as "+r.EndUserUUID.String()))
	}

	return all
}

func policyCommand(table, command, role string) string {
	condition := "--using"
	if command == "insert" {
		condition = "--with-check"
	}

	return fmt.Sprintf("socle policies create %s --name own_%s --command %s --roles %s %s 'owner = auth.uid()'",
		table, command, command, role, condition)
}

func findMissingTable(t target, f facts) []Cause {
	if f.table != "" {
		return []Cause{cause(f.table+" exists now. It was created since, or its schema is not exposed.",
			"socle rest-settings get")}
	}

	message := "There is no table " + t.table + "."
	if len(f.tables) > 0 {
		message += " The nearest name is " + config.Nearest(t.table, f.tables) + "."
	}

	return []Cause{cause(message, "socle tables list")}
}

func cause(text, command string) Cause {
	f := Cause{Text: text}
	if command != "" {
		f.Command = &command
	}

	return f
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
