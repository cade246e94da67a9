// Package explain tells why a logged request of an application answered as it did: the statement's
// shape, the role, the policies that apply and the privileges that are missing, with the command
// that mends it. It reads the request log and the catalog, and never runs the statement again. So
// it tells what holds now, which may differ from what held then.
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

// Cause is a cause of an answer.
type Cause struct {
	Text    string  `json:"text"`
	Command *string `json:"command" nullable:"true" doc:"Command that mends it, or shows more."`
}

// facts is what the catalog tells about the target of a request.
type facts struct {
	table       string   // as commands take it; "": no such table
	privileges  []string // held by the role and by public
	own         []string // held by the role alone, which a change of grants replaces
	rowSecurity bool
	policies    []schema.Policy // all of the table
	tables      []string        // names of other tables, if there is no such table
}

// maxTables bounds the tables among which the nearest name is searched.
const maxTables = 1000

// Request explains a request of the log of a project. q reads the project's catalog.
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
		e.Policies = applying(f.policies, t.command, *r.Role)
	}

	e.Causes = append(e.Causes, find(r, t, f, e.Policies)...)
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

// readFacts reads the privileges and policies of a table for a role.
func readFacts(ctx context.Context, q pg.Querier, project uuid.UUID, name, role string) (facts, error) {
	t, err := schema.GetTable(ctx, q, project, name)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) {
		all, _, err := schema.ListTables(ctx, q, pg.Page{Number: 1, Limit: maxTables, Sort: "name"})
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
			f.own = g.Privileges
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

// shortName returns the full name of a table as commands print it.
func shortName(full string) string { return strings.TrimPrefix(full, "public.") }

// applying returns the policies that apply to a command of a role.
func applying(policies []schema.Policy, command, role string) []schema.Policy {
	all := []schema.Policy{}
	for _, p := range policies {
		if (p.Command == "all" || p.Command == command) &&
			(slices.Contains(p.Roles, role) || slices.Contains(p.Roles, "public")) {
			all = append(all, p)
		}
	}

	return all
}
