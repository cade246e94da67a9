package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

const insertUser = `insert into auth.users (id, email, encrypted_password)
	values ('0192d5b0-0000-7000-8000-000000000001', 'ann@example.com', 'hash')`

// TestReferencesToEndUsers checks what a project may refer to in schema auth, and what not.
func TestReferencesToEndUsers(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	conn := projectdbtest.Connect(t, p, pgcluster.Owner)
	pgtest.Exec(t, conn, `create function public.welcome() returns trigger language plpgsql as 'begin return new; end'`)

	for sql, want := range map[string]string{
		`create table public.r (id uuid primary key references auth.users on delete cascade)`:                             "",
		`create table public.r (id uuid default auth.uid()); create policy r on public.r using (id = auth.uid())`:         "",
		`create view public.r as select auth.jwt() ->> 'sub' as a, auth.role() as b, auth.email() as c`:                   "",
		`create function public.r() returns uuid language sql begin atomic select auth.uid(); end`:                        "",
		`create trigger r after insert on auth.users for each row execute function public.welcome()`:                      "",
		`create or replace trigger r before update of email on auth.users for each row execute function public.welcome()`: "",
		`select id, email, raw_user_meta_data, banned_until from auth.users`:                                              "",
		`create view public.r as select id from auth.users; select * from public.r`:                                       "",
		`create view public.r as select * from auth.users`:                                                                "",
		`create view public.r as select * from auth.users; select email from public.r`:                                    "",
		`create view public.r as select u from auth.users u`:                                                              "42501",
		`create view public.r as select id from auth.sessions`:                                                            "42501",
		`create view public.r as select u.id from auth.users u join auth.sessions s on s.user_id = u.id`:                  "42501",
		`create table public.r (a int); create policy r on public.r using (exists (select id from auth.users))`:           "",
		`create table public.r (a int); create policy r on public.r using (exists (select id from auth.sessions))`:        "42501",
		`create table public.r (id uuid references auth.sessions)`:                                                        "42501",
		`create table public.r (phone text references auth.users (phone))`:                                                "42501",
		`create trigger r after insert on auth.sessions for each row execute function public.welcome()`:                   "42501",
		`create policy r on auth.sessions using (true)`:                                                                   "42501",
		`create rule r as on insert to auth.users do also select 1`:                                                       "42501",
		`alter table auth.users disable trigger all`:                                                                      "42501",
		`select * from auth.passwords`:                                                                                    "42501",
		`select * from auth.sessions`:                                                                                     "42501",
		`select * from auth.one_time_tokens`:                                                                              "42501",
		`select * from auth.sign_ups`:                                                                                     "42501",
		`select * from auth.mfa_factors`:                                                                                  "42501",
		`truncate auth.users cascade`:                                                                                     "42501",
		`create or replace function auth.uid() returns uuid language sql stable return gen_random_uuid()`:                 "42501",
		`create function auth.mine() returns int language sql return 1`:                                                   "42501",
		`create table public.r (); alter table public.r owner to "` + p.Cluster().Login(p.UUID, pgcluster.Auth) + `"`:     "42501",
		`create table public.r (); grant select on public.r to "` + p.Cluster().Login(p.UUID, pgcluster.Auth) + `"`:       "",
		`set role "` + p.Cluster().Login(p.UUID, pgcluster.Auth) + `"`:                                                    "42501",
		`create materialized view public.r as select count(*) from auth.users`:                                            "",
		`create function public.r(auth.users) returns int language sql return 1`:                                          "42501",
	} {
		if got := pgtest.State(t, conn, "begin; "+sql); got != want {
			t.Errorf("%s: got state %q, want %q", sql, got, want)
		}
		pgtest.Exec(t, conn, "rollback")
	}

	for _, l := range []pgcluster.Login{pgcluster.Request, pgcluster.Service} {
		for _, sql := range []string{"select id from auth.users", "insert into auth.users default values"} {
			if got := pgtest.State(t, projectdbtest.Connect(t, p, l), sql); got != "42501" {
				t.Errorf("%s as %s: got state %q, want 42501", sql, l, got)
			}
		}
	}
}

