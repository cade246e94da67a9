package dialect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/sqllex"
)

// decided is a verdict in short.
type decided struct {
	Does  Action
	SQL   string // if it differs from the text
	Notes string
	Extension
}

func TestDecide(t *testing.T) {
	t.Parallel()

	replica := decided{Does: LeaveOut, Notes: "session_replication_role is left out: triggers and foreign keys stay active"}
	ownerOf := func(role string) decided {
		return decided{Does: LeaveOut, Notes: "owner " + role + " is left out: everything belongs to the project's owner"}
	}
	runsAs := func(role string) decided {
		return decided{Does: LeaveOut, Notes: "role " + role + " is left out: everything runs as the project's owner"}
	}
	without := func(what string) decided {
		return decided{Does: LeaveOut, Notes: what + ": left out, since the project has no such role"}
	}
	existing := func(what string) decided {
		return decided{Does: LeaveOut, Notes: what + " is left out: every project has it"}
	}
	noRows := func(what string) decided {
		return decided{Does: LeaveOut, Notes: what + " is left out: sessions, tokens and factors belong to the platform"}
	}
	changed := func(sql string, notes ...string) decided {
		return decided{SQL: sql, Notes: strings.Join(notes, "; ")}
	}
	drops := func(name string, tolerant bool) decided {
		return decided{Does: DropExtension, Extension: Extension{Name: name, Tolerant: tolerant}}
	}
	noRole := func(what string) decided {
		return decided{Does: LeaveOut, Notes: what + ": left out, since a project has no roles of its own"}
	}
	noCatalog := func(name string) decided {
		return decided{Does: LeaveOut, Notes: name + " is left out: projects install extensions by CREATE EXTENSION"}
	}
	keyTo := func(table string) string {
		return "foreign key to " + table + " is left out: of the platform's tables, only auth.users can have one"
	}
	noTrigger := decided{Does: LeaveOut,
		Notes: "event trigger ensure_rls is left out: projects have none, and row level security is on for new tables anyway"}
	const mine = "default privileges of postgres: changed to those of the project's owner"

	for sql, want := range map[string]decided{
		"select 1":                            {},
		"create table t (id int)":             {},
		"create table trigger (policy text)":  {},
		"insert into t values ('owner to x')": {},
		"drop table t":                        {},

		"create extension pg_trgm": {Does: CreateExtension, Extension: Extension{Name: "pg_trgm"}},
		"/* x */ Create Extension If Not Exists \"uuid-ossp\" schema Extensions": {Does: CreateExtension, Extension: Extension{"uuid-ossp", "extensions", true}},
		"create extension PG_trgm cascade":                                       {Does: CreateExtension, Extension: Extension{Name: "pg_trgm"}},
		"create extension":                                                       {},
		"create table extension ()":                                              {},
		"drop extension if exists pg_net cascade":                                drops("pg_net", true),
		"drop extension pg_net":                                                  drops("pg_net", false),
		"drop extension a, b":                                                    {},
		"alter extension pg_trgm set schema Extensions": {
			Does: MoveExtension, Extension: Extension{Name: "pg_trgm", Schema: "extensions"}},
		"alter extension pg_trgm update to '1.6'": {Does: LeaveOut,
			Notes: "update of extension pg_trgm is left out: extensions belong to the platform"},
		"alter extension pg_trgm add table t": {},
		"comment on extension hstore is 'x'": {Does: LeaveOut,
			Notes: "comment on extension hstore is left out: extensions belong to the platform"},
		"comment on table extension is 'x'": {},

		"alter table public.t owner to postgres":                      ownerOf("postgres"),
		`ALTER FUNCTION "public"."f"("a" "text") OWNER TO "postgres"`: ownerOf("postgres"),
		"alter schema public owner to pg_database_owner":              ownerOf("pg_database_owner"),
		"alter publication supabase_realtime owner to supabase_admin": ownerOf("supabase_admin"),
		"alter database postgres owner to postgres":                   ownerOf("postgres"),
		"alter table t owner to current_user":                         {},
		"alter table t owner to app":                                  ownerOf("app"),
		"alter table t owner to socle_x_owner":                        {},
		"alter table t rename column owner to postgres":               {},

		"grant select on t to postgres": without("privileges of postgres"),
		`GRANT ALL ON TABLE "t" TO "postgres", "anon", "supabase_auth_admin" WITH GRANT OPTION`: changed(
			`GRANT ALL ON TABLE "t" TO "anon" WITH GRANT OPTION`,
			"privileges of postgres, supabase_auth_admin: left out, since the project has no such role"),
		"grant execute on function f(text) to dashboard_user, app, socle_reader, pg_monitor": changed(
			"grant execute on function f(text) to socle_reader, pg_monitor ", "privileges of dashboard_user, app: left out, since the project has no such role"),
		"revoke all on t from authenticator cascade":  without("privileges of authenticator"),
		"grant select on t to anon":                   {},
		"grant select on t to":                        {},
		"grant select (postgres) on postgres to anon": {},
		"grant anon to authenticator": {Does: LeaveOut,
			Notes: "membership of authenticator is left out: the project has no such role"},
		`GRANT ALL ON FUNCTION "public"."pgaudit_sql_drop"() TO "anon"`: {Does: LeaveOut,
			Notes: "privileges on public.pgaudit_sql_drop are left out: projects can't have its extension"},
		"grant anon to current_user": {},
		"grant app_worker to current_user with admin option": {Does: LeaveOut,
			Notes: "membership of app_worker is left out: the project has no such role"},

		"alter default privileges for role postgres in schema public grant all on tables to anon": changed(
			"alter default privileges  in schema public grant all on tables to anon", mine),
		`ALTER DEFAULT PRIVILEGES FOR ROLE "postgres" IN SCHEMA "public" GRANT ALL ON TABLES TO "postgres"`: {Does: LeaveOut,
			Notes: mine + "; default privileges of postgres: left out, since the project has no such role"},
		"alter default privileges for role postgres, socle_x grant select on tables to anon, postgres": changed(
			"alter default privileges for role current_user, socle_x grant select on tables to anon ", mine,
			"default privileges of postgres: left out, since the project has no such role"),
		"alter default privileges for role supabase_admin grant all on tables to anon": without("default privileges of supabase_admin"),
		"alter default privileges in schema public grant all on tables to anon":        {},
		"alter default privileges in schema public revoke all on functions from postgres, public": changed(
			"alter default privileges in schema public revoke all on functions from public ",
			"default privileges of postgres: left out, since the project has no such role"),

		"alter role authenticator set statement_timeout = '8s'": {Does: LeaveOut,
			Notes: "alter role authenticator: left out, since the role belongs to the platform"},
		"alter user anon set a to b": {Does: LeaveOut,
			Notes: "alter user anon: left out, since the role belongs to the platform"},
		"alter database postgres set timezone to 'utc'": {Does: LeaveOut,
			Notes: "alter database postgres: left out, since the project's database has another name"},
		"alter role app set a to b":                        noRole("alter role app"),
		"create role app with login password 'x'":          noRole("create role app"),
		"create user app":                                  noRole("create user app"),
		"drop role if exists app":                          noRole("drop role app"),
		"comment on role app is 'x'":                       noRole("comment role app"),
		"alter role current_user set a to b":               {},
		"alter role all set a to b":                        {},
		"create user mapping for app server s":             {},
		"create schema api authorization postgres":         changed("create schema api", ownerOf("postgres").Notes),
		"create schema if not exists a authorization anon": {},
		"create schema authorization postgres":             {},

		"create event trigger ensure_rls on ddl_command_end execute function f()": noTrigger,
		"alter event trigger ensure_rls disable":                                  noTrigger,
		"drop event trigger if exists ensure_rls":                                 noTrigger,
		"comment on event trigger ensure_rls is 'x'":                              noTrigger,

		"set session_replication_role = replica":                              replica,
		"SET LOCAL \"session_replication_role\" TO 'origin'":                  replica,
		"reset session_replication_role":                                      replica,
		"select pg_catalog.set_config('session_replication_role', 'a', true)": replica,
		"select 'session_replication_role'":                                   {},
		"set search_path = ''":                                                {},
		"reset all":                                                           {},

		"set role postgres":                           runsAs("postgres"),
		"set local role = 'supabase_admin'":           runsAs("supabase_admin"),
		"set session authorization postgres":          runsAs("postgres"),
		"set session role to \"supabase_auth_admin\"": runsAs("supabase_auth_admin"),
		"set role anon":                               {},
		"reset role":                                  {},

		"create policy p on t for all to postgres using (true)": without("policy p on t of postgres"),
		"create policy p on t to supabase_auth_admin, anon using (a in (select 1))": changed(
			"create policy p on t to anon using (a in (select 1))",
			"policy p on t of supabase_auth_admin: left out, since the project has no such role"),
		"create policy p on t to anon using (true)": {},
		"alter policy p on t rename to postgres":    {},

		"select cron.schedule('nightly', '0 3 * * *', $$select f()$$)": {},
		"select net.http_post('https://example.com', '{}')":            {},
		"SELECT \"net\" . \"http_get\"('a', (select 1)) AS \"id\"":     {},
		"select * from net.http_delete(url := 'a')":                    {},
		"select net.http_get(url) from t where a":                      {},
		"select dbdev.install('a-b')":                                  noCatalog("dbdev.install"),
		"select pgtle.install_extension('a', '1', 'x', $$y$$)":         noCatalog("pgtle.install_extension"),
		"select dbdev.install('a-b'), public.f()":                      {},
		"SELECT create_hypertable('a.b', 'time', chunk_time_interval => INTERVAL '7 days')": {Does: LeaveOut,
			Notes: "create_hypertable is left out: projects can't have timescaledb, and the table stays as it is"},
		"select * from extensions.add_retention_policy('a', interval '1 day')": {Does: LeaveOut,
			Notes: "extensions.add_retention_policy is left out: projects can't have timescaledb, and the table stays as it is"},
		"select create_hypertable('a', 'b'), public.f()":           {},
		"select net.http_get('a'), public.f()":                     {},
		"select net.http_get('a')::text || public.f()":             {},
		"select net.http_get('a') union select public.f()":         {},
		"select net.http_get('a'":                                  {},
		"insert into auth.users (id) values ('a')":                 {},
		"insert into \"auth\".\"identities\" select 1":             {},
		"update auth.users set role = 'a'":                         {},
		"select * from auth.sessions":                              {},
		"insert into auth.mfa_amr_claims values (1)":               noRows("insert auth.mfa_amr_claims"),
		"INSERT INTO \"auth\" . \"refresh_tokens\" (a) VALUES (1)": noRows("insert auth.refresh_tokens"),
		"delete from auth.sessions where true":                     noRows("delete auth.sessions"),
		"update only auth.one_time_tokens set a = 1":               noRows("update auth.one_time_tokens"),
		"insert into public.t select * from auth.sessions":         {},
		"select net.total from public.net":                         {},
		"insert into t values ('cron.job')":                        {},
		"insert into net.total values (1)":                         {},
		"select 1 as \"cron.schedule\"":                            {},

		"create trigger hook after insert on t for each row execute function supabase_functions.http_request('a')": {},
		"create trigger t before insert on t for each row execute function http_request()":                         {},
		"create schema if not exists pgmq_public":                                                                  existing("schema pgmq_public"),
		`CREATE SCHEMA "pgmq"`: existing("schema pgmq"),
		"create or replace function pgmq_public.pop(queue_name text) returns setof pgmq.message_record language sql as 'x'": existing("function pgmq_public.pop"),
		"comment on function pgmq_public.pop(queue_name text) is 'x'":                                                       existing("function pgmq_public.pop"),
		"create function pgmq_public.mine() returns int language sql as 'x'":                                                {},
		"create function public.send() returns int language sql as 'x'":                                                     {},
		"create schema pgmq2":                {},
		"grant usage on schema pgmq to anon": {},
		"create or replace trigger p before delete on storage.objects for each statement execute function storage.protect_delete()": {
			Does: LeaveOut, Notes: "trigger p on storage.objects is left out: the platform keeps its tables"},
		"create trigger t before insert on storage.objects for each row execute function public.f()": {
			Does: LeaveOut, Notes: "trigger t on storage.objects is left out: files change by the Storage API, and a webhook tells of it"},
		"create trigger t before update on t for each row execute function storage.update_updated_at_column()": {},

		"insert into storage.buckets (id) values ('a')": {},
		"insert into \"storage\".\"objects\" (name, level) values ('a', 1)": {
			Does: LeaveOut, Notes: "insert storage.objects is left out: a row brings no file, upload it by the Storage API"},

		"create table t (a uuid references auth.users (id))":                  {},
		"create table t (a uuid references objects (id))":                     {},
		"create table t (a text default 'references storage.objects', b int)": {},
		"create table t (a uuid references storage.objects (id) on delete set null (a) on update no action, b int)": changed(
			"create table t (a uuid , b int)", keyTo("storage.objects")),
		"create table t (a uuid constraint c references \"storage\".\"buckets\" match full not deferrable initially immediate not null)": changed(
			"create table t (a uuid  not null)", keyTo("storage.buckets")),
		"create table t (a uuid, constraint c foreign key (a) references vault.secrets on delete cascade, b int)": changed(
			"create table t (a uuid, b int)", keyTo("vault.secrets")),
		"create table t (foreign key (a) references vault.secrets, foreign key (b) references auth.sessions (id))": changed(
			"create table t ( )", keyTo("vault.secrets"), keyTo("auth.sessions")),
		"create table t (foreign key (a, b) references other (a, b), foreign key (b) references auth.sessions (id))": changed(
			"create table t (foreign key (a, b) references other (a, b))", keyTo("auth.sessions")),
		"alter table only t add constraint c foreign key (o) references storage.objects (id) not valid": {
			Does: LeaveOut, Notes: keyTo("storage.objects")},
		"alter table t add column o uuid references storage.objects(id), add foreign key (o) references storage.objects": changed(
			"alter table t add column o uuid ", keyTo("storage.objects"), keyTo("storage.objects")),
		"alter table t add foreign key (o) references storage.objects, add foreign key (p) references vault.secrets": {
			Does: LeaveOut, Notes: keyTo("storage.objects") + "; " + keyTo("vault.secrets")},
		"alter table t add foreign key (o) references storage.objects, drop column p": changed(
			"alter table t  drop column p", keyTo("storage.objects")),
		"create table t (a references storage.":  {},
		"alter table t add references storage.x": changed("alter table t add ", keyTo("storage.x")),
	} {
		v := Decide(sqllex.Split(sql)[0])
		got := decided{Does: v.Action, Notes: strings.Join(v.Notes, "; "), Extension: v.Extension}
		if v.Action == Run && v.SQL != sql {
			got.SQL = v.SQL
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", sql, diff)
		}
	}
}

