// Package explain explains the response to a logged application request: the statement's shape, the
// role, the policies that apply and the missing privileges, with the command that grants them. It
// reads the request log and the catalog, and never reruns the statement. So it tells the current
// state, which may differ from the state at the time.
package explain

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/requestlog"
	"github.com/socle-dev/socle/internal/schema"
)

// Explanation explains a request.
type Explanation struct {
	Request     requestlog.Request `json:"request"`
	Statement   *string            `json:"statement" nullable:"true" doc:"Shape of the SQL, as far as the log has it: values are cut. null: not a request for rows."`
	Role        *string            `json:"role" nullable:"true" doc:"Role in the database."`
	Claims      map[string]string  `json:"claims" doc:"Claims that the log has: role and sub. It has no others."`
	Table       *string            `json:"table" nullable:"true" doc:"Table that the request names, if it exists."`
	RowSecurity *bool              `json:"rowSecurity" nullable:"true" doc:"Whether policies decide about the rows of the table."`
	Privileges  []string           `json:"privileges" nullable:"false" doc:"Privileges that the role has on the table now."`
	Policies    []schema.Policy    `json:"policies" nullable:"false" doc:"Policies that apply to the command and the role now."`
	Causes      []Cause            `json:"causes" nullable:"false" doc:"What the answer comes from, the likeliest first."`
}

// Cause is a possible cause of a response.
type Cause struct {
	Text    string  `json:"text"`
	Command *string `json:"command" nullable:"true" doc:"Command that mends it, or shows more."`
}

// facts holds what the catalog says about a request's target.
type facts struct {
	table       string   // as commands take it; "": no such table
	privileges  []string // held by the role and by public
	grants      []string // granted to the role alone; a grants update replaces these
	rowSecurity bool
	policies    []schema.Policy // all policies on the table
	tables      []string        // other table names, if there is no such table
}

// maxTables bounds the tables searched for the nearest name.
const maxTables = 1000

// Request explains a request from a project's log. q reads the project's catalog.
func Request(ctx context.Context, q pg.Querier, project uuid.UUID, r requestlog.Request) (Explanation, error) {
	e := Explanation{Request: r, Role: r.Role, Claims: claimsOf(r), Privileges: []string{}, Policies: []schema.Policy{},
		Causes: []Cause{}}

	t := targetOf(r)
	if text := statementOf(r, t); text != "" {
		e.Statement = &text
	}

	var f facts
	if t.table != "" && r.Role != nil {
		var err error
		if f, err = readFacts(ctx, q, project, relationOf(r, t), *r.Role); err != nil {
			return e, err
		}
	}

	if f.table != "" {
		e.Table, e.RowSecurity, e.Privileges = &f.table, &f.rowSecurity, f.privileges
		e.Policies = policiesFor(f.policies, t.command, *r.Role)
	}

	e.Causes = append(e.Causes, findCauses(r, t, f, e.Policies)...)
	return e, nil
}

func claimsOf(r requestlog.Request) map[string]string {
	claims := map[string]string{}
	if r.Role != nil {
		claims["role"] = *r.Role
	}
	if r.EndUserUUID != nil {
		claims["sub"] = r.EndUserUUID.String()
	}

	return claims
}

// readFacts reads a role's privileges and policies on a table.
func readFacts(ctx context.Context, q pg.Querier, project uuid.UUID, name, role string) (facts, error) {
	t, err := schema.GetTable(ctx, q, project, name)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) {
		all, _, err := schema.ListTables(ctx, q, pg.Page{Number: 1, Limit: maxTables, Sort: "name"}, "")
		var names []string
		for _, other := range all {
			names = append(names, shortName(other.FullName()))
		}

		return facts{tables: names}, err
	}
	if err != nil {
		return facts{}, err
	}

	f := facts{table: shortName(t.FullName()), privileges: []string{}}
	grants, err := schema.ListGrants(ctx, q, project, name)
	if err != nil {
		return facts{}, err
	}

	for _, g := range grants {
		if g.Role == role {
			f.grants = g.Privileges
		}
		if g.Role == role || g.Role == "public" {
			f.privileges = append(f.privileges, g.Privileges...)
		}
	}
	slices.Sort(f.privileges)
	f.privileges = slices.Compact(f.privileges)

	if f.policies, err = schema.ListPolicies(ctx, q, project, name); err != nil {
		return facts{}, err
	}

	f.rowSecurity, err = schema.HasRowSecurity(ctx, q, t.ID)
	return f, err
}

// shortName shortens a full table name to the form that commands print.
func shortName(full string) string { return strings.TrimPrefix(full, "public.") }

// policiesFor returns the policies that apply to a role's command.
func policiesFor(policies []schema.Policy, command, role string) []schema.Policy {
	all := []schema.Policy{}
	for _, p := range policies {
		if (p.Command == "all" || p.Command == command) &&
			(slices.Contains(p.Roles, role) || slices.Contains(p.Roles, "public")) {
			all = append(all, p)
		}
	}

	return all
}
