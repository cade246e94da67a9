package integration_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// pathCases are objects whose expressions call functions with names that only the search path of a
// session finds, each in a statement of a restore that evaluates it. Every case has the relation
// its name, with values to compare.
var pathCases = map[string]string{
	"check": `create function check_inner(text) returns text language sql immutable as 'select btrim($1)';
		create function check_outer(text) returns boolean language plpgsql immutable as 'begin return length(check_inner($1)) > 0; end';
		create table "check" (n text check (check_outer(n))); insert into "check" values ('x')`,
	"generated": `create function generated_inner(text) returns text language sql immutable as 'select btrim($1)';
		create function generated_outer(text) returns text language sql immutable as 'select lower(generated_inner($1))';
		create table generated (t text, s text generated always as (generated_outer(t)) stored); insert into generated values (' H ')`,
	"index": `create table index (t text); insert into index values (' H '); create index on index (generated_outer(t));
		create index on index (t) where check_outer(t)`,
	"exclusion": `create table exclusion (t text, exclude using btree (generated_outer(t) with =)); insert into exclusion values ('a')`,
	"matview": `create table people (id int primary key, name text); insert into people values (1, 'Ann');
		create function n_people() returns bigint language sql stable as 'select count(*) from people';
		create materialized view matview as select n_people() as n`,
	"aggregate": `create function plus_inner(int, int) returns int language sql immutable as 'select $1 + $2';
		create function plus(int, int) returns int language plpgsql immutable as 'begin return plus_inner($1, $2); end';
		create aggregate total(int) (sfunc = plus, stype = int, initcond = '0');
		create materialized view aggregate as select total(n) from generate_series(1, 4) n`,
	"operator": `create function same(int, text) returns boolean language plpgsql immutable as 'begin return plus_inner($1, 0) = $2::int; end';
		create operator === (leftarg = int, rightarg = text, function = same);
		create table operator (n int check (n === '1'::text)); insert into operator values (1)`,
	"cast": `create type pair as (a int, b int);
		create function pair_sum(pair) returns int language plpgsql immutable as 'begin return plus_inner($1.a, $1.b); end';
		create cast (pair as int) with function pair_sum(pair);
		create table "cast" (p pair check (p::int > 0), s int generated always as (p::int) stored); insert into "cast" values (row(1, 2))`,
	"domain": `create domain filled as text check (check_outer(value)); create domain filled_list as filled[];
		create type filled_pair as (a filled, b int);
		create table domain (n filled, list filled_list default '{a}', pair filled_pair default '(b,1)'); insert into domain (n) values ('x')`,
	"partition": `create function bucket(int) returns int language plpgsql immutable as 'begin return plus_inner($1, 0) % 2; end';
		create table partition (id int) partition by list (bucket(id));
		create table partition_0 partition of partition for values in (0); create table partition_1 partition of partition for values in (1);
		insert into partition values (1), (2), (3)`,
	"later table": `create table z_allowed (n int); insert into z_allowed values (1);
		create function allowed(int) returns boolean language sql stable as 'select exists (select from z_allowed where n = $1)';
		create table "later table" (n int check (allowed(n))); insert into "later table" values (1)`,
	"later trigger": `create table "later trigger" (n int check (allowed(n)), m int); insert into "later trigger" values (1, 1);
		create function stamp() returns trigger language plpgsql as 'begin new.m := 9; return new; end';
		create trigger stamp before insert on "later trigger" for each row execute function stamp()`,
	"later view": `create materialized view "later view" as select count(*), sum(m) from "later trigger"`,
	"view of the allowed": `create table z_listed (n int); insert into z_listed values (1); create materialized view listed as select n from z_listed;
		create function is_listed(int) returns boolean language sql stable as 'select exists (select from listed where n = $1)';
		create table "view of the allowed" (n int check (is_listed(n)), m int); insert into "view of the allowed" values (1, 1);
		create trigger stamp before insert on "view of the allowed" for each row execute function stamp()`,
	"silent": `create function silent_f(text) returns text language plpgsql immutable as $$ begin
			return check_inner($1) || coalesce(to_regclass('people')::text, 'none');
		exception when undefined_function then return 'none'; end $$;
		create table silent (t text, s text generated always as (silent_f(t)) stored); insert into silent values (' a ');
		create index on silent (silent_f(t))`,
	"shadow": `create function array_length(int[], int) returns int language sql immutable as 'select 7';
		create table shadow (a int[] check (pg_catalog.array_length(a, 1) < 7)); insert into shadow values ('{1,2}');
		create index on shadow (pg_catalog.array_length(a, 1)); create index on shadow (array_length(a, 1));
		create view shadow_view as select pg_catalog.array_length(a, 1) from shadow`,
	"extension": `create function folded(text) returns extensions.citext language sql immutable as 'select $1::citext';
		create table extension (t text, c extensions.citext generated always as (folded(t)) stored, check (folded(t) = 'A'));
		insert into extension values ('a')`,
	"own schema": `create schema app; set search_path = app, public; create table own (n int); insert into own values (3);
		create function n_own() returns bigint language sql stable as 'select sum(n) from own';
		create materialized view own_sum as select n_own() as n; reset search_path;
		create view public."own schema" as select * from app.own_sum; set search_path = public, extensions`,
	"other schema": `create schema api; set search_path = app, public; create table api.t (n bigint check (n <= app.n_own())); insert into api.t values (3);
		create view public."other schema" as select * from api.t; set search_path = public, extensions`,
	"policy": `create table policy (n int); insert into policy values (1); alter table policy enable row level security, force row level security;
		create policy own on policy using (n_people() = 1); create materialized view policy_rows as select * from policy`,
	"always trigger": `create table "always trigger" (n int); insert into "always trigger" values (1);
		create function act() returns trigger language plpgsql as 'begin perform n_people(); new.n := 9; return new; end';
		create trigger act before insert on "always trigger" for each row execute function act(); alter table "always trigger" enable always trigger act`,
	"rule": `create table rule (n int); insert into rule values (1);
		create rule more as on insert to rule do also (insert into people values (9, 'x'); select n_people(); )`,
	"statistics": `create table statistics (n int, m int); insert into statistics values (1, 2);
		create statistics stats_of on (plus(n, m)), n from statistics; analyze statistics`,
}

