package integration_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// trapFunction attempts operations that an owner must not be able to do, and records its role. It
// runs wherever PostgreSQL evaluates an expression of the owner's.
const trapFunction = `
	create sequence public.sprung; create sequence public.strong;
	create function public.spring() returns void language plpgsql as $f$
	declare attempt text;
	begin
		perform nextval('public.sprung');
		foreach attempt in array array['reset role', 'reset session authorization', 'alter role current_user superuser', 'alter role session_user superuser',
			'alter role session_user createrole', 'create role trapped superuser', 'set role postgres', 'set session authorization postgres',
			'copy (select 1) to program ''touch /tmp/socle-trapped''', 'create event trigger trapped on ddl_command_end execute function socle.tell_of_change()',
			'alter system set work_mem = 1', 'grant pg_execute_server_program to session_user'] loop
			begin
				execute attempt;
			exception when others then
			end;
		end loop;
		if (select rolsuper from pg_roles where rolname = session_user) or (select rolsuper from pg_roles where rolname = current_user) then
			perform nextval('public.strong');
		end if;
	end $f$;
	create function public.steady(int) returns int immutable language plpgsql as $f$ begin perform public.spring(); return $1; end $f$;
	create function public.steady(text) returns text immutable language plpgsql as $f$ begin perform public.spring(); return $1; end $f$;`

// traps are places where a restore evaluates an expression of the owner's, or could be made to.
var traps = map[string]string{
	"check":             `create table public.t (id int check (public.steady(id) > 0)); insert into public.t values (1), (2)`,
	"generated column":  `create table public.t (id int, twice int generated always as (public.steady(id)) stored); insert into public.t values (1)`,
	"index expression":  `create table public.t (id int); insert into public.t values (1); create index on public.t (public.steady(id))`,
	"index predicate":   `create table public.t (id int); insert into public.t values (1); create index on public.t (id) where public.steady(id) > 0`,
	"view":              `create view public.v as select public.steady(1) as n`,
	"materialized view": `create materialized view public.m as select public.steady(1) as n`,
	"default":           `create table public.t (id int default public.steady(1), more text); insert into public.t (more) values ('x')`,
	"domain":            `create domain public.d as int check (public.steady(value) > 0); create table public.t (id public.d); insert into public.t values (1)`,
	"function body":     `create function public.f() returns int language sql begin atomic; select public.steady(1); end`,
	"trigger": `create function public.fire() returns trigger language plpgsql as 'begin perform public.spring(); return new; end';
		create table public.t (id int); create trigger fire before insert on public.t for each row execute function public.fire(); insert into public.t values (1);
		alter table public.t enable always trigger fire`,
	"trigger on files": `create table public.t (id int); do $d$ begin
		create function public.fire() returns trigger language plpgsql as 'begin perform public.spring(); return new; end';
		execute 'create trigger fire before insert on storage.files for each row execute function public.fire()';
		exception when others then end $d$`,
	"policy": `create table public.t (id int); insert into public.t values (1); create policy p on public.t using (public.steady(id) > 0);
		alter table public.t force row level security`,
	"reset role":        `create function public.act() returns int language plpgsql as 'begin reset role; set session authorization default; perform public.spring(); return 1; end'; create table public.t (id int check (public.act() > 0)); insert into public.t values (1)`,
	"security definer":  `create function public.act() returns int immutable security definer language plpgsql set search_path = public as 'begin perform public.spring(); return 1; end'; create table public.t (id int check (public.act() > 0)); insert into public.t values (1)`,
	"cast":              `create type public.pair as (a int); create function public.turn(public.pair) returns int language plpgsql immutable as 'begin perform public.spring(); return 1; end'; create cast (public.pair as int) with function public.turn(public.pair) as implicit; create table public.t (p public.pair, check (p::int > 0)); insert into public.t values (row(1))`,
	"partition bound":   `create table public.t (id int) partition by range (public.steady(id)); create table public.t1 partition of public.t for values from (0) to (9); insert into public.t values (1)`,
	"exclusion":         `create table public.t (id int); insert into public.t values (1); alter table public.t add exclude using btree ((public.steady(id)) with =)`,
	"statistics":        `create table public.t (id int); insert into public.t values (1); create statistics public.s on (public.steady(id)), id from public.t`,
	"operator":          `create function public.same(int, text) returns boolean language plpgsql immutable as 'begin perform public.spring(); return true; end'; create operator public.= (leftarg = int, rightarg = text, function = public.same); create table public.t (id int check (id operator(public.=) 'x'::text)); insert into public.t values (1)`,
	"comment":           "create table public.t (); comment on table public.t is E'*/; alter role current_user superuser; --\\n\\\\! touch /tmp/socle-trapped'",
	"name":              "create table public.\"t\n\\! touch /tmp/socle-trapped\n; alter role session_user superuser; --\" (id int); insert into public.\"t\n\\! touch /tmp/socle-trapped\n; alter role session_user superuser; --\" values (1)",
	"row like an end":   "create table public.t (note text); insert into public.t values (E'\\\\.'), (E'\\n\\\\.\\nCOPY storage.files (uuid) FROM stdin;\\n'), (null)",
	"catalogue's names": `create function public.now() returns timestamptz language plpgsql as 'begin perform public.spring(); return pg_catalog.now(); end'; create view public.pg_class as select public.steady(1) as oid; alter role current_user set search_path = public, pg_catalog`,
}

