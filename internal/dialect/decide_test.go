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
	noRequest := func(name string) decided {
		return decided{Does: LeaveOut, Notes: name + " is left out: SQL sends no HTTP requests yet"}
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
		"comment on extension hstore is 'x'": {Does: LeaveOut,
			Notes: "comment on extension hstore is left out: extensions belong to the platform"},
		"comment on table extension is 'x'": {},

		"alter table public.t owner to postgres":                      ownerOf("postgres"),
		`ALTER FUNCTION "public"."f"("a" "text") OWNER TO "postgres"`: ownerOf("postgres"),
		"alter schema public owner to pg_database_owner":              ownerOf("pg_database_owner"),
		"alter publication supabase_realtime owner to supabase_admin": ownerOf("supabase_admin"),
		"alter database postgres owner to postgres":                   ownerOf("postgres"),
		"alter table t owner to current_user":                         {},
		"alter table t owner to app":                                  {},
		"alter table t rename column owner to postgres":               {},

		"grant select on t to postgres": without("privileges of postgres"),
		`GRANT ALL ON TABLE "t" TO "postgres", "anon", "supabase_auth_admin" WITH GRANT OPTION`: changed(
			`GRANT ALL ON TABLE "t" TO "anon" WITH GRANT OPTION`,
			"privileges of postgres, supabase_auth_admin: left out, since the project has no such role"),
		"grant execute on function f(text) to dashboard_user, app": changed("grant execute on function f(text) to app ",
			"privileges of dashboard_user: left out, since the project has no such role"),
		"revoke all on t from authenticator cascade":  without("privileges of authenticator"),
		"grant select on t to anon":                   {},
		"grant select on t to":                        {},
		"grant select (postgres) on postgres to anon": {},
		"grant anon to authenticator": {Does: LeaveOut,
			Notes: "membership of authenticator is left out: the project has no such role"},
		"grant app to ops": {},

		"alter default privileges for role postgres in schema public grant all on tables to anon": changed(
			"alter default privileges  in schema public grant all on tables to anon", mine),
		`ALTER DEFAULT PRIVILEGES FOR ROLE "postgres" IN SCHEMA "public" GRANT ALL ON TABLES TO "postgres"`: {Does: LeaveOut,
			Notes: mine + "; default privileges of postgres: left out, since the project has no such role"},
		"alter default privileges for role postgres, app grant select on tables to anon, postgres": changed(
			"alter default privileges for role current_user, app grant select on tables to anon ", mine,
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
		"alter role app set a to b": {},
		"create role app":           {},

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
		"select net.http_post('https://example.com', '{}')":            noRequest("net.http_post"),
		"SELECT \"net\" . \"http_get\"('a', (select 1)) AS \"id\";":    noRequest("net.http_get"),
		"select * from net.http_delete(url := 'a')":                    noRequest("net.http_delete"),
		"select net.http_get(url) from t where a":                      noRequest("net.http_get"),
		"select net.http_get('a'), public.f()":                         {},
		"select net.http_get('a')::text || public.f()":                 {},
		"select net.http_get('a') union select public.f()":             {},
		"select net.http_get('a'":                                      {},
		"insert into auth.users (id) values ('a')":                     {},
		"insert into \"auth\".\"identities\" select 1":                 {},
		"update auth.users set role = 'a'":                             {},
		"select * from auth.sessions":                                  {},
		"insert into auth.mfa_amr_claims values (1)":                   noRows("insert auth.mfa_amr_claims"),
		"INSERT INTO \"auth\" . \"refresh_tokens\" (a) VALUES (1)":     noRows("insert auth.refresh_tokens"),
		"delete from auth.sessions where true":                         noRows("delete auth.sessions"),
		"update only auth.one_time_tokens set a = 1":                   noRows("update auth.one_time_tokens"),
		"insert into public.t select * from auth.sessions":             {},
		"select net.total from public.net":                             {},
		"insert into t values ('cron.job')":                            {},
		"insert into net.total values (1)":                             {},
		"select 1 as \"cron.schedule\"":                                {},

		"create schema if not exists pgmq_public": existing("schema pgmq_public"),
		`CREATE SCHEMA "pgmq"`:                    existing("schema pgmq"),
		"create or replace function pgmq_public.pop(queue_name text) returns setof pgmq.message_record language sql as 'x'": existing("function pgmq_public.pop"),
		"comment on function pgmq_public.pop(queue_name text) is 'x'":                                                       existing("function pgmq_public.pop"),
		"create function pgmq_public.mine() returns int language sql as 'x'":                                                {},
		"create function public.send() returns int language sql as 'x'":                                                     {},
		"create schema pgmq2":                {},
		"grant usage on schema pgmq to anon": {},

		"create trigger hook after insert on t for each row execute function supabase_functions.http_request('a')": {
			Does: LeaveOut, Notes: "trigger hook on t is left out: there are no database webhooks"},
		`CREATE OR REPLACE TRIGGER "h" AFTER UPDATE ON "public"."t" FOR EACH ROW EXECUTE PROCEDURE "supabase_functions"."http_request"()`: {
			Does: LeaveOut, Notes: "trigger h on public.t is left out: there are no database webhooks"},
		"create trigger t before insert on t for each row execute function http_request()": {},
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

// TestNotesAreBounded: a name in a text can have any length.
func TestNotesAreBounded(t *testing.T) {
	t.Parallel()

	sql := `create trigger "` + strings.Repeat("é", 1000) + `" after insert on t execute function supabase_functions.http_request()`
	v := Decide(sqllex.Split(sql)[0])
	if v.Action != LeaveOut || len(v.Notes[0]) > maxNote+len("…") || strings.ToValidUTF8(v.Notes[0], "") != v.Notes[0] {
		t.Errorf("got %v, %d bytes", v.Action, len(v.Notes[0]))
	}

	v = Decide(sqllex.Split("create extension " + strings.Repeat("a", 1000))[0])
	if got := v.Extension.Name; got != strings.Repeat("a", maxIdentifier) {
		t.Errorf("got the name %q", got)
	}
}

func TestPairs(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]struct {
		pairs  string
		reason string
	}{
		"a; b":                                                          {"", ""},
		"begin; a; commit":                                              {"0 2", ""},
		"BEGIN TRANSACTION; a; END WORK;":                               {"0 2", ""},
		"a; start transaction; b; commit; c":                            {"1 3", ""},
		"begin; a; commit; begin; b; end":                               {"0 2 3 5", ""},
		"begin; set local a = b; c; commit":                             {"0 3", ""},
		"begin; a":                                                      {"", "0: BEGIN has no COMMIT after it"},
		"a; commit":                                                     {"", "1: COMMIT has no BEGIN before it"},
		"begin; begin; commit":                                          {"", "1: BEGIN is in a transaction already"},
		"begin read only; a; commit":                                    {"", "0: BEGIN has options"},
		"begin; a; commit and chain; commit":                            {"", "2: COMMIT has options"},
		"begin; set local a = b; commit; c":                             {"", "1: the statement has an effect until COMMIT"},
		"begin; set constraints all deferred; commit; c":                {"", "1: the statement has an effect until COMMIT"},
		"begin; create temp table t () on commit drop; commit; c":       {"", "1: the statement has an effect until COMMIT"},
		"begin; select set_config('a', 'b', true); commit; c":           {"", "1: the statement has an effect until COMMIT"},
		"begin; set a = b; commit; c":                                   {"0 2", ""},
		"create function f() returns int begin atomic select 1; end; a": {"", ""},
	} {
		pairs, err := Pairs(sqllex.Split(text))
		got := ""
		if err != nil {
			got = string(rune('0'+err.Statement)) + ": " + err.Reason
		}

		var list []string
		for _, i := range pairs {
			list = append(list, string(rune('0'+i)))
		}

		if joined := strings.Join(list, " "); joined != want.pairs || !strings.HasPrefix(got, want.reason) ||
			(got == "") != (want.reason == "") {
			t.Errorf("%s: got %q, %q, want %q", text, joined, got, want)
		}
	}
}
