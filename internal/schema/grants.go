package schema

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Grant lists a role's privileges on a table; policies may restrict them further.
type Grant struct {
	Role       string   `json:"role" enum:"public,anon,authenticated,service_role" doc:"public includes all of them."`
	Privileges []string `json:"privileges" nullable:"false" example:"[\"select\"]"`
}

// NewGrant replaces all privileges that a role has on a table.
type NewGrant struct {
	Role       string   `json:"role" enum:"public,anon,authenticated,service_role"`
	Privileges []string `json:"privileges" maxItems:"7" doc:"Any of select, insert, update, delete; for service_role also truncate, references, trigger. An empty list revokes all."`
}

var (
	rowPrivileges = []string{"select", "insert", "update", "delete"}
	allPrivileges = append(slices.Clone(rowPrivileges), "truncate", "references", "trigger")
)

const selectGrants = `
	select o.role, coalesce(pg_catalog.array_agg(pg_catalog.lower(g.privilege_type) order by g.privilege_type)
		filter (where g.privilege_type is not null), '{}') as privileges
	from pg_catalog.unnest('{public,anon,authenticated,service_role}'::text[]) with ordinality o(role, at)
	left join pg_catalog.pg_roles r on r.rolname = o.role
	left join (
		select distinct a.grantee, a.privilege_type
		from pg_catalog.pg_class c
		cross join lateral pg_catalog.aclexplode(coalesce(c.relacl, pg_catalog.acldefault('r', c.relowner))) a
		where c.oid = @table and a.privilege_type <> 'MAINTAIN' -- PostgreSQL 17 and later; unrelated to rows
	) g on g.grantee = coalesce(r.oid, 0)
	group by o.role, o.at
	order by o.at`

// ListGrants returns the privileges that public and the rows API's roles have on a table. It fails
// as [GetTable] does.
func ListGrants(ctx context.Context, q pg.Querier, project uuid.UUID, ref string) ([]Grant, error) {
	t, err := GetTable(ctx, q, project, ref)
	if err != nil {
		return nil, err
	}

	return grantsOf(ctx, q, t)
}

func grantsOf(ctx context.Context, q pg.Querier, t Table) ([]Grant, error) {
	return pg.All[Grant](ctx, q, selectGrants, pgx.StrictNamedArgs{"table": t.ID})
}

// UpdateGrants replaces the given roles' privileges on a table; other roles keep theirs. It fails
// as [GetTable] does, with Unprocessable on the field at fault (on confirm if anon or public would
// get write access without confirmation), and with Conflict, code busy, if the table is locked.
func UpdateGrants(
	ctx context.Context, owner *pgxpool.Pool, project uuid.UUID, ref string, grants []NewGrant, confirm bool,
) ([]Grant, error) {
	var updated []Grant
	err := changeTable(ctx, owner, project, ref, func(ctx context.Context, tx pgx.Tx, t Table) error {
		if err := checkGrants(grants, confirm); err != nil {
			return err
		}

		for _, g := range grants {
			if err := g.apply(ctx, tx, t); err != nil {
				return err
			}
		}

		var err error
		updated, err = grantsOf(ctx, tx, t)
		return err
	})

	return updated, err
}

func checkGrants(grants []NewGrant, confirm bool) error {
	var roles []string
	for i, g := range grants {
		field := "grants." + strconv.Itoa(i) + "."
		if slices.Contains(roles, g.Role) {
			return fault.OnField(fault.Unprocessable, field+"role", "duplicate", "is a duplicate")
		}

		roles = append(roles, g.Role)
		privileges := rowPrivileges
		if g.Role == "service_role" {
			privileges = allPrivileges
		}

		for j, p := range g.Privileges {
			if !slices.Contains(privileges, p) {
				return fault.OnField(fault.Unprocessable, field+"privileges."+strconv.Itoa(j), "not_allowed",
					"must be one of %s", strings.Join(privileges, ", "))
			}
		}

		if includesAnonymous(g.Role) && slices.ContainsFunc(g.Privileges, func(p string) bool {
			return slices.Contains(writeCommands, p)
		}) {
			err := requireConfirmation(confirm, "lets everyone write rows of the table, subject to its policies")
			if err != nil {
				return err
			}
		}
	}

	return nil
}

// apply replaces the role's privileges. Inserting requires usage on the table's own sequences, and
// any privilege requires usage on the schema.
func (g NewGrant) apply(ctx context.Context, tx pgx.Tx, t Table) error {
	table, role := pg.Quote(t.Schema, t.Name), roleList([]string{g.Role})
	statements := []string{"revoke all on table " + table + " from " + role}
	if len(g.Privileges) > 0 {
		statements = append(statements, "grant "+strings.Join(g.Privileges, ", ")+" on table "+table+" to "+role)
	}

	if slices.Contains(g.Privileges, "insert") {
		sequences, err := ListSequences(ctx, tx, t.ID)
		if err != nil {
			return err
		}

		for _, s := range sequences {
			if !s.Identity { // identity sequences need no privilege
				statements = append(statements, "grant usage on sequence "+pg.Quote(s.Schema, s.Name)+" to "+role)
			}
		}
	}

	usable, err := pg.Value[bool](ctx, tx, `select pg_catalog.has_schema_privilege(@role, @schema, 'usage')`,
		pgx.StrictNamedArgs{"role": g.Role, "schema": t.Schema})
	if err != nil {
		return err
	}

	if len(g.Privileges) > 0 && !usable {
		statements = append(statements, "grant usage on schema "+pg.Quote(t.Schema)+" to "+role)
	}

	for _, sql := range statements {
		err := execute(ctx, tx, sql)
		if pg.State(err) == "XX000" { // internal_error: concurrent grant on the schema
			return errConcurrentChange
		}
		if err != nil {
			return translate(err, nil)
		}
	}

	return nil
}
