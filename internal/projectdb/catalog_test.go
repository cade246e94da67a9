package projectdb_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// TestCatalogueVersion checks that the version changes when a transaction with DDL commits, and at
// no other time.
func TestCatalogueVersion(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 8)
	p := projectdbtest.NewIn(t, r)
	conn, other := projectdbtest.Connect(t, p, pgcluster.Owner), projectdbtest.Connect(t, p, pgcluster.Owner)
	reader := projectdbtest.Connect(t, p, pgcluster.Request)
	seen := pgtest.Value[string](t, reader, projectdb.CatalogVersion)
	numbered := pgtest.Value[int64](t, reader, "select "+projectdb.CatalogChanges)

	changed := func(what string, want bool) {
		t.Helper()

		now := pgtest.Value[string](t, reader, projectdb.CatalogVersion)
		if now != seen != want {
			t.Errorf("%s: got version %[3]s after %[2]s, want a new one: %[4]v", what, seen, now, want)
		}

		seen = now
	}
	numberChanged := func(what string, want bool) {
		t.Helper()

		now := pgtest.Value[int64](t, reader, "select "+projectdb.CatalogChanges)
		if now != numbered != want {
			t.Errorf("%s: got number %d after %d, want a new one: %v", what, now, numbered, want)
		}

		numbered = now
	}

	pgtest.Exec(t, conn, "create table public.t (id int primary key)")
	numberChanged("a table", true)
	changed("a table", true)
	pgtest.Exec(t, conn, "begin; alter table public.t add column a int; alter table public.t add column b int")
	changed("before the commit", false)
	numberChanged("before the commit", true)
	pgtest.Exec(t, other, "begin; create table public.u (id int); commit") // does not wait
	changed("another transaction", true)
	numberChanged("another transaction", true)
	pgtest.Exec(t, conn, "commit")
	changed("the commit", true)
	numberChanged("the commit", false)
	pgtest.Exec(t, conn, "begin; create view public.v as select 1; rollback")
	changed("a rollback", false)
	numberChanged("a rollback", true)
	pgtest.Exec(t, conn, "begin; savepoint a; create view public.v as select 1; rollback to a")
	numberChanged("a savepoint", true)
	pgtest.Exec(t, conn, "create view public.x as select 1")
	numberChanged("a change after a savepoint", true)
	pgtest.Exec(t, conn, "commit")
	changed("a change after a savepoint", true)
	pgtest.Exec(t, conn,
		"create temporary table s (id int primary key, n int default 1 check (n > 0)); create index on s (n); alter table s add column m text; drop table s")

	changed("a temporary table", false)
	pgtest.Exec(t, conn, "create table if not exists public.t ()")
	changed("a table that is there", false)
	pgtest.Exec(t, conn, "insert into public.t values (1); truncate public.t; analyze public.t")
	changed("rows", false)
	numberChanged("rows", false)

	for _, sql := range []string{
		"create policy everything on public.t using (true)", "alter policy everything on public.t using (false)",
		"drop policy everything on public.t",
		"create function public.f() returns trigger language plpgsql as 'begin return new; end'",
		"create trigger f before insert on public.t for each row execute function public.f()",
		"drop trigger f on public.t", "comment on table public.t is 'x'", "grant select on public.t to anon",
		"revoke select on public.t from anon", "alter default privileges grant select on tables to anon",
		"create type public.mood as enum ('glad')", "alter type public.mood add value 'sad'",
		"create domain public.name as text", "create cast (public.mood as public.name) with inout as implicit",
		"create index on public.t (a)", "create statistics public.ab on a, b from public.t",
		"alter table public.t rename to w", "do $$ begin execute 'drop table public.w'; end $$",
		"drop function public.f()", "create schema s", "drop schema s",
	} {
		pgtest.Exec(t, conn, sql)
		changed(sql, true)
		numberChanged(sql, true)
	}

	another := pgtest.Value[string](t, projectdbtest.NewIn(t, r).Trusted(), projectdb.CatalogVersion)
	if another == seen {
		t.Errorf("another database also has version %s", another)
	}
	if got := pgtest.State(t, conn, "select * from socle.catalogue_version"); got != "42501" {
		t.Errorf("read by the owner: got state %q", got)
	}
	if got := pgtest.State(t, reader, "select nextval('socle.catalogue_changes')"); got != "42501" {
		t.Errorf("change by the request login: got state %q", got)
	}
	if got := pgtest.State(t, reader, "insert into socle.catalogue_version (n) values (1)"); got != "42501" {
		t.Errorf("write by the request login: got state %q", got)
	}
}

// TestFoldCatalogueVersion folds rows concurrently and checks that the version stays the same.
func TestFoldCatalogueVersion(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 8)
	p := projectdbtest.NewIn(t, r)
	conn := projectdbtest.Connect(t, p, pgcluster.Owner)
	for range projectdb.MaxVersionRows {
		pgtest.Exec(t, conn, "create table public.t (); drop table public.t")
	}

	before := pgtest.Value[string](t, p.Trusted(), projectdb.CatalogVersion)
	failures := make(chan error, 4)
	for range cap(failures) {
		go func() { failures <- projectdb.FoldCatalogVersion(t.Context(), p.Trusted()) }()
	}

	for range cap(failures) {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}

	if now := pgtest.Value[string](t, p.Trusted(), projectdb.CatalogVersion); now != before {
		t.Errorf("got version %s, want %s", now, before)
	}
	if rows := pgtest.Value[int](t, p.Trusted(), "select count(*)::int from socle.catalogue_version"); rows != 1 {
		t.Errorf("got %d rows after folding, want 1", rows)
	}
}

// TestNotifications checks the notification of catalog changes, which only servers of the previous
// release listen for.
func TestNotifications(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 8)
	p := projectdbtest.NewIn(t, r)
	conn := projectdbtest.Connect(t, p, pgcluster.Owner)

	wait := func(c *pgx.Conn, want string) {
		t.Helper()

		got, err := c.WaitForNotification(context.Background())
		if err != nil || got.Payload != want {
			t.Errorf("got %+v, %v, want %s", got, err, want)
		}
	}

	client := projectdbtest.Connect(t, p, pgcluster.Owner)
	pgtest.Exec(t, client, `listen "pgrst"`)
	pgtest.Exec(t, conn, "create table public.t (); drop table public.t; notify pgrst, 'of a client'")
	wait(client, "of a client")

	server := projectdbtest.Connect(t, p, pgcluster.Trusted)
	pgtest.Exec(t, server, "listen pgrst")
	pgtest.Exec(t, conn, "create table public.t ()")
	wait(server, "reload schema")
}