// TestRestoreUsesSearchPath restores a project whose objects need the search path of its sessions:
// all come back with the same definitions and values, and the backup is proven.
func TestRestoreUsesSearchPath(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Post("/extensions", `{"name": "citext"}`).Want(201)

	conn := connectOwner(t, a)
	exec := func(sql string) {
		t.Helper()

		if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Errorf("%v: %s", err, sql)
		}
	}

	exec("set search_path = public, extensions")
	for _, name := range pathOrder {
		exec(pathCases[name])
	}

	values := func(a *apitest.API) map[string]string {
		all := map[string]string{}
		for name := range pathCases {
			all[name] = query(t, a, `select coalesce(string_agg(t::text, ' ' order by t::text), '') from public."`+name+`" t`)
		}

		return all
	}

	want, schema := values(a), schemaOf(t, a)
	id := makeBackup(t, a)

	n := a.Post("/backups/"+id+"/restore", `{"target": "new", "name": "copied"}`).Want(201)
	waitForRestore(t, a, n.Get("uuid").(string), "completed", "failed").Content("error", "").
		Content("missing", []any{})

	copied := a.WithProject(n.Get("projectUuid").(string))
	if diff := cmp.Diff(strings.Split(schema, "\n"), strings.Split(schemaOf(t, copied), "\n")); diff != "" {
		t.Errorf("schema (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, values(copied)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}

	waitUntil(t, "the proof has ended", func() bool {
		return a.Get("/backups/"+id).Want(200).Metadata("triedAt") != nil
	})

	if r := a.Get("/backups/" + id); r.Metadata("provenAt") == nil {
		t.Errorf("got proof error %v", r.Metadata("proofError"))
	}
}

// pathOrder has the cases that others need first.
var pathOrder = func() []string {
	first := []string{"check", "generated", "matview", "aggregate", "own schema"}
	rest := slices.DeleteFunc(slices.Sorted(maps.Keys(pathCases)), func(name string) bool {
		return slices.Contains(first, name)
	})

	return append(first, rest...)
}()

// TestRestoreWithMissingObjects restores a backup of objects that PostgreSQL does not create again.
// The rest comes back into a new project. A restore in place fails with the list unless it is
// allowed, and the backup is not proven.
func TestRestoreWithMissingObjects(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	execAsOwner(t, a, `
		create table public.kept (id int primary key, note text); insert into public.kept values (1, 'first');
		create table public.gone (n int);
		create function public.counted() returns bigint language sql stable as 'select count(*) from public.gone';
		create materialized view public.stats as select public.counted() as n;
		create function public.valid(int) returns boolean language plpgsql immutable as 'begin return true; end';
		create table public.refused (n int check (public.valid(n))); insert into public.refused values (1);
		create index refused_n on public.refused (n); grant select on public.refused to anon;
		create or replace function public.valid(int) returns boolean language plpgsql immutable as 'begin return false; end';
		drop table public.gone cascade`)

	id := makeBackup(t, a)
	objects := func(list any) []string {
		t.Helper()

		var all []string
		for _, m := range list.([]any) {
			o := m.(map[string]any)
			all = append(all, o["object"].(string)+": "+o["error"].(string))
			if o["statement"] == "" {
				t.Errorf("%v has no statement", o)
			}
		}

		return all
	}

	want := []string{
		`rows of table public.refused: new row for relation "refused" violates check constraint "refused_n_check"`,
		`rows of materialized view public.stats: relation "public.gone" does not exist (SQL function "counted" during inlining)`,
	}

	waitUntil(t, "the proof has ended", func() bool {
		return a.Get("/backups/"+id).Want(200).Metadata("triedAt") != nil
	})

	proof := a.Get("/backups/" + id)
	if diff := cmp.Diff(want, objects(proof.Metadata("missing"))); diff != "" {
		t.Errorf("proof (-want +got):\n%s", diff)
	}
	if why := proof.Metadata("proofError").(string); proof.Metadata("provenAt") != nil ||
		!strings.Contains(why, "2 objects of the backup can't be created again; the first is "+want[0]) {
		t.Errorf("got provenAt %v, proof error %q", proof.Metadata("provenAt"), why)
	}

	execAsOwner(t, a, `update public.kept set note = 'second'`)
	r := a.Post("/backups/"+id+"/restore", `{"target": "in_place"}`).Want(201).Get("uuid").(string)
	failed := waitForRestore(t, a, r, "completed", "failed").Content("status", "failed").Content("keptUntil", nil)
	if diff := cmp.Diff(want, objects(failed.Get("missing"))); diff != "" {
		t.Errorf("in place (-want +got):\n%s", diff)
	}
	if why := failed.Get("error").(string); !strings.Contains(why, "The project is unchanged") {
		t.Errorf("in place: got error %q", why)
	}
	if got := query(t, a, `select note from public.kept`); got != "second" || strings.Contains(databases(t, a), ",") {
		t.Errorf("in place: got %q, databases %s", got, databases(t, a))
	}

	n := a.Post("/backups/"+id+"/restore", `{"target": "new", "name": "copied"}`).Want(201)
	made := waitForRestore(t, a, n.Get("uuid").(string), "completed", "failed").Content("status", "completed")
	if diff := cmp.Diff(want, objects(made.Get("missing"))); diff != "" {
		t.Errorf("new project (-want +got):\n%s", diff)
	}

	r = a.Post("/backups/"+id+"/restore", `{"target": "in_place", "allow_missing": true}`).Want(201).
		Get("uuid").(string)
	waitForRestore(t, a, r, "completed", "failed").Content("status", "completed")

	for name, p := range map[string]*apitest.API{"new": a.WithProject(n.Get("projectUuid").(string)), "in place": a} {
		if got := query(t, p, `select note || (select count(*) from public.refused) || has_table_privilege('anon', 'public.refused', 'select') from public.kept`); got != "first0true" {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
