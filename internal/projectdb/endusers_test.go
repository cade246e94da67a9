package projectdb

import (
	"strings"
	"testing"
)

const insertUser = `insert into auth.users (id, email, encrypted_password)
	values ('0192d5b0-0000-7000-8000-000000000001', 'ann@example.com', 'hash')`

// TestReferencesToEndUsers checks what a project may refer to in schema auth, and what not.
func TestReferencesToEndUsers(t *testing.T) {
	t.Parallel()

	p := newProject(t, newRegistry(t, 8))
	conn := connect(t, p, owner)
	exec(t, conn, `create function public.welcome() returns trigger language plpgsql as 'begin return new; end'`)

	for sql, want := range map[string]string{
		`create table public.r (id uuid primary key references auth.users on delete cascade)`:                             "",
		`create table public.r (id uuid default auth.uid()); create policy r on public.r using (id = auth.uid())`:         "",
		`create view public.r as select auth.jwt() ->> 'sub' as a, auth.role() as b, auth.email() as c`:                   "",
		`create function public.r() returns uuid language sql begin atomic select auth.uid(); end`:                        "",
		`create trigger r after insert on auth.users for each row execute function public.welcome()`:                      "",
		`create or replace trigger r before update of email on auth.users for each row execute function public.welcome()`: "",
		`select id, email, raw_user_meta_data, banned_until from auth.users`:                                              "",
		`create view public.r as select id from auth.users`:                                                               "42501",
		`create table public.r (a int); create policy r on public.r using (exists (select id from auth.users))`:           "42501",
		`create table public.r (id uuid references auth.sessions)`:                                                        "42501",
		`create table public.r (phone text references auth.users (phone))`:                                                "42501",
		`create trigger r after insert on auth.sessions for each row execute function public.welcome()`:                   "42501",
		`create policy r on auth.users using (true)`:                                                                      "42501",
		`create rule r as on insert to auth.users do also select 1`:                                                       "42501",
		`alter table auth.users disable trigger all`:                                                                      "42501",
		`select encrypted_password from auth.users`:                                                                       "42501",
		`select confirmation_token from auth.users`:                                                                       "42501",
		`select * from auth.sessions`:                                                                                     "42501",
		`select * from auth.one_time_tokens`:                                                                              "42501",
		`select * from auth.mfa_factors`:                                                                                  "42501",
		`update auth.users set email = 'x'`:                                                                               "42501",
		`create or replace function auth.uid() returns uuid language sql stable return gen_random_uuid()`:                 "42501",
		`create function auth.mine() returns int language sql return 1`:                                                   "42501",
		`create table public.r (); alter table public.r owner to "` + p.registry.login(p.UUID, auth) + `"`:                "42501",
		`create table public.r (); grant select on public.r to "` + p.registry.login(p.UUID, auth) + `"`:                  "",
		`set role "` + p.registry.login(p.UUID, auth) + `"`:                                                               "42501",
		`create materialized view public.r as select count(*) from auth.users`:                                            "42501",
		`create function public.r(auth.users) returns int language sql return 1`:                                          "42501",
	} {
		if got := state(t, conn, "begin; "+sql); got != want {
			t.Errorf("%s: got state %q, want %q", sql, got, want)
		}
		exec(t, conn, "rollback")
	}

	for _, l := range []login{request, service} {
		for _, sql := range []string{"select id from auth.users", "insert into auth.users default values"} {
			if got := state(t, connect(t, p, l), sql); got != "42501" {
				t.Errorf("%s as %s: got state %q, want 42501", sql, l, got)
			}
		}
	}
}

// TestUserCodeOfEndUsers runs code of the project as the auth login and checks that it cannot
// change the tables that the login owns.
func TestUserCodeOfEndUsers(t *testing.T) {
	t.Parallel()

	p := newProject(t, newRegistry(t, 8))
	conn := connect(t, p, owner)

	for _, sql := range []string{
		"drop table auth.sessions cascade", "alter table auth.users add column evil int",
		"create index on auth.users (phone)", "create table auth.evil ()", "create temp table evil ()",
		"grant select on auth.users to public", "create table public.evil ()", "comment on table auth.users is 'mine'",
		"select * from socle.audit", "set role anon", "set session_replication_role = replica",
	} {
		exec(t, conn, `drop function if exists public.evil() cascade;
			create function public.evil() returns trigger language plpgsql as $$ begin execute `+"'"+
			strings.ReplaceAll(sql, "'", "''")+`'; return new; end $$;
			create trigger evil before insert on auth.users for each row execute function public.evil()`)

		if got := state(t, connect(t, p, auth), insertUser); got != "42501" {
			t.Errorf("%s in a trigger: got state %q, want 42501", sql, got)
		}
	}

	exec(t, conn, `drop function public.evil() cascade; create table public.profiles (id uuid primary key references auth.users on delete cascade, name text);
		create function public.handle_new_user() returns trigger language plpgsql security definer set search_path = '' as $$
		begin insert into public.profiles (id, name) values (new.id, new.email); return new; end $$;
		create trigger on_auth_user_created after insert on auth.users for each row execute function public.handle_new_user()`)

	users := connect(t, p, auth)
	exec(t, users, insertUser)
	if got := value[int](t, conn, "select count(*)::int from public.profiles where name = 'ann@example.com'"); got != 1 {
		t.Errorf("got %d profiles of the new user, want 1", got)
	}

	exec(t, users, "delete from auth.users")
	if got := value[int](t, conn, "select count(*)::int from public.profiles"); got != 0 {
		t.Errorf("got %d profiles after the user is deleted, want 0", got)
	}
}

// TestPolicyFunctions checks that the planner replaces the functions of policies by their bodies.
func TestPolicyFunctions(t *testing.T) {
	t.Parallel()

	p := newProject(t, newRegistry(t, 8))
	exec(t, connect(t, p, owner), `create table public.notes (owner uuid default auth.uid());
		create policy own on public.notes using (owner = auth.uid() and auth.role() = 'authenticated' and auth.email() = 'ann@example.com');
		grant select, insert on public.notes to authenticated`)

	conn := connect(t, p, request)
	exec(t, conn, `set role authenticated; set request.jwt.claims = '{"sub": "0192d5b0-0000-7000-8000-000000000001",
		"role": "authenticated", "email": "ann@example.com"}'; insert into public.notes default values`)

	if got := value[int](t, conn, "select count(*)::int from public.notes"); got != 1 {
		t.Errorf("got %d notes of the user, want 1", got)
	}

	for _, claims := range []string{"", "{}", `{"role": "anon"}`} {
		exec(t, conn, "set request.jwt.claims = '"+claims+"'")
		if got := value[int](t, conn, "select count(*)::int from public.notes"); got != 0 {
			t.Errorf("with the claims %q: got %d notes, want 0", claims, got)
		}
	}

	rows, err := conn.Query(t.Context(), "explain verbose select * from public.notes")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()

	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(line + "\n")
	}

	if strings.Contains(plan.String(), "auth.") || !strings.Contains(plan.String(), "current_setting") {
		t.Errorf("the functions are not replaced by their bodies:\n%s", plan.String())
	}
}