// attributes selects the attributes of all roles that no restore may change. Other tests create
// projects concurrently, and roles with the prefix ends_.
const attributes = `
	select string_agg(line, e'\n' order by line) from (
		select row(rolname, rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls)::text as line from pg_roles where rolname like 'socle\_PROJECT%' or rolname !~ '^(socle|ends)_'
		union all select row(r.rolname, m.rolname)::text from pg_auth_members a join pg_roles r on r.oid = a.roleid join pg_roles m on m.oid = a.member where m.rolname like 'socle\_PROJECT%'
	) all_of_it`

// TestRestoreRunsNothingPrivileged restores databases whose owner has laid traps: all compatible
// ones together, each in its own schema, and separately the one that redefines names for the
// others. A trap that runs with more rights than the owner shows its name in that of a role and of
// a schema.
func TestRestoreRunsNothingPrivileged(t *testing.T) {
	t.Parallel()

	const alone = "catalogue's names"
	var together strings.Builder
	for name, sql := range traps {
		if name == alone {
			continue
		}

		together.WriteString(
			`create schema "` + name + `";` +
				strings.NewReplacer("public.", `"`+name+`".`, "role trapped", `role "trapped by `+name+`"`).
					Replace(trapFunction+sql) + ";\n",
		)
	}

	a := apitest.SharedUser(t)
	for name, sql := range map[string]string{"together": together.String(), alone: trapFunction + traps[alone]} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			a := a.WithT(t)
			a = a.WithProject(a.CreateProject("trapped"))
			execAsOwner(t, a, sql)

			roles := strings.ReplaceAll(attributes, "PROJECT", strings.TrimPrefix(a.DatabaseName(), "socle_"))
			before, rows := query(t, a, roles), query(t, a,
				`select coalesce(sum(reltuples), 0)::text from pg_catalog.pg_class where relname = 't'`)

			id := makeBackup(t, a)
			waitUntil(t, "the proof has ended", func() bool {
				return a.Get("/backups/"+id).Want(200).Metadata("triedAt") != nil
			})

			r := a.Post("/backups/"+id+"/restore", `{"target": "in_place"}`).Want(201).Get("uuid").(string)
			waitForRestore(t, a, r, "completed", "failed").Content("status", "completed").Content("error", "")

			if diff := cmp.Diff(before, query(t, a, roles)); diff != "" {
				t.Errorf("the roles changed:\n%s", diff)
			}
			if got := query(t, a,
				`select coalesce(string_agg(schemaname, ', '), '') from pg_catalog.pg_sequences where sequencename = 'strong' and last_value is not null`); got != "" {
				t.Errorf("user code ran as a superuser: %s (rows %s)", got, rows)
			}
		})
	}
}
