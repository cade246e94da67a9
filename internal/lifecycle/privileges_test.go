package lifecycle_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// TestNewTablesAreClosed creates tables by every SQL statement that can.
func TestNewTablesAreClosed(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	conn := projectdbtest.Connect(t, p, pgcluster.Owner)
	pgtest.Exec(t, conn, `create schema other; create type public.pair as (a int, b int);
		create function public.make() returns void language plpgsql as 'begin execute ''create table public.by_function ()''; create table public.by_plpgsql (); end'`)

	for _, sql := range []string{
		`create table public.plain (id int)`,
		`create table "odd ""name""" ()`,
		`create table if not exists other.in_schema ()`,
		`create table public.as_select as select 1 as n`,
		`select 1 as n into public.by_select_into`,
		`create table public.like_other (like public.plain including all)`,
		`create table public.child () inherits (public.plain)`,
		`create table public.of_type of public.pair`,
		`create unlogged table public.unlogged ()`,
		`create table public.parted (id int) partition by range (id)`,
		`create table public.part partition of public.parted for values from (0) to (9)`,
		`select public.make()`,
		`do 'begin create table public.by_do (); end'`,
		`create schema with_table create table inside (id int) create table inside_too (id int)`,
		`begin; create table public.in_transaction (); commit`,
		`create table public.renamed_later (); alter table public.renamed_later rename to renamed`,
	} {
		pgtest.Exec(t, conn, "set search_path = public; "+sql)
	}

	pgtest.Exec(t, conn, `create temp table temporary ()`)

	type table struct {
		Closed bool
		Name   string
	}

	tables, err := pg.All[table](t.Context(), conn, `
		select c.relrowsecurity as closed, c.relname as name
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind in ('r', 'p') and n.nspname in ('public', 'other', 'with_table')`)
	if err != nil {
		t.Fatal(err)
	}

	if len(tables) != 18 {
		t.Errorf("got %d tables, want 18", len(tables))
	}

	for _, table := range tables {
		if !table.Closed {
			t.Errorf("table %s is open", table.Name)
		}
	}

	if pgtest.Value[bool](t, conn, `select relrowsecurity from pg_class where oid = 'pg_temp.temporary'::regclass`) {
		t.Error("a temporary table is inaccessible to its own session")
	}
}

// TestNothingIsGranted checks the privileges of the rows API's roles on objects of the owner.
func TestNothingIsGranted(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	conn := projectdbtest.Connect(t, p, pgcluster.Owner)
	pgtest.Exec(t, conn, `create table public.t (id serial); create function public.f() returns int language sql as 'select 1';
		create procedure public.p() language sql as ''; create aggregate public.a(int) (sfunc = int4pl, stype = int);
		create view public.v as select 1; create schema s; create function s.f() returns int language sql as 'select 1'`)

	const may = `
		select what from (values
			('select', has_table_privilege(@role, 'public.t', 'select')), ('insert', has_table_privilege(@role, 'public.t', 'insert')),
			('view', has_table_privilege(@role, 'public.v', 'select')), ('sequence', has_sequence_privilege(@role, 'public.t_id_seq', 'usage')),
			('function', has_function_privilege(@role, 'public.f()', 'execute')), ('procedure', has_function_privilege(@role, 'public.p()', 'execute')),
			('aggregate', has_function_privilege(@role, 'public.a(int)', 'execute')), ('other function', has_function_privilege(@role, 's.f()', 'execute')),
			('other schema', has_schema_privilege(@role, 's', 'usage')),
			('make tables', has_schema_privilege(@role, 'public', 'create')), ('make schemas', has_database_privilege(@role, current_database(), 'create')),
			('make temporary tables', has_database_privilege(@role, current_database(), 'temporary')),
			('read files', has_table_privilege(@role, 'storage.files', 'select')), ('write files', has_table_privilege(@role, 'storage.files', 'insert, update, delete'))
		) as known(what, granted) where granted order by what`

	everything := []string{
		"aggregate", "function", "insert", "other function", "procedure", "select", "sequence", "view",
	}
	for role, want := range map[string][]string{"anon": {}, "authenticated": {}, "service_role": everything,
		p.Cluster().Login(p.UUID, pgcluster.Request): {}, p.Cluster().Login(p.UUID, pgcluster.Service): {}} {
		got, err := pg.Values[string](t.Context(), projectdbtest.Connect(t, p, pgcluster.Trusted), may,
			pgx.StrictNamedArgs{"role": role})
		if err != nil {
			t.Fatal(err)
		}

		slices.Sort(got)

		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s has unexpected privileges: %s", role, d)
		}
	}
}

// TestLoginRoles checks which roles the two logins of the rows API may assume.
func TestLoginRoles(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	for l, roles := range map[*pgcluster.Login][]string{
		&pgcluster.Request: {"anon", "authenticated"},
		&pgcluster.Service: {"service_role"},
		&pgcluster.Owner:   nil,
		&pgcluster.Dump:    nil,
	} {
		conn := projectdbtest.Connect(t, p, *l)
		for _, role := range []string{"anon", "authenticated", "service_role"} {
			want := "42501"
			if slices.Contains(roles, role) {
				want = ""
			}

			if got := pgtest.State(t, conn, "set role "+role+"; reset role"); got != want {
				t.Errorf("%s becomes %s: got state %q, want %q", l, role, got, want)
			}
		}
	}
}