// TestDecideBlock checks the translation of DO blocks: the new body, and the extensions to create.
func TestDecideBlock(t *testing.T) {
	t.Parallel()

	for body, want := range map[string]struct {
		body       string // "": as before
		extensions string
	}{
		"begin execute 'alter table t owner to postgres'; end":                   {body: "begin null; end"},
		"begin alter table t owner to postgres; end":                             {body: "begin null; end"},
		"begin if true then grant select on t to postgres, anon; end if; end":    {body: "begin if true then grant select on t to anon ; end if; end"},
		"begin execute 'grant select on \"t\" to postgres, anon' ; end":          {body: "begin execute 'grant select on \"t\" to anon ' ; end"},
		"begin execute $q$comment on extension a is 'x'$q$; perform 1; end":      {body: "begin null; perform 1; end"},
		"begin execute format('alter table %I.%I owner to postgres', a, b); end": {body: "begin null; end"},
		"begin execute format('grant select on %I to %I, postgres', a, r); end": {
			body: "begin execute format('grant select on %I to %I ', a, r); end"},
		"begin execute format('grant select on t to %I', r); end":                      {},
		"begin execute 'alter table ' || quote_ident(t) || ' owner to postgres' ; end": {body: "begin null; end"},
		"begin execute 'grant select on ' || t || ' to anon' ; end":                    {},
		"begin execute statement; end":                                                 {},
		"begin for r in select 1 loop create extension pg_cron; end loop; end":         {"begin for r in select 1 loop null; end loop; end", "pg_cron"},
		"begin if not exists (select from pg_extension where extname = 'pg_cron') then create extension pg_cron with schema extensions; end if; end": {
			"begin if not exists (select from pg_extension where extname = 'plpgsql') then null; end if; end", "pg_cron"},
		"begin if exists (select from pg_extension where extname = 'pgmq' or extname = 'plv8') then perform 1; end if; end": {
			body: "begin if exists (select from pg_extension where extname = 'plpgsql' or extname = 'plv8') then perform 1; end if; end"},
		"begin perform 1 from pg_event_trigger where evtname = 'rls'; end": {
			body: "begin perform 1 from pg_event_trigger where evtname = 'socle_close_new_tables'; end"},
		"begin perform 1 from pg_event_trigger where evtname = name; end": {},
		"begin perform 1 from pg_roles r where r.rolname = 'postgres' or rolname = 'anon'; end": {
			body: "begin perform 1 from pg_roles r where r.rolname = current_user or rolname = 'anon'; end"},
		"begin if not exists (select from pg_roles where rolname = 'app') then raise exception 'x'; end if; end": {
			body: "begin if not exists (select from pg_roles where rolname = current_user) then raise exception 'x'; end if; end"},
		"begin perform 1 from pg_roles where rolname in ('anon', 'supabase_admin') and a in ('postgres'); end": {
			body: "begin perform 1 from pg_roles where rolname in ('anon', current_user) and a in ('postgres'); end"},
		"begin set local role supabase_admin; exception when insufficient_privilege then return; end": {
			body: `begin raise insufficient_privilege using message = 'permission denied to set role "supabase_admin"'; exception when insufficient_privilege then return; end`},
		"begin execute 'set local role supabase_admin'; exception when insufficient_privilege then return; end": {
			body: `begin raise insufficient_privilege using message = 'permission denied to set role "supabase_admin"'; exception when insufficient_privilege then return; end`},
		"begin execute format('revoke all on function %s from public, app, %I', f, r); end": {
			body: "begin execute format('revoke all on function %s from public, %I ', f, r); end"},
		"begin execute format('grant select on %I to app, anon, ' || a, t); end": {},
		"begin execute format('grant select on %I '\n'to app, anon', t); end": {
			body: "begin execute format('grant select on %I to anon ', t); end"},
		"begin execute 'grant select on t to app' ', anon'; end": {
			body: "begin execute 'grant select on t to anon '; end"},
		"begin begin create role app; exception when duplicate_object then null; end; end": {
			body: "begin begin null; exception when duplicate_object then null; end; end"},
		"begin insert into t values ('; grant a to postgres;'); update t set owner = 'postgres'; end": {},
		"begin grant select on t to postgres":                  {},
		"begin execute 'alter table t owner to postgres":       {},
		"begin execute; execute format; execute format('; end": {},
		"": {},
	} {
		for _, quote := range []func(string) string{
			func(s string) string { return "$b$" + s + "$b$" },
			func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "' language plpgsql" },
		} {
			if want.body == "" {
				want.body = body
			}

			v := Decide(sqllex.Split("do " + quote(body))[0])
			var names []string
			for _, e := range v.Extensions {
				names = append(names, e.Name)
			}
			isSame := v.SQL == "do "+quote(body)
			isUnnoted := v.Notes == nil && names == nil
			if got := v.SQL; got != "do "+quote(want.body) || v.Action != Run || isSame != isUnnoted {
				t.Errorf("%s\ngot  %s\nwant %s\nnotes %q", body, got, want.body, v.Notes)
			}
			if got := strings.Join(names, " "); got != want.extensions {
				t.Errorf("%s: got the extensions %q, want %q", body, got, want.extensions)
			}
		}
	}

	const unchanged = "do $b$begin execute format('grant select on %I to app, anon, ' || a, t); drop role app; end$b$"
	if v := Decide(sqllex.Split(unchanged)[0]); len(v.Notes) != 1 {
		t.Errorf("got the notes %q on what stays and what is left out, want one", v.Notes)
	}

	for _, sql := range []string{"do", "do 'a", "do $$begin", "do language sql 'alter table t owner to postgres'", "do E'begin \\'", "do ''"} {
		if v := Decide(sqllex.Split(sql)[0]); v.SQL != sql {
			t.Errorf("%s: got %s", sql, v.SQL)
		}
	}
}

