package migration

import (
	"strings"
	"testing"
)

// kinds are schemas and their changes, which must be written whole. Each has a schema of its own.
var kinds = []struct{ name, before, after string }{
	{"serial_dropped", `create table t (id serial primary key, x text); create table u (id int)`, `drop table t`},
	{"serial_renamed", `create table t (id serial primary key, x text)`, `alter table t rename to u`},
	{"serial_moved", `create table t (id serial primary key); create schema serial_moved_to`,
		`alter table t set schema serial_moved_to`},
	{"serial_column", `create table t (id serial primary key, n serial)`, `alter table t rename n to m; alter table t alter id drop default`},
	{"serial_to_identity", `create table t (id serial primary key)`,
		`alter table t alter id drop default; drop sequence t_id_seq; alter table t alter id add generated always as identity`},
	{"published", `create table t (id int primary key); create table u (id int primary key, n int); create table gone (id int primary key);
		alter publication supabase_realtime add table t, u (id) where (id > 0), gone`,
		`alter publication supabase_realtime drop table t, u; drop table gone; create table v (id int primary key);
		alter publication supabase_realtime add table v, u where (n > 0)`},
	{"identity_renamed", `create table t (id int generated always as identity primary key)`, `alter table t rename to u; alter table u rename id to key`},
	{"sequence_taken", `create sequence s; create table t (id int default nextval('s')); create table u (id int)`,
		`alter sequence s owned by u.id; drop table t`},
	{"enum_value_removed", `create type e as enum ('a', 'b', 'c'); create type f as enum ('x');
		create table t (id int, x e default 'c', xs e[] default '{a}', check (x <> 'b')); create index on t (x) where x = 'a';
		create view v as select x from t; create function g(e) returns e language sql as 'select $1'; create policy p on t using (x = 'a');
		comment on type e is 'E'; grant usage on type e to anon`,
		`drop view v; drop policy p on t; drop index t_x_idx; alter table t drop constraint t_x_check; drop function g;
		alter table t alter x drop default, alter xs drop default; alter type e rename to old; create type e as enum ('a', 'c');
		alter table t alter x type e using x::text::e, alter xs type e[] using xs::text::e[];
		alter table t alter x set default 'c', alter xs set default '{a}', add constraint t_x_check check (x <> 'a'); drop type old;
		create index on t (x) where x = 'a'; create view v as select x from t; create policy p on t using (x = 'a');
		create function g(e) returns e language sql as 'select $1'`},
	{"enum_moved", `create type e as enum ('a', 'b'); create table t (x e default 'a', xs e[]); create schema enum_moved_to`,
		`alter type e set schema enum_moved_to`},
	{"composite_attributes", `create type a as (x int, y text); create table t (v a, w a[]); create view vs as select (v).x from t`,
		`alter type a add attribute z int cascade; alter type a drop attribute y cascade`},
	{"composite_retyped", `create type a as (x int, y text); create function f(a) returns int language sql as 'select 1'`,
		`alter type a alter attribute x type bigint`},
	{"typed_table", `create type a as (x int, y text); create table t of a (primary key (x))`, `alter type a add attribute z int cascade`},
	{"domain_base", `create domain d as int check (value > 0); create domain e as text; create table t (n d, m d[] )`,
		`alter table t alter n type int, alter m type int[]; drop domain d; create domain d as bigint check (value > 1);
		alter table t alter n type d using n::d, alter m type d[] using m::text::d[]`},
	{"generated_base", `create table t (a int, b int generated always as (a * 2) stored, c text generated always as ('x') stored unique);
		create view v as select b from t; create index on t (b)`,
		`drop view v; alter table t drop b; alter table t alter a type bigint; alter table t add b int generated always as (a * 2) stored;
		create view v as select b from t; create index on t (b)`},
	{"retyped_without_cast", `create table t (a int, b jsonb)`,
		`alter table t alter a type uuid using null, alter b type point using null`},
	{"bodies", `create table a (id int primary key);
		create function z_count() returns bigint language sql stable as 'select count(*) from bodies.m';
		create function y_count() returns bigint language sql stable as 'select bodies.z_count()';
		create table m (n int check (n > -1));
		create function b_filled(text) returns boolean language plpgsql immutable as 'begin return length(bodies.c_trimmed($1)) > 0; end';
		create function c_trimmed(text) returns text language sql immutable as 'select btrim($1)';
		create function a_slug(text) returns text language sql immutable as 'select lower(bodies.c_trimmed($1))';
		create table c (n text check (bodies.b_filled(n)), s text generated always as (bodies.a_slug(n)) stored);
		create index on c (bodies.a_slug(n)); create materialized view a_mv as select bodies.y_count() as n;
		create materialized view b_mv as select * from bodies.a_mv; create unique index on a_mv (n);
		create table d (n bigint default bodies.y_count())`,
		`drop materialized view a_mv cascade; create or replace function c_trimmed(text) returns text language sql immutable as 'select ltrim($1)';
		create materialized view aa_mv as select bodies.y_count() as n, count(*) from bodies.a`},
	{"view_of_views", `create table t (a int, b int, c int); create view v1 as select a, b from t; create view v2 as select * from v1;
		create materialized view v3 as select * from v2; create view v4 as select a from v3; create index on v3 (a);
		grant select on v4 to anon; comment on view v2 is 'two'; create rule r as on insert to v1 do instead nothing;
		create function rows_of() returns setof v1 language sql as 'select * from view_of_views.v1'`,
		`alter table t drop b cascade; create view v1 as select a, c from t; alter table t alter c set default 1`},
	{"type_under_views", `create table t (a int, b int); create view v1 as select a from t; create view v2 as select * from v1;
		create function n() returns bigint language sql begin atomic select count(a) from t; end; create view v3 as select n();
		create trigger tr before update of a on t for each row when (new.a > 1) execute function suppress_redundant_updates_trigger();
		create policy p on t using (a > 0)`,
		`drop view v1 cascade; drop view v3; drop function n(); drop trigger tr on t; drop policy p on t; alter table t alter a type bigint;
		create view v1 as select a from t; create view v2 as select * from v1;
		create function n() returns bigint language sql begin atomic select count(a) from t; end; create view v3 as select n();
		create trigger tr before update of a on t for each row when (new.a > 1) execute function suppress_redundant_updates_trigger();
		create policy p on t using (a > 0)`},
	{"function_result", `create function f(int) returns int language sql immutable as 'select 1'; create view v as select f(1);
		create function g() returns int language sql as 'select function_result.f(1)'; create function h(a int, b int default 1) returns int language sql as 'select 1'`,
		`drop view v; drop function f(int); create function f(int) returns text language sql immutable as $$ select 'a' $$; create view v as select f(1);
		drop function h; create function h(a int, c int default 2) returns int language sql as 'select 1'`},
	{"function_of_default", `create function f() returns int language sql as 'select 1'; create table t (a int default f(), b int check (f() > 0))`,
		`alter table t alter a drop default, drop constraint t_check; drop function f`},
	{"keys_in_cycles", `create table a (id int primary key, b int); create table b (id int primary key, a int references a);
		alter table a add foreign key (b) references b deferrable initially deferred`,
		`alter table a drop constraint a_b_fkey; alter table b rename to c; alter table a add foreign key (b) references c on delete cascade;
		alter table a add unique (b); alter table c add foreign key (a) references a (b)`},
	{"key_replaced", `create table a (id int primary key, c text unique); create table b (a int references a, c text references a (c))`,
		`alter table b drop constraint b_a_fkey; alter table a drop constraint a_pkey; alter table a add primary key (id, c);
		alter table a alter id type bigint; alter table b alter a type bigint`},
	{"partitions", `create table p (id int, k text, primary key (id, k)) partition by list (k); create table p_a partition of p for values in ('a');
		create table p_b partition of p for values in ('b') partition by range (id); create table p_b_1 partition of p_b for values from (0) to (9);
		create index on p (id); create table r (id int, k text, foreign key (id, k) references p)`,
		`alter table p add n text default 'x'; alter table p detach partition p_a; alter table p_b detach partition p_b_1; drop table p_b_1; create table p_c partition of p default;
		create table p_b_2 partition of p_b for values from (5) to (7); alter table p add check (id > 0); create index on p (n)`},
	{"partition_dropped", `create table p (id int) partition by range (id); create table p_1 partition of p for values from (0) to (9);
		create table o (id serial) partition by range (id)`, `drop table p; alter table o alter id drop default`},
	{"inheritance", `create table a (x int); create table b () inherits (a); create table c (x int, y int); create table d (x int)`,
		`alter table b no inherit a; alter table c inherit d; alter table a add z int`},
	{"parameters", `create table t (a text, b numeric, c int) with (fillfactor = 70); create unlogged table u (id int);
		alter table t alter a set storage external, alter b set storage plain, alter c set statistics 9; alter table t replica identity full`,
		`alter table t reset (fillfactor), set (autovacuum_enabled = false), alter a set storage extended, alter b set storage main, alter c set statistics -1;
		alter table u set logged; alter table t replica identity default`},
	{"quoted", `create table "A table" ("The id" serial primary key, "a.b" text default 'x"y', "c""d" int generated always as identity);
		create view "A view" as select "The id" from "A table"; create index "An index" on "A table" ("a.b"); create type "An enum" as enum ('It''s', 'x y');
		create table "B" (e "An enum" default 'x y', "f g" "An enum"[]); create policy "A policy" on "A table" using ("a.b" <> ''); create sequence "A seq" owned by "B"."f g";
		comment on column "A table"."a.b" is 'IS it; so?'; grant select ("a.b") on "A table" to anon;
		create trigger "A trigger" before update on "A table" for each row execute function suppress_redundant_updates_trigger()`,
		`alter table "A table" rename "The id" to "Another id"; alter table "A table" alter "c""d" drop identity; drop trigger "A trigger" on "A table";
		alter table "B" alter e drop default; alter type "An enum" rename to x; create type "An enum" as enum ('x y');
		alter table "B" alter e type "An enum" using null, alter "f g" type "An enum"[] using null; alter table "B" alter e set default 'x y'; drop type x;
		alter table "A table" rename to "C table"; revoke all on "C table" from service_role`},
	{"operators", `create function eq(int, int) returns boolean language sql immutable as 'select $1 = $2'; create operator === (leftarg = int, rightarg = int, function = eq);
		create function eq(text, text) returns boolean language sql immutable as 'select $1 = $2'; create aggregate total(int) (sfunc = int4pl, stype = int, initcond = '0');
		create type mood as enum ('a'); create function m(mood) returns int language sql immutable as 'select 1'; create cast (mood as int) with function m(mood)`,
		`drop operator === (int, int); create operator === (leftarg = text, rightarg = text, function = eq); drop aggregate total(int);
		create aggregate total(int) (sfunc = int4pl, stype = int, initcond = '1'); drop cast (mood as int); drop function m(mood)`},
	{"atomic_bodies", `create table t (a int); create function f(x int default 1) returns int language sql begin atomic select a from t where a > x; select 2; end;
		create procedure p(n int) language sql begin atomic insert into t values (n); end; create view v as select f()`,
		`drop view v; drop function f; create function f(x int default 1) returns bigint language sql begin atomic select count(*) from t; end; create view v as select f();
		alter table t add b int`},
	{"table_to_view", `create table t (a int, b text); create view w as select a from t; grant select on t to anon`,
		`drop view w; alter table t rename to base; create view t as select * from base; create view w as select a from t`},
	{"rights", `create table t (a int, b int); create sequence s; create function f() returns int language sql as 'select 1';
		grant select (a), update (b) on t to anon; grant usage on schema rights to anon, authenticated; grant execute on function f() to anon;
		alter default privileges in schema rights grant select on tables to anon`,
		`revoke update (b) on t from anon; grant select on t to anon with grant option; revoke usage on schema rights from anon; grant usage on sequence s to authenticated;
		alter default privileges in schema rights revoke select on tables from anon; create table u (a int)`},
	{"statistics", `create table t (a int, b int); create statistics st on a, b from t; create collation c (locale = 'C'); create table u (x text collate c)`,
		`drop statistics st; create statistics st (ndistinct) on a, b from t; alter table t alter a type bigint; alter table u alter x type text collate "C"; drop collation c`},
	{"domain_of_arrays", `create domain d as int constraint c check (value > 0); create table t (y d[])`,
		`alter domain d rename constraint c to positive; alter domain d set default 4`},
	{"text_search", `create text search configuration c (copy = pg_catalog.english);
		create table t (a text, v tsvector generated always as (to_tsvector('text_search.c', a)) stored); create index on t using gin (v)`,
		`create text search dictionary d (template = simple); alter text search configuration c alter mapping for asciiword with text_search.d;
		alter text search configuration c drop mapping for email`},
	{"ranges", `create type r as range (subtype = int); create table t (x r, y int4multirange)`, `create type q as range (subtype = float8); alter table t add z q`},
}

// TestDiffOfKinds: pull and diff write each of the kinds whole.
func TestDiffOfKinds(t *testing.T) {
	t.Parallel()

	s := newSubject(t)
	for _, k := range kinds {
		s.runAll("create schema " + k.name + "; set check_function_bodies = off; set search_path = " + k.name + ", public; " + k.before)
	}

	pulled := s.write()
	for _, k := range kinds {
		s.runAll("set check_function_bodies = off; set search_path = " + k.name + ", public; " + k.after)
	}

	d := s.check(pulled.Files...)
	for _, d := range append(pulled.Differences, d.Differences...) {
		t.Errorf("still differs: %+v", d)
	}

	for _, w := range append(pulled.Warnings, d.Warnings...) {
		if strings.HasPrefix(w.Message, "left out") {
			t.Errorf("got the warning %+v", w)
		}
	}
}