// TestUsersDDL checks that the project's owner changes nothing of auth.users but triggers, and
// gains no privilege on it.
func TestUsersDDL(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	conn := projectdbtest.Connect(t, p, pgcluster.Owner)
	login := pg.Quote(p.Cluster().Login(p.UUID, pgcluster.Owner))
	pgtest.Exec(t, projectdbtest.Connect(t, p, pgcluster.Auth), insertUser)
	pgtest.Exec(t, conn, `
		create function public.f() returns trigger language plpgsql as 'begin return new; end';
		create table public.profiles (id uuid references auth.users on delete cascade);
		create trigger mine after insert on auth.users for each row execute function public.f();
		insert into public.profiles values ('`+ann+`')`)

	for sql, want := range map[string]string{
		`drop trigger if exists mine on auth.users`:                                                                                     "",
		`drop trigger if exists unknown on auth.users`:                                                                                  "",
		`create or replace trigger mine before delete on auth.users for each row execute function public.f()`:                           "",
		`comment on trigger mine on auth.users is 'x'; comment on trigger mine on auth.users is null`:                                   "",
		`drop function public.f() cascade`:                                                                                              "",
		`drop table public.profiles`:                                                                                                    "",
		`create trigger b after delete on auth.users for each row execute function public.f(); grant select on public.profiles to anon`: "",
		`delete from public.profiles; insert into public.profiles values ('` + ann + `')`:                                               "",
		`insert into public.profiles values (gen_random_uuid())`:                                                                        "23503",

		`drop trigger mine on auth.users; create trigger mine after insert on auth.users for each row execute function public.f()`: "",
		`DROP TRIGGER mine ON "auth" . "users"`:                                                                                                   "",
		`do $$ begin execute 'drop trigger mine on auth.users'; end $$`:                                                                           "",
		`comment on table public.profiles is 'x'; drop trigger mine on auth.users`:                                                                "",
		`do $$ begin drop trigger unknown on auth.users; exception when undefined_object then alter table auth.users disable trigger all; end $$`: "42501",
		`drop trigger socle_check_user on auth.users`:                                                                                             "42501",
		`create or replace trigger socle_check_user before insert on auth.users for each row execute function public.f()`:                         "42501",
		`create trigger socle_mine before insert on auth.users for each row execute function public.f()`:                                          "42501",
		`drop trigger mine on auth.users; alter table auth.users disable trigger all`:                                                             "42501",
		`drop trigger mine on auth.users; grant select on auth.passwords to current_user; select hash from auth.passwords`:                        "42501",
		`drop trigger mine on auth.users; drop table auth.users cascade`:                                                                          "42501",
		`comment on trigger mine on auth.users is 'x'; comment on table auth.users is 'x'`:                                                        "42501",
		`comment on table auth.users is 'x'; comment on trigger mine on auth.users is 'x'`:                                                        "42501",
		`comment on column auth.users.email is 'drop trigger x on auth.users'`:                                                                    "42501",
		`comment on index auth.users_pkey is 'drop trigger x on auth.users'`:                                                                      "42501",
		`comment on type auth.users is 'drop trigger x on auth.users'`:                                                                            "42501",
		`comment on schema auth is 'drop trigger x on auth.users'`:                                                                                "42501",
		`comment on table auth.sessions is 'drop trigger x on auth.users'`:                                                                        "42501",
		`drop trigger evil on auth.sessions /* drop trigger x on auth.users */`:                                                                   "42704",
		`create policy evil on auth.users using (true) /* drop trigger x on auth.users */`:                                                        "42501",
		`select set_config('x.y', 'drop trigger x on auth.users', true); alter table auth.users disable trigger all`:                              "42501",
		`alter table auth.users alter column email type text using (select hash from auth.passwords) -- drop trigger x on auth.users`:             "42501",
		`create index on auth.users (encrypted_password) /* drop trigger x on auth.users */`:                                                      "42501",
		`do $$ declare n text; begin
			select format('drop trigger %I on auth.users cascade', tgname) into n from pg_trigger where tgrelid = 'auth.users'::regclass and tgisinternal limit 1;
			execute n; end $$`: "2BP01",

		`alter table auth.users disable trigger mine`:                                                    "42501",
		`alter table auth.users disable trigger all`:                                                     "42501",
		`alter table auth.users enable row level security`:                                               "42501",
		`alter table auth.users force row level security`:                                                "42501",
		`alter table auth.users add column evil int`:                                                     "42501",
		`alter table auth.users drop column phone`:                                                       "42501",
		`alter table auth.users alter column phone set default 'x'`:                                      "42501",
		`alter table auth.users alter column email type varchar(10)`:                                     "42501",
		`alter table auth.users alter column confirmed_at drop expression`:                               "42501",
		`alter table auth.users rename to evil`:                                                          "42501",
		`alter table auth.users rename column email to evil`:                                             "42501",
		`alter table auth.users rename constraint users_phone_key to evil`:                               "42501",
		`alter table auth.users drop constraint users_phone_key`:                                         "42501",
		`alter table auth.users add constraint evil check (email <> 'x')`:                                "42501",
		`alter table auth.users set schema public`:                                                       "42501",
		`alter table auth.users owner to current_user; alter table auth.users set (fillfactor = 50)`:     "42501",
		`alter table auth.users replica identity full`:                                                   "42501",
		`alter table auth.users cluster on users_pkey`:                                                   "42501",
		`alter index auth.users rename to evil`:                                                          "42501",
		`alter view auth.users rename to evil`:                                                           "42501",
		`alter index auth.users_pkey rename to evil`:                                                     "42501",
		`alter index auth.users_created_at set (fillfactor = 50)`:                                        "42501",
		`alter index auth.users_created_at depends on extension plpgsql`:                                 "42501",
		`drop index auth.users_created_at`:                                                               "42501",
		`drop table auth.users`:                                                                          "42501",
		`drop table auth.users cascade`:                                                                  "42501",
		`drop owned by current_user cascade`:                                                             "42501",
		`alter trigger mine on auth.users rename to other`:                                               "42501",
		`comment on table auth.users is 'mine'`:                                                          "42501",
		`comment on column auth.users.email is 'mine'`:                                                   "42501",
		`comment on constraint users_phone_key on auth.users is 'mine'`:                                  "42501",
		`create rule evil as on update to auth.users do instead nothing`:                                 "42501",
		`create index on auth.users (phone)`:                                                             "42501",
		`create statistics public.evil on email, encrypted_password from auth.users`:                     "42501",
		`create publication evil for table auth.users`:                                                   "42501",
		`create table public.evil () inherits (auth.users)`:                                              "42501",
		`create table public.evil (like auth.users including all)`:                                       "",
		`create function public.evil() returns setof auth.users language plpgsql as 'begin return; end'`: "42501",
		`grant select on auth.passwords to current_user; select hash from auth.passwords`:                "42501",
		`grant select (hash) on auth.passwords to current_user; select hash from auth.passwords`:         "42501",
		`grant update on auth.users to authenticated; do 'begin assert has_table_privilege(''authenticated'', ''auth.users'', ''update''); end'`: "P0004",
		`grant all on all tables in schema auth to ` + login: "42501",
		`grant select (id) on auth.users to authenticated; do 'begin assert has_column_privilege(''authenticated'', ''auth.users'', ''id'', ''select''); end'`:   "P0004",
		`do 'begin begin grant select on auth.passwords to current_user; exception when division_by_zero then null; end; perform hash from auth.passwords; end'`: "42501",
		`do 'begin alter table auth.users rename to evil; grant select on auth.evil to current_user; end'`:                                                       "42501",
		`begin; savepoint s; alter table auth.users rename to evil; create table auth.users ()`:                                                                  "42501",
		`truncate auth.users cascade`:    "42501",
		`copy auth.passwords to stdout`:  "42501",
		`select p from auth.passwords p`: "42501",
		`insert into public.profiles values ('` + ann + `') returning (select hash from auth.passwords)`:                                      "42501",
		`set session_replication_role = replica`:                                                                                              "42501",
		`alter event trigger socle_return_users disable`:                                                                                      "42501",
		`create function public.evil() returns text security definer language sql as 'select hash from auth.passwords'; select public.evil()`: "42501",
	} {
		if got := pgtest.State(t, conn, "begin; "+sql); got != want {
			t.Errorf("%s: got state %q, want %q", sql, got, want)
		}
		pgtest.Exec(t, conn, "rollback")
	}

	pgtest.Exec(t, conn, "drop trigger mine on auth.users")
	if got := pgtest.Value[bool](t, conn, `select relowner = (select relowner from pg_class where oid = 'auth.identities'::regclass)
		from pg_class where oid = 'auth.users'::regclass`); !got {
		t.Error("the owner keeps auth.users after a statement on its triggers")
	}
	pgtest.Exec(t, projectdbtest.Connect(t, p, pgcluster.Auth), `update auth.users set email = 'bob@example.com'; delete from auth.users`)
	if got := pgtest.Value[int](t, conn, "select count(*)::int from public.profiles"); got != 0 {
		t.Errorf("got %d profiles after the user is deleted, want 0", got)
	}
}