// TestIsPlatformExtension checks the names of Supabase's catalog, and others.
func TestIsPlatformExtension(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]bool{
		"pg_graphql": true, "supabase-dbdev": true, "basejump-supabase_test_helpers": true, "olirice@read_once": true,
		"uuid-ossp": false, "pg_trgm": false, "pg_trgn": false, "-": false,
	} {
		if got := IsPlatformExtension(name); got != want {
			t.Errorf("%s: got %t, want %t", name, got, want)
		}
	}
}

// FuzzDecideBlock: any body is decided without a panic.
func FuzzDecideBlock(f *testing.F) {
	f.Add("begin execute format('alter table %I owner to postgres', a); end")
	f.Add("begin alter table t add constraint c foreign key (a) references storage.objects (id), add b int references auth.a; end")
	f.Fuzz(func(_ *testing.T, body string) {
		for _, s := range sqllex.Split("do " + body) {
			Decide(s)
		}
		for _, s := range sqllex.Split("do $b$" + body + "$b$") {
			Decide(s)
		}
	})
}

// TestNotesAreBounded: a name in a text can have any length.
func TestNotesAreBounded(t *testing.T) {
	t.Parallel()

	sql := `comment on extension "` + strings.Repeat("é", 1000) + `" is 'x'`
	v := Decide(sqllex.Split(sql)[0])
	if v.Action != LeaveOut || len(v.Notes[0]) > maxNote+len("…") || strings.ToValidUTF8(v.Notes[0], "") != v.Notes[0] {
		t.Errorf("got %v, %d bytes", v.Action, len(v.Notes[0]))
	}

	v = Decide(sqllex.Split("create extension " + strings.Repeat("a", 1000))[0])
	if got := v.Extension.Name; got != strings.Repeat("a", maxIdentifier) {
		t.Errorf("got the name %q", got)
	}
}
