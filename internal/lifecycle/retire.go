package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
)

// A login cannot be dropped while any object on the server refers to it. New objects cannot refer
// to another project's login, see socle.refuse_references. Older ones may, and another tenant's
// transaction may lock them. Removing a project therefore tries once to drop each login and retires
// the rest: a retired login cannot log in, and [Service.Finish] retries to drop it.
const (
	retireLockTimeout = "1s"
	retireTimeout     = 5 * time.Second // for one attempt to drop a retired login; partial progress stays
	policyBatch       = 200             // policies dropped or changed per transaction; each takes a lock
)

// dropLogins drops logins. It returns those that objects still refer to, after disabling them.
func dropLogins(ctx context.Context, conn *pgx.Conn, names []string) (remaining []string, err error) {
	if _, err := conn.Exec(ctx, "set lock_timeout = "+pg.Literal(retireLockTimeout)); err != nil {
		return nil, err
	}

	for _, name := range names {
		err := pgcluster.Exec(ctx, conn, "drop role if exists "+pg.Quote(name))
		switch pg.State(err) {
		case "2BP01", "55P03": // dependent_objects_still_exist, lock_not_available
			remaining = append(remaining, name)
			err = pgcluster.Exec(ctx, conn, "alter role "+pg.Quote(name)+" nologin connection limit 0 password null")
		}

		if err != nil {
			return nil, fmt.Errorf("drop role %s: %w", name, err)
		}
	}

	return remaining, nil
}

// dropRetiredLogin tries to drop the retired login that is due, if there is one.
func (s *Service) dropRetiredLogin(ctx context.Context) error {
	name, err := s.Store.DueRetiredRole(ctx)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}

	dropCtx, cancel := context.WithTimeout(ctx, retireTimeout)
	defer cancel()

	if err := s.dropReferencedLogin(dropCtx, name); err != nil {
		return fmt.Errorf("drop login %s of a removed project: %w", name, err)
	}

	return s.Store.ForgetRetiredRole(ctx, name)
}

// dropReferencedLogin drops a login after removing the references to it from other projects'
// databases.
func (d Databases) dropReferencedLogin(ctx context.Context, role string) error {
	project, _ := d.Registry.ProjectOf(role)
	cluster := d.Registry.Cluster(project)
	return cluster.WithConn(ctx, func(conn *pgx.Conn) error {
		databases, err := pg.Values[string](ctx, conn, `
			select distinct d.datname
			from pg_shdepend s join pg_database d on d.oid = s.dbid
			where s.refclassid = 'pg_authid'::regclass and s.refobjid = (select oid from pg_roles where rolname = @role) and d.datallowconn`,
			pgx.StrictNamedArgs{"role": role})
		if err != nil {
			return err
		}

		var errs []error
		for _, name := range databases {
			if err := removeReferences(ctx, cluster, name, role); err != nil {
				errs = append(errs, fmt.Errorf("database %s: %w", name, err))
			}
		}

		remaining, err := dropLogins(ctx, conn, []string{role})
		if len(remaining) > 0 {
			err = errors.New("objects still refer to it")
		}

		return errors.Join(append(errs, err)...)
	})
}

// removeReferences removes a login from a database's policies, in batches, and then the privileges
// there. It skips a table's policies if another session has locked it.
func removeReferences(ctx context.Context, cluster *pgcluster.Cluster, database, role string) error {
	c := cluster.TrustedConfig(database)
	c.RuntimeParams["lock_timeout"] = retireLockTimeout

	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	tables, err := pg.Values[uint32](ctx, conn, `
		select distinct p.polrelid
		from pg_shdepend s join pg_policy p on p.oid = s.objid
		where s.dbid = (select oid from pg_database where datname = current_database()) and s.classid = 'pg_policy'::regclass
			and s.refclassid = 'pg_authid'::regclass and s.refobjid = (select oid from pg_roles where rolname = @role)`,
		pgx.StrictNamedArgs{"role": role})
	if err != nil {
		return err
	}

	var errs []error
	for _, table := range tables {
		errs = append(errs, removeFromPolicies(ctx, conn, table, role))
	}

	_, err = conn.Exec(ctx, "drop owned by "+pg.Quote(role))
	return errors.Join(append(errs, err)...)
}

// removeFromPolicies removes a login from a table's policies. It drops a policy that names no other
// role: without roles a policy applies to PUBLIC.
func removeFromPolicies(ctx context.Context, conn *pgx.Conn, table uint32, role string) error {
	for {
		statements, err := pg.Values[string](ctx, conn, `
			select case when others is null then format('drop policy %I on %s', p.polname, p.polrelid::regclass)
				else format('alter policy %I on %s to %s', p.polname, p.polrelid::regclass, others) end
			from pg_policy p, lateral (
				select string_agg(case one when 0 then 'public' else one::regrole::text end, ', ') as others
				from unnest(p.polroles) one where one <> (select oid from pg_roles where rolname = @role)) o
			where p.polrelid = @table and (select oid from pg_roles where rolname = @role) = any(p.polroles)
			limit @batch`,
			pgx.StrictNamedArgs{"role": role, "table": table, "batch": policyBatch})
		if err != nil || len(statements) == 0 {
			return err
		}

		if err := pgcluster.ExecBatch(ctx, conn, statements); err != nil {
			return err
		}
	}
}
