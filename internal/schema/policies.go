package schema

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Policy is a row level security policy: it decides which table rows a role may read and write.
type Policy struct {
	Name       string   `json:"name"`
	Command    string   `json:"command" enum:"all,select,insert,update,delete"`
	Roles      []string `json:"roles" nullable:"false" doc:"public includes all roles."`
	Permissive bool     `json:"permissive" doc:"At least one permissive policy must allow a row, and all restrictive ones."`
	Using      *string  `json:"using" nullable:"true" doc:"Condition on existing rows, as the database prints it."`
	WithCheck  *string  `json:"withCheck" nullable:"true" doc:"Condition on written rows; null if using applies to them."`
}

// NewPolicy describes a policy to create. Confirm acknowledges that it opens write access to
// everyone.
type NewPolicy struct {
	Name       string
	Command    string
	Roles      []string
	Permissive bool
	Using      string
	WithCheck  string
	Confirm    bool
}

// PolicyUpdate is a partial policy update; nil fields stay unchanged.
type PolicyUpdate struct {
	Name      *string
	Roles     []string
	Using     *string
	WithCheck *string
	Confirm   bool
}

// writeCommands are the commands that change rows.
var writeCommands = []string{"insert", "update", "delete", "all", "truncate"}

// includesAnonymous reports whether a role includes anonymous callers.
func includesAnonymous(role string) bool { return role == "anon" || role == "public" }

const selectPolicies = `
	select p.polname as name, case p.polcmd when 'r' then 'select' when 'a' then 'insert' when 'w' then 'update'
			when 'd' then 'delete' else 'all' end as command,
		array(select case n.role when 0 then 'public' else coalesce((select r.rolname::text from pg_catalog.pg_roles r where r.oid = n.role), n.role::text) end
			from pg_catalog.unnest(p.polroles) with ordinality n(role, at) order by n.at) as roles,
		p.polpermissive as permissive, pg_catalog.pg_get_expr(p.polqual, p.polrelid) as using,
		pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid) as with_check
	from pg_catalog.pg_policy p
	where p.polrelid = @table
	order by p.polname`

// ListPolicies returns a table's policies by name. It fails as [GetTable] does.
func ListPolicies(ctx context.Context, q pg.Querier, project uuid.UUID, ref string) ([]Policy, error) {
	t, err := GetTable(ctx, q, project, ref)
	if err != nil {
		return nil, err
	}

	return pg.All[Policy](ctx, q, selectPolicies, pgx.StrictNamedArgs{"table": t.ID})
}

func policyByName(ctx context.Context, tx pgx.Tx, t Table, name string) (Policy, error) {
	all, err := pg.All[Policy](ctx, tx, selectPolicies, pgx.StrictNamedArgs{"table": t.ID})
	if err != nil {
		return Policy{}, err
	}

	i := slices.IndexFunc(all, func(p Policy) bool { return p.Name == name })
	if i < 0 {
		return Policy{}, fault.New(fault.NotFound, "there is no such policy")
	}

	return all[i], nil
}

// CreatePolicy creates a policy on a table. It fails as [GetTable] does, with Conflict on name if
// the name is taken, with Conflict, code busy, if the table is locked, and with Unprocessable on
// the field at fault: on confirm if anon or public would get write access without confirmation.
func CreatePolicy(
	ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref string, n NewPolicy,
) (Policy, error) {
	var policy Policy
	err := changeTable(ctx, owner, project, ref, func(ctx context.Context, tx pgx.Tx, t Table) error {
		if err := checkName(fault.Unprocessable, "name", n.Name); err != nil {
			return err
		}

		if n.Permissive && slices.Contains(writeCommands, n.Command) &&
			slices.ContainsFunc(n.Roles, includesAnonymous) {
			if err := requireConfirmation(n.Confirm, "lets everyone write rows of the table"); err != nil {
				return err
			}
		}

		kind := "restrictive"
		if n.Permissive {
			kind = "permissive"
		}

		err := withSearchPath(ctx, tx, t.Schema, func() error {
			conditions, err := policyConditions(ctx, tx, t, n.Command, &n.Using, &n.WithCheck, true)
			if err != nil {
				return err
			}

			sql := "create policy " + pg.Quote(n.Name) + " on " + pg.Quote(t.Schema, t.Name) + " as " + kind +
				" for " + n.Command +
				" to " + roleList(n.Roles) + conditions
			return translate(execute(ctx, tx, sql), explainPolicy)
		})
		if err != nil {
			return err
		}

		policy, err = policyByName(ctx, tx, t, n.Name)
		return err
	})

	return policy, err
}

// roleList returns roles from the API's closed list as SQL. public is a keyword and stays unquoted.
func roleList(roles []string) string {
	all := make([]string, len(roles))
	for i, role := range roles {
		if all[i] = role; role != public {
			all[i] = pg.Quote(role)
		}
	}

	return strings.Join(all, ", ")
}