// TestSessionsAreCleaned leaves every kind of state in a session of the owner's pool.
func TestSessionsAreCleaned(t *testing.T) {
	t.Parallel()

	pool := projectdbtest.New(t).Owner()
	first, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	release := sync.OnceFunc(first.Release)
	defer release()

	session := first.Conn().PgConn().PID()

	pgtest.Exec(t, first.Conn(),
		`set search_path = public; set statement_timeout = '50s'; set "app.user" = 'me'; set client_encoding = 'LATIN1';
		create temp table left_behind (); create temp sequence counter; prepare left_behind as select 1;
		declare left_behind cursor with hold for select 1; listen left_behind; select pg_advisory_lock(1); select nextval('counter')`)

	release()

	second, err := pool.Acquire(t.Context())
	for err == nil && second.Conn().PgConn().PID() != session { // the reset runs concurrently
		second.Release()
		second, err = pool.Acquire(t.Context())
	}

	if err != nil {
		t.Fatal(err)
	}

	defer second.Release()

	got := pgtest.Value[map[string]any](t, second, `
		select jsonb_build_object('search_path', current_setting('search_path'), 'timeout', current_setting('statement_timeout'),
			'user', current_setting('app.user', true), 'encoding', current_setting('client_encoding'), 'temporary', to_regclass('pg_temp.left_behind'),
			'prepared', (select count(*) from pg_prepared_statements where name <> ''), 'cursors', (select count(*) from pg_cursors where name <> ''),
			'channels', (select count(*) from pg_listening_channels()),
			'locks', (select count(*) from pg_locks where pid = pg_backend_pid() and locktype = 'advisory'))`)

	want := map[string]any{"search_path": "pg_catalog, pg_temp", "timeout": "0", "user": "", "encoding": "UTF8",
		"temporary": nil, "prepared": 0.0, "cursors": 0.0, "channels": 0.0, "locks": 0.0}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestOwnerChangesItself changes the password and the settings of a login as the login itself.
func TestOwnerChangesItself(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 8)
	p := projectdbtest.NewIn(t, r)
	conn := projectdbtest.Connect(t, p, pgcluster.Owner)
	pgtest.Exec(t, conn, `alter role current_user password 'mine'; alter role current_user set search_path = public;
		alter role current_user set client_encoding = 'LATIN1'; alter role current_user set statement_timeout = 1;
		alter role current_user set default_transaction_read_only = on`)

	if _, err := p.Owner().Exec(t.Context(), "select"); pg.State(err) != "28P01" {
		t.Fatalf("first attempt: got %v, want a wrong password", err)
	}
	if got := pgtest.Value[string](t, p.Owner(),
		`select current_setting('search_path') || ' ' || current_setting('client_encoding')`); got !=
		"pg_catalog, pg_temp UTF8" {
		t.Errorf("settings of a session: got %q", got)
	}

	if _, err := p.Owner().Exec(t.Context(), "create table public.t ()"); err != nil {
		t.Error(err)
	}

	if got := pgtest.Value[*string](t, conn, "select rolconfig::text from pg_roles where rolname = current_user"); got != nil {
		t.Errorf("the login's settings: got %s, want none", *got)
	}
}

// TestOwnerChangesItselfMeanwhile sets a login's attributes while the owner changes them.
func TestOwnerChangesItselfMeanwhile(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 8)
	p := projectdbtest.NewIn(t, r)
	conn := projectdbtest.Connect(t, p, pgcluster.Owner)
	for _, change := range []string{
		"alter role current_user password 'mine'", "alter role current_user set search_path = public",
	} {
		pgtest.Exec(t, conn, change) // creates the row for the conflict
		pgtest.Exec(t, conn, "begin; "+change)
		done := make(chan error, 1)

		go func() { done <- p.Cluster().ResetLogins(t.Context(), p.UUID) }()

		for waiting := false; !waiting; {
			if len(done) > 0 {
				t.Fatalf("%s: no conflict with the owner's change", change)
			}

			waiting = pgtest.Value[bool](t, p.Trusted(),
				`select exists (select from pg_stat_activity where wait_event_type = 'Lock' and query like '%' || $1 || '%')`, p.Cluster().Login(p.UUID, pgcluster.Owner))
		}

		pgtest.Exec(t, conn, "commit")
		if err := <-done; err != nil {
			t.Errorf("%s: got %v", change, err)
		}

		projectdbtest.Connect(t, p, pgcluster.Owner)
	}

	if got := pgtest.Value[*string](t, conn, "select rolconfig::text from pg_roles where rolname = current_user"); got != nil {
		t.Errorf("the login's settings: got %s, want none", *got)
	}
}
