package tenant

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/pg"
)

// A login can't be dropped while anything on the server names it. New objects can't name a login of another project (see
// socle.refuse_references), older ones may, and a transaction of another tenant may hold their locks. So whoever removes a
// project tries to drop its logins once and retires those that remain: a retired login can't log in, and the
// rounds of [Lifecycle.Finish] drop it as soon as that is possible.
const (
	retireLockTimeout = "1s"
	retireTime        = 5 * time.Second // for one try to drop a retired login; what it did stays done
	policyBatch       = 200             // policies that one transaction drops or changes: each takes a lock
)

// dropRoles drops logins, and returns those that something still names. They can't log in any more.
func dropRoles(ctx context.Context, conn *pgx.Conn, names []string) (retired []string, err error) {
	if _, err := conn.Exec(ctx, "set lock_timeout = "+pg.Literal(retireLockTimeout)); err != nil {
		return nil, err
	}

	for _, name := range names {
		err := alter(ctx, conn, "drop role if exists "+pg.Quote(name))
		switch pg.State(err) {
		case "2BP01", "55P03": // dependent_objects_still_exist, lock_not_available
			retired = append(retired, name)
			err = alter(ctx, conn, "alter role "+pg.Quote(name)+" nologin connection limit 0 password null")
		}

		if err != nil {
			return nil, fmt.Errorf("drop role %s: %w", name, err)
		}
	}

	return retired, nil
}

// dropRetiredRole tries to drop the retired login that is due, if there is one.
func (l Lifecycle) dropRetiredRole(ctx context.Context) error {
	name, err := l.Store.DueRetiredRole(ctx)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}

	trying, cancel := context.WithTimeout(ctx, retireTime)
	defer cancel()

	if err := l.Registry.dropNamed(trying, name); err != nil {
		return fmt.Errorf("login %s of a removed project: %w", name, err)
	}

	return l.Store.ForgetRetiredRole(ctx, name)
}

// dropNamed drops a login after it has removed what names it in the databases of other projects.
func (r *Registry) dropNamed(ctx context.Context, role string) error {
	return r.admin(ctx, func(conn *pgx.Conn) error {
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
			if err := r.forgetRole(ctx, name, role); err != nil {
				errs = append(errs, fmt.Errorf("database %s: %w", name, err))
			}
		}

		left, err := dropRoles(ctx, conn, []string{role})
		if len(left) > 0 {
			err = errors.New("it is still named")
		}

		return errors.Join(append(errs, err)...)
	})
}

// forgetRole removes the policies' mentions of a login from a database, in batches, then its privileges there. A table that another
// session has locked keeps its policies.
func (r *Registry) forgetRole(ctx context.Context, database, role string) error {
	c := r.base.ConnConfig.Copy()
	c.Database = database
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
		errs = append(errs, forgetInPolicies(ctx, conn, table, role))
	}

	_, err = conn.Exec(ctx, "drop owned by "+pg.Quote(role))
	return errors.Join(append(errs, err)...)
}

// forgetInPolicies removes a login from the policies of a table. A policy that names no other role is dropped: without
// roles it would be one for all.
func forgetInPolicies(ctx context.Context, conn *pgx.Conn, table uint32, role string) error {
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

		if err := atOnce(ctx, conn, statements); err != nil {
			return err
		}
	}
}
