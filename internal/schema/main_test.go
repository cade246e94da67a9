package schema_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/schema"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// initialSchema is the initial content of a project's database: the schemas of the platform and the
// event trigger that enables row level security on new tables.
const initialSchema = `
	create schema auth; create schema storage; create schema forms; create schema realtime; create schema socle;
	create table auth.users (id uuid primary key);
	create function auth.uid() returns uuid language sql as 'select null::uuid';
	create function socle.close_new_tables() returns event_trigger language plpgsql set search_path = pg_catalog, pg_temp as $$
	declare made record;
	begin
		for made in select d.object_identity from pg_event_trigger_ddl_commands() d where d.object_type = 'table' loop
			execute 'alter table ' || made.object_identity || ' enable row level security';
		end loop;
	end $$;
	create event trigger close_new_tables on ddl_command_end when tag in ('CREATE TABLE') execute function socle.close_new_tables();`

// project is a database with the logins of a project.
type project struct {
	t        testing.TB
	uuid     uuid.UUID
	owner    *pgxpool.Pool // not a superuser
	platform *pgxpool.Pool
}

func newProject(t testing.TB) *project {
	t.Helper()

	address := pgtest.Clone(t, "project", func(ctx context.Context, address string) error {
		conn, err := pgx.Connect(ctx, address)
		if err != nil {
			return err
		}

		_, err = conn.Exec(ctx, initialSchema)
		return errors.Join(err, conn.Close(ctx))
	})

	p := &project{t: t, uuid: uuid.New(), platform: newPool(t, address)}
	database := p.platform.Config().ConnConfig.Database
	role := "owner_of_" + database
	p.run(p.platform, "create role "+role+" login password 'owner'", "grant create on database "+database+" to "+role,
		"alter schema public owner to "+role,
		"alter default privileges for role "+role+" revoke execute on functions from public")

	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}

	u.User = url.UserPassword(role, "owner")
	p.owner = newPool(t, u.String())
	t.Cleanup(func() {
		for name, pool := range map[string]*pgxpool.Pool{"owner": p.owner, "platform": p.platform} {
			// Abandoned sessions need a moment to end.
			pgtest.Eventually(t, "no connection of the "+name+"'s pool is in use", func() bool {
				return pool.Stat().AcquiredConns() == 0
			})
		}
	})

	return p
}

func newPool(t testing.TB, address string) *pgxpool.Pool {
	t.Helper()

	config, err := pg.PoolConfig(address, 4)
	if err != nil {
		t.Fatal(err)
	}

	supervisor := pg.NewSupervisor(config.ConnConfig)
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		supervisor.Supervise(c) // as in package projectdb
		return nil
	}

	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(pool.Close)
	return pool
}

// run runs statements on a pool in order.
func (p *project) run(pool *pgxpool.Pool, statements ...string) {
	p.t.Helper()

	for _, sql := range statements {
		if _, err := pool.Exec(p.t.Context(), sql); err != nil {
			p.t.Fatalf("%s: %v", sql, err)
		}
	}
}

// sql runs statements as the owner, like a user's own SQL.
func (p *project) sql(statements ...string) {
	p.t.Helper()

	p.run(p.owner, statements...)
}

// value returns the value of an expression as text, evaluated by the platform's login.
func (p *project) value(expression string) string {
	p.t.Helper()

	v, err := pg.Value[*string](p.t.Context(), p.platform, "select ("+expression+")::text")
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}

	if v == nil {
		return "<null>"
	}

	return *v
}

// table creates a table in public.
func (p *project) table(name string, columns ...schema.NewColumn) schema.Table {
	p.t.Helper()

	t, err := schema.CreateTable(p.t.Context(), p.owner, schema.NewTable{Name: name, Columns: columns})
	if err != nil {
		p.t.Fatalf("create table %s: %v", name, err)
	}

	return t
}

// add adds a column and returns it.
func (p *project) add(table string, c schema.NewColumn) (schema.Column, error) {
	columns, err := schema.CreateColumns(p.t.Context(), p.owner, p.uuid, table, []schema.NewColumn{c})
	if err != nil {
		return schema.Column{}, err
	}

	return columns[0], nil
}

func (p *project) columns(ref string) []schema.Column {
	p.t.Helper()

	columns, _, err := schema.ListColumns(p.t.Context(), p.platform, p.uuid, ref)
	if err != nil {
		p.t.Fatalf("columns of %s: %v", ref, err)
	}

	return columns
}

// snapshot returns the catalog entries of all user tables, columns, constraints and functions.
func (p *project) snapshot() string {
	p.t.Helper()

	return p.value(`
		select string_agg(line, E'\n' order by line) from (
			select c.oid || ' ' || c.relname || ' ' || coalesce((select string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' order by a.attnum)
				from pg_attribute a where a.attrelid = c.oid and a.attnum > 0), '') || ' ' || (select count(*) from pg_constraint where conrelid = c.oid) as line
			from pg_class c where c.relnamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace, 'pg_toast'::regnamespace)
			union all select p.oid || ' ' || p.proname || ' ' || p.prosrc from pg_proc p where p.pronamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)) x`)
}

// column is an integer column.
func column(name string) schema.NewColumn { return schema.NewColumn{Name: name, Type: "integer"} }

// wantFault checks the kind, field and code of err, and that its text contains no internals of
// PostgreSQL.
func wantFault(t testing.TB, label string, err error, kind fault.Kind, field, code string) {
	t.Helper()

	if err == nil {
		t.Errorf("%s: got no error, want kind %d on %q", label, kind, field)
		return
	}

	f := fault.Of(err)
	var got string
	if len(f.Fields) > 0 {
		got = f.Fields[0].Name
	}

	if f.Kind != kind || got != field || f.CodeWord() != code {
		t.Errorf("%s: got kind %d on %q with code %s, want kind %d on %q with code %s (%v)", label, f.Kind, got,
			f.CodeWord(), kind, field, code, err)
	}

	for _, leak := range []string{"SQLSTATE", "ERROR", "pg_catalog", "alter table", "create "} {
		if strings.Contains(f.Detail, leak) {
			t.Errorf("%s: detail %q contains %q", label, f.Detail, leak)
		}
	}
}

// concurrently runs f n times concurrently and returns the errors.
func concurrently(n int, f func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})

	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			errs[i] = f(i)
		})
	}

	close(start)
	all.Wait()

	return errs
}

// successes returns the number of nil errors and checks that all others have one of the kinds.
func successes(t testing.TB, errs []error, kinds ...fault.Kind) int {
	t.Helper()

	n := 0
	for i, err := range errs {
		if err == nil {
			n++
			continue
		}

		expected := false
		for _, k := range kinds {
			expected = expected || fault.Is(err, k)
		}

		if !expected {
			t.Errorf("call %d: got %v, want a fault of kind %v", i, err, kinds)
		}
	}

	return n
}

// waitFor waits until the expression is true.
func (p *project) waitFor(expression string) {
	p.t.Helper()

	pgtest.Eventually(p.t, expression, func() bool { return p.value(expression) == "true" })
}