// TestUserCodeOfEndUsers runs code of the project as the auth login and checks that it cannot
// change the tables that the login owns.
func TestUserCodeOfEndUsers(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	conn := projectdbtest.Connect(t, p, pgcluster.Owner)

	for _, sql := range []string{
		"drop table auth.sessions cascade", "alter table auth.users add column evil int",
		"create index on auth.users (phone)", "create table auth.evil ()", "create temp table evil ()",
		"grant select on auth.users to public", "create table public.evil ()", "comment on table auth.users is 'mine'",
		"select * from socle.audit", "set role anon", "set session_replication_role = replica",
	} {
		pgtest.Exec(t, conn, `drop function if exists public.evil() cascade;
			create function public.evil() returns trigger language plpgsql as $$ begin execute `+"'"+
			strings.ReplaceAll(sql, "'", "''")+`'; return new; end $$;
			create trigger evil before insert on auth.users for each row execute function public.evil()`)

		if got := pgtest.State(t, projectdbtest.Connect(t, p, pgcluster.Auth), insertUser); got != "42501" {
			t.Errorf("%s in a trigger: got state %q, want 42501", sql, got)
		}
	}

	pgtest.Exec(t, conn, `drop function public.evil() cascade; create table public.profiles (id uuid primary key references auth.users on delete cascade, name text);
		create function public.handle_new_user() returns trigger language plpgsql security definer set search_path = '' as $$
		begin insert into public.profiles (id, name) values (new.id, new.email); return new; end $$;
		create trigger on_auth_user_created after insert on auth.users for each row execute function public.handle_new_user()`)

	users := projectdbtest.Connect(t, p, pgcluster.Auth)
	pgtest.Exec(t, users, insertUser)
	if got := pgtest.Value[int](t, conn, "select count(*)::int from public.profiles where name = 'ann@example.com'"); got != 1 {
		t.Errorf("got %d profiles of the new user, want 1", got)
	}

	pgtest.Exec(t, users, "delete from auth.users")
	if got := pgtest.Value[int](t, conn, "select count(*)::int from public.profiles"); got != 0 {
		t.Errorf("got %d profiles after the user is deleted, want 0", got)
	}
}

// TestPolicyFunctions checks that the planner replaces the functions of policies by their bodies.
func TestPolicyFunctions(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	pgtest.Exec(t, projectdbtest.Connect(t, p, pgcluster.Owner), `create table public.notes (owner uuid default auth.uid());
		create policy own on public.notes using (owner = auth.uid() and auth.role() = 'authenticated' and auth.email() = 'ann@example.com');
		grant select, insert on public.notes to authenticated`)

	conn := projectdbtest.Connect(t, p, pgcluster.Request)
	pgtest.Exec(t, conn, `set role authenticated; set request.jwt.claims = '{"sub": "0192d5b0-0000-7000-8000-000000000001",
		"role": "authenticated", "email": "ann@example.com"}'; insert into public.notes default values`)

	if got := pgtest.Value[int](t, conn, "select count(*)::int from public.notes"); got != 1 {
		t.Errorf("got %d notes of the user, want 1", got)
	}

	for _, claims := range []string{"", "{}", `{"role": "anon"}`} {
		pgtest.Exec(t, conn, "set request.jwt.claims = '"+claims+"'")
		if got := pgtest.Value[int](t, conn, "select count(*)::int from public.notes"); got != 0 {
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
