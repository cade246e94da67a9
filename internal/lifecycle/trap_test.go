package lifecycle_test

import (
	"testing"

	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// traps record the role that executes them: objects in the tenant's schema with names of the system
// catalogs, and code attached to the tenant's tables.
const traps = `
	create table public.sprung (who name);
	grant all on public.sprung to public;
	grant create on schema public to public;
	create function public.spring() returns void language plpgsql as 'begin insert into public.sprung values (current_user); end';
	create function public.now() returns timestamptz language plpgsql as 'begin perform public.spring(); return pg_catalog.now(); end';
	create function public.lower(text) returns text language plpgsql as 'begin perform public.spring(); return pg_catalog.lower($1); end';
	create function public.format(text, name, name) returns text language plpgsql as 'begin perform public.spring(); return pg_catalog.format($1, $2, $3); end';
	create function public.equal(name, text) returns boolean language plpgsql as 'begin perform public.spring(); return true; end';
	create operator public.= (leftarg = name, rightarg = text, function = public.equal);
	create function public.same(name, name) returns boolean language plpgsql as 'begin perform public.spring(); return true; end';
	create operator public.= (leftarg = name, rightarg = name, function = public.same);
	create function public.row() returns setof int language plpgsql as 'begin perform public.spring(); return next 1; end';
	create view public.pg_namespace as select 'public'::name as nspname, 10::oid as nspowner from public."row"();
	create view public.pg_tables as select 'socle'::name as schemaname, 'migrations'::name as tablename from public."row"();
	create view public.migrations as select 0 as version_id, true as is_applied from public."row"();
	grant execute on all functions in schema public to public;
	create function public.steady(int) returns int immutable language plpgsql as 'begin perform public.spring(); return $1; end';
	create table public.bait (id int default public.steady(1) check (public.steady(id) > 0), twice int generated always as (public.steady(id)) stored);
	insert into public.bait (id) select generate_series(1, 100);
	create index bait_index on public.bait (public.steady(id));
	create statistics public.bait_statistics on (public.steady(id)), id from public.bait;
	create materialized view public.kept as select public.steady(id) from public.bait;
	create domain public.checked as int check (public.steady(value) > 0);`

// TestTraps runs the platform's statements and maintenance in a project's database that
// is full of traps.
func TestTraps(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 8)
	p := projectdbtest.NewIn(t, r)
	tenant, platform := projectdbtest.Connect(t, p, pgcluster.Owner), projectdbtest.Connect(t, p, pgcluster.Trusted)
	pgtest.Exec(t, tenant, traps)

	if got := pgtest.Value[string](t, platform, `select current_setting('search_path')`); got != "pg_catalog, pg_temp" {
		t.Errorf("search path of the platform's login: %s", got)
	}

	if _, err := (lifecycle.Databases{Registry: r}).Provision(t.Context(), p.UUID); err != nil {
		t.Error(err)
	}

	pgtest.Exec(t, platform,
		`create table storage.upgraded (name text default lower('A') check (lower(name) = name), at timestamptz default now())`)

	pgtest.Exec(t, platform, `insert into storage.upgraded default values`)

	for _, sql := range []string{`vacuum full public.bait`, `vacuum analyze`, `analyze public.bait`,
		`reindex table public.bait`, `cluster public.bait using bait_index`, `refresh materialized view public.kept`} {
		pgtest.Exec(t, platform, sql)
	}

	sprung, err := pg.Values[string](t.Context(), tenant, `select distinct who::text from public.sprung`)
	if err != nil {
		t.Fatal(err)
	}

	if len(sprung) != 1 || sprung[0] != p.Cluster().Login(p.UUID, pgcluster.Owner) {
		t.Errorf("traps ran as %q, want only the owner", sprung)
	}
}