// policyConditions returns a policy's conditions as SQL. With all, it requires the conditions that
// the command needs.
func policyConditions(
	ctx context.Context, tx pgx.Tx, t Table, command string, using, check *string, all bool,
) (string, error) {
	sql := ""
	for _, part := range []struct {
		field, word string
		text        *string
		not         []string // commands that do not support it
		need        bool
	}{
		{"using", " using ", using, []string{"insert"}, command != "insert"},
		{"with_check", " with check ", check, []string{"select", "delete"}, command == "insert"},
	} {
		isSet := part.text != nil && (!all || *part.text != "")
		switch {
		case isSet && slices.Contains(part.not, command):
			return "", fault.OnField(fault.Unprocessable, part.field, "not_applicable",
				"does not apply to a policy for %s", command)
		case all && part.need && !isSet:
			return "", fault.OnField(fault.Unprocessable, part.field, "required",
				"is required for a policy for %s", command)
		case !isSet:
			continue
		}

		text, err := condition(ctx, tx, t, part.field, *part.text)
		if err != nil {
			return "", err
		}

		sql += part.word + text
	}

	return sql, nil
}

func explainPolicy(state string) *fault.Error {
	if state == "42710" { // duplicate_object
		return fault.OnField(fault.Conflict, "name", "already_exists", "is already used by a policy of the table")
	}
	if blamesUser(state) && state != "42501" {
		return badExpression("using", state)
	}

	return nil
}

// UpdatePolicy changes a policy. It fails as [CreatePolicy] does, and with NotFound for an unknown
// policy. The command and the kind (permissive or restrictive) can't be changed.
func UpdatePolicy(
	ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref, name string, u PolicyUpdate,
) (Policy, error) {
	var policy Policy
	err := changeTable(ctx, owner, project, ref, func(ctx context.Context, tx pgx.Tx, t Table) error {
		p, err := policyByName(ctx, tx, t, name)
		if err != nil {
			return err
		}

		roles := p.Roles
		if u.Roles != nil {
			roles = u.Roles
		}

		if (u.Roles != nil || u.Using != nil || u.WithCheck != nil) && p.Permissive &&
			slices.Contains(writeCommands, p.Command) && slices.ContainsFunc(roles, includesAnonymous) {
			if err := requireConfirmation(u.Confirm, "lets everyone write rows of the table"); err != nil {
				return err
			}
		}

		if err := u.alter(ctx, tx, t, p); err != nil {
			return err
		}

		if u.Name != nil && *u.Name != name {
			if err := checkName(fault.Unprocessable, "name", *u.Name); err != nil {
				return err
			}

			err := execute(ctx, tx,
				"alter policy "+pg.Quote(name)+" on "+pg.Quote(t.Schema, t.Name)+" rename to "+pg.Quote(*u.Name))
			if err != nil {
				return translate(err, explainPolicy)
			}

			name = *u.Name
		}

		policy, err = policyByName(ctx, tx, t, name)
		return err
	})

	return policy, err
}

// alter changes everything but the name.
func (u PolicyUpdate) alter(ctx context.Context, tx pgx.Tx, t Table, p Policy) error {
	return withSearchPath(ctx, tx, t.Schema, func() error {
		conditions, err := policyConditions(ctx, tx, t, p.Command, u.Using, u.WithCheck, false)
		if err != nil {
			return err
		}

		if u.Roles != nil {
			conditions = " to " + roleList(u.Roles) + conditions
		}

		if conditions == "" {
			return nil
		}

		sql := "alter policy " + pg.Quote(p.Name) + " on " + pg.Quote(t.Schema, t.Name) + conditions
		return translate(execute(ctx, tx, sql), explainPolicy)
	})
}

// DeletePolicy drops a policy. It fails as [GetTable] does, with NotFound for an unknown policy,
// and with Conflict, code busy, if the table is locked.
func DeletePolicy(ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref, name string) (Policy, error) {
	var policy Policy
	err := changeTable(ctx, owner, project, ref, func(ctx context.Context, tx pgx.Tx, t Table) error {
		var err error
		if policy, err = policyByName(ctx, tx, t, name); err != nil {
			return err
		}

		return translate(execute(ctx, tx, "drop policy "+pg.Quote(name)+" on "+pg.Quote(t.Schema, t.Name)), nil)
	})

	return policy, err
}

// HasRowSecurity reports whether policies restrict a table's rows.
func HasRowSecurity(ctx context.Context, q pg.Querier, table uint32) (bool, error) {
	return pg.Value[bool](ctx, q, `select c.relrowsecurity from pg_catalog.pg_class c where c.oid = @table`,
		pgx.StrictNamedArgs{"table": table})
}
