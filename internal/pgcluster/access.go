package pgcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// PostgreSQL opens every database to every login, through PUBLIC. Socle closes initdb's databases
// and its platform database to the project logins. Other programs' logins keep their access: each
// is granted by name what it had through PUBLIC, before the revoke, and at each later start if it
// is new since.
//
// The database's setting socle.access records the revoke and the grants, in their transaction. So
// installs that share the PostgreSQL know them, a login that an administrator excludes later stays
// excluded, and a database that an administrator had closed stays unchanged.

// InitdbDatabases are the databases that initdb creates, except template0, which takes no
// connections.
var InitdbDatabases = []string{"postgres", "template1"}

// access is a database's setting socle.access.
type access struct {
	Privileges []string `json:"privileges"` // PUBLIC's until the revoke; none if Socle revoked nothing
	Logins     []string `json:"logins"`     // granted the privileges by name
}

// Admission is a database that Socle has closed, and the other programs' logins that it admits by
// name.
type Admission struct {
	Database string
	Logins   []string
	Missing  []string // logins that are new since the last start
}

// databaseAccess is PostgreSQL's record of the access to a database.
type databaseAccess struct {
	Name    string
	Public  []string // PUBLIC's privileges
	Record  *string  // setting socle.access
	Managed bool     // Socle has worked on this PostgreSQL before
}

const selectAccess = `
	select d.datname::text as name,
		array(select a.privilege_type from aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
			where a.grantee = 0 order by 1) as public,
		(select substr(s, length('socle.access=') + 1) from pg_db_role_setting r cross join unnest(r.setconfig) s
			where r.setdatabase = d.oid and r.setrole = 0 and starts_with(s, 'socle.access=')) as record,
		exists (select from pg_database where datname ~ '^socle_(template_|[0-9a-f]{32})') as managed
	from pg_database d
	where d.datname = any(@names)
	order by d.datname`

// projectLogin is the name pattern for project logins, from this install and others.
const projectLogin = `^socle_[0-9a-f]{32}_(owner|request|service|dump|auth|reader)$`

// selectOtherLogins selects the other programs' logins that do not have all privileges on a
// database by name, through a role or as its owner.
const selectOtherLogins = `
	select r.rolname::text from pg_roles r
	cross join pg_database d
	where d.datname = @database and r.rolcanlogin and not r.rolsuper and r.rolname !~ '` + projectLogin + `'
		and not pg_has_role(r.oid, d.datdba, 'usage')
		and exists (select from unnest(@privileges::text[]) p
			where not exists (select from aclexplode(d.datacl) a
				where a.privilege_type = p and a.grantee <> 0 and pg_has_role(r.oid, a.grantee, 'usage')))
	order by r.rolname`

// CloseDatabases closes databases to the project logins, and grants other programs' logins by name
// what they lose. It leaves a database that q's login may not change; socle doctor reports that.
func CloseDatabases(ctx context.Context, q pg.Querier, log *slog.Logger, names ...string) error {
	var err error
	for range maxConflicts {
		err = closeDatabases(ctx, q, log, names)
		// tuple concurrently updated by another server, a login dropped meanwhile
		if s := pg.State(err); s != "XX000" && s != "42704" {
			return err
		}
	}

	return err
}

func closeDatabases(ctx context.Context, q pg.Querier, log *slog.Logger, names []string) error {
	databases, err := pg.All[databaseAccess](ctx, q, selectAccess, pgx.StrictNamedArgs{"names": names})
	if err != nil {
		return err
	}

	for _, d := range databases {
		if err := d.closeToPublic(ctx, q, log); err != nil {
			return fmt.Errorf("close database %s: %w", d.Name, err)
		}
	}

	return nil
}

// closeToPublic grants PUBLIC's privileges to other programs' unrecorded logins, and revokes them
// from PUBLIC.
func (d databaseAccess) closeToPublic(ctx context.Context, q pg.Querier, log *slog.Logger) error {
	record, err := d.parseRecord()
	if err != nil {
		return err
	}

	next := access{Privileges: record.Privileges, Logins: record.Logins}
	if len(d.Public) > 0 {
		next.Privileges = d.Public
	}

	logins, err := d.newLogins(ctx, q, next)
	if err != nil {
		return err
	}

	if d.Record != nil && len(d.Public) == 0 && len(logins) == 0 {
		return nil
	}

	next.Logins = append(slices.Clone(next.Logins), logins...)
	slices.Sort(next.Logins)

	err = d.execute(ctx, q, logins, next)
	if pg.State(err) == "42501" { // insufficient_privilege
		return nil
	}
	if err == nil && len(logins) > 0 {
		log.Warn("logins of other programs are granted by name what PUBLIC no longer has", "database", d.Name,
			"privileges", strings.Join(next.Privileges, ", "), "logins", strings.Join(logins, ", "))
	}

	return err
}

// parseRecord returns the access as recorded. Releases without the record closed each database that
// was open, so without one, PUBLIC had the privileges that initdb and CREATE DATABASE grant. On a
// PostgreSQL that Socle is new to, an administrator has revoked them.
func (d databaseAccess) parseRecord() (access, error) {
	if d.Record != nil {
		var a access
		err := json.Unmarshal([]byte(*d.Record), &a)

		return a, err
	}

	switch {
	case !d.Managed:
		return access{}, nil
	case d.Name == "template1":
		return access{Privileges: []string{"CONNECT"}}, nil
	}

	return access{Privileges: []string{"CONNECT", "TEMPORARY"}}, nil
}

// newLogins returns the other programs' logins that need a grant.
func (d databaseAccess) newLogins(ctx context.Context, q pg.Querier, a access) ([]string, error) {
	if len(a.Privileges) == 0 {
		return nil, nil
	}

	logins, err := pg.Values[string](ctx, q, selectOtherLogins,
		pgx.StrictNamedArgs{"database": d.Name, "privileges": a.Privileges})

	return slices.DeleteFunc(logins, func(name string) bool {
		return len(d.Public) == 0 && slices.Contains(a.Logins, name)
	}), err
}

// execute grants, revokes and records in one transaction.
func (d databaseAccess) execute(ctx context.Context, q pg.Querier, logins []string, next access) error {
	record, err := json.Marshal(next)
	if err != nil {
		return err
	}

	database := "database " + pg.Quote(d.Name)
	statements := []string{"alter " + database + " set socle.access = " + pg.Literal(string(record))}
	for _, name := range logins {
		statements = append(statements,
			"grant "+strings.Join(next.Privileges, ", ")+" on "+database+" to "+pg.Quote(name))
	}

	statements = append(statements, "revoke all on "+database+" from public")
	_, err = q.Exec(ctx, strings.Join(statements, ";\n"))

	return err
}

// Admissions returns which other programs' logins use the databases that Socle has closed.
func Admissions(ctx context.Context, q pg.Querier, names ...string) ([]Admission, error) {
	databases, err := pg.All[databaseAccess](ctx, q, selectAccess, pgx.StrictNamedArgs{"names": names})
	if err != nil {
		return nil, err
	}

	var admissions []Admission
	for _, d := range databases {
		a, err := d.parseRecord()
		if err != nil {
			return nil, err
		}

		missing, err := d.newLogins(ctx, q, a)
		if err != nil {
			return nil, err
		}

		if len(d.Public) == 0 && len(a.Logins)+len(missing) > 0 {
			admissions = append(admissions, Admission{d.Name, a.Logins, missing})
		}
	}

	return admissions, nil
}
