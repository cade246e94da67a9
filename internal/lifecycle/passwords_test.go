package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// selectHash returns a user's hash, "" without one, as log-ins read it.
const selectHash = `select coalesce((select hash from auth.passwords p join auth.users u on u.encrypted_password = p.reference
	where u.id = @id and p.user_id = u.id), '')`

// TestSelectUsers executes statements of applications that read auth.users as a whole.
func TestSelectUsers(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	conn, login := projectdbtest.Connect(t, p, pgcluster.Owner), projectdbtest.Connect(t, p, pgcluster.Auth)
	pgtest.Exec(t, conn, `
		create table public.profiles (id uuid primary key, data jsonb);
		grant select on public.profiles to authenticated;
		create function public.welcome() returns trigger language plpgsql security definer set search_path = '' as $$
			declare u auth.users%rowtype;
			begin
				select * into u from auth.users where id = new.id;
				insert into public.profiles values (u.id, to_jsonb(u));
				return new;
			end $$;
		create trigger on_auth_user_created after insert on auth.users for each row execute function public.welcome();
		insert into auth.users (id, email, encrypted_password) values ('`+ann+`', 'ann@example.com', '`+bcrypt+`')`)
	pgtest.Exec(t, login, `insert into auth.users (id, email, encrypted_password) values ('`+bob+`', 'bob@example.com', auth.store_password('`+bcrypt+`'))`)

	for _, sql := range []string{
		`select * from auth.users`,
		`select u.* from auth.users u join public.profiles p on p.id = u.id`,
		`select count(*), count(encrypted_password) from auth.users`,
		`select id, email, encrypted_password is not null, confirmation_token, recovery_token from auth.users`,
		`select row_to_json(u), to_jsonb(u.*), u from auth.users u`,
		`select jsonb_agg(u) from auth.users u`,
		`select * from auth.users for update`,
		`copy auth.users to stdout`,
		`copy (select * from auth.users) to stdout`,
		`create table public.copy as select * from auth.users`,
		`create view public.people with (security_invoker) as select * from auth.users; select * from public.people`,
		`create view public.people as select * from auth.users; grant select on public.people to authenticated`,
		`create materialized view public.people as select u.* from auth.users u`,
		`create policy own on public.profiles using (exists (select * from auth.users users where users.* is not null and users.id = profiles.id))`,
		`create function public.find(id uuid) returns setof json language sql as 'select to_json(u) from auth.users u'; select public.find('` + ann + `')`,
		`do 'declare u record; begin for u in select * from auth.users loop perform u.encrypted_password; end loop; end'`,
		`insert into auth.users (id, email) values (gen_random_uuid(), 'eve@example.com') returning *`,
		`update auth.users u set raw_user_meta_data = to_jsonb(u) - 'raw_app_meta_data' returning *`,
		`delete from auth.users returning *`,
		`insert into auth.users (id, email, encrypted_password) select id, email, encrypted_password from auth.users on conflict do nothing`,
		`insert into auth.users (id, email, encrypted_password) select id, email, encrypted_password from auth.users
			on conflict (id) do update set email = excluded.email, encrypted_password = excluded.encrypted_password returning *`,
	} {
		if got := pgtest.State(t, conn, "begin; "+sql); got != "" {
			t.Errorf("%s: got state %q, want none", sql, got)
		}
		pgtest.Exec(t, conn, "rollback")
	}

	if got := pgtest.Value[string](t, conn, `select string_agg(data ->> 'email', ' ' order by 1) from public.profiles
		where starts_with(data ->> 'encrypted_password', '$2$hidden$')`); got != "ann@example.com bob@example.com" {
		t.Errorf("got the profiles of %s, want those of both users", got)
	}
	if got := pgtest.State(t, conn, `select extensions.crypt('secret', encrypted_password) from auth.users`); got == "" {
		t.Error("crypt() compares a password with a reference, want an error")
	}
}

// TestHiddenPasswords checks that no login of the project reads a hash: not by a statement of its
// own, and not in a trigger on auth.users.
func TestHiddenPasswords(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	conn, login := projectdbtest.Connect(t, p, pgcluster.Owner), projectdbtest.Connect(t, p, pgcluster.Auth)
	pgtest.Exec(t, conn, `
		create table public.seen (row text);
		create function public.see() returns trigger language plpgsql security definer as $$
			begin insert into public.seen values (to_jsonb(new)::text || to_jsonb(old)::text); return coalesce(new, old); end $$;
		create trigger "!first" before insert or update or delete on auth.users for each row execute function public.see();
		create trigger last after insert or update or delete on auth.users for each row execute function public.see()`)
	pgtest.Exec(t, login, `
		insert into auth.users (id, email, encrypted_password) values ('`+ann+`', 'ann@example.com', auth.store_password('`+bcrypt+`'));
		update auth.users set encrypted_password = auth.store_password('`+bcrypt+`x'), last_sign_in_at = now();
		insert into auth.sign_ups (id, user_id, relates_to, verification_type, created_user, encrypted_password, raw_user_meta_data)
			values (gen_random_uuid(), '`+ann+`', 'ann@example.com', 'signup', true, '`+bcrypt+`', '{}')`)
	pgtest.Exec(t, conn, `analyze auth.users; insert into auth.users (id, email) values ('`+bob+`', 'bob@example.com')`)
	pgtest.Exec(t, projectdbtest.Connect(t, p, pgcluster.Trusted), `analyze`)

	for sql, want := range map[string]string{
		`select count(*)::text from auth.users u where u::text like '%' || substr('` + bcrypt + `', 8) || '%'`:                                   "0",
		`select count(*)::text from public.seen where row like '%` + bcrypt[7:] + `%'`:                                                           "0",
		`select count(*)::text from pg_stats where tablename in ('passwords', 'sign_ups') or most_common_vals::text like '%` + bcrypt[7:] + `%'`: "0",
		`select string_agg(distinct table_name || '.' || column_name, ' ') from information_schema.columns
			where table_schema = 'auth' and (column_name ~ 'hash|secret' or table_name ~ 'password|sign_up')`: "",
	} {
		if got := pgtest.Value[string](t, conn, `select coalesce((`+sql+`), '')`); got != want {
			t.Errorf("%s: got %q, want %q", sql, got, want)
		}
	}
	if got := pgtest.Value[int](t, conn, `select count(*) from public.seen`); got == 0 {
		t.Error("the triggers have seen nothing")
	}

	statements := []string{
		`select * from auth.passwords`,
		`select reference from auth.passwords`,
		`select count(*) from auth.passwords`,
		`select encrypted_password from auth.sign_ups`,
		`insert into auth.passwords (hash) values ('x') returning *`,
		`update auth.passwords set user_id = null`,
		`delete from auth.passwords`,
		`truncate auth.passwords`,
		`lock table auth.passwords`,
		`analyze auth.passwords; do 'begin assert exists (select from pg_stats where tablename = ''passwords''); end'`,
		`copy auth.passwords to stdout`,
		`create table public.copy as table auth.passwords`,
		`create view public.hashes as select hash from auth.passwords`,
		`create table public.hash (r text references auth.passwords)`,
		`create trigger see after insert on auth.passwords for each row execute function public.see()`,
		`create policy see on auth.passwords using (true)`,
		`create rule see as on insert to auth.passwords do also select 1`,
		`alter table auth.passwords owner to current_user`,
		`alter table auth.passwords disable row level security`,
		`create index on auth.passwords (hash)`,
		`create publication see for table auth.passwords`,
		`select auth.store_password('x')`,
		`select auth.hide_passwords()`,
		`create table public.t (encrypted_password text); create trigger t before insert on public.t for each row execute function auth.hide_password()`,
		`create function public.hashes() returns setof auth.passwords language plpgsql as 'begin return; end'`,
		`drop trigger socle_hide_password on auth.users`,
		`drop trigger socle_password_updated on auth.users`,
		`set session_replication_role = replica`,
	}
	for _, l := range []pgcluster.Login{pgcluster.Owner, pgcluster.Request, pgcluster.Service} {
		conn := projectdbtest.Connect(t, p, l)
		for _, sql := range statements {
			if got := pgtest.State(t, conn, "begin; "+sql); got != "42501" &&
				!(got == "P0004" && strings.HasPrefix(sql, "analyze")) {
				t.Errorf("%s as %s: got state %q, want 42501", sql, l, got)
			}
			pgtest.Exec(t, conn, "rollback")
		}
	}
}

// TestTriggersReadNoHashes runs triggers of the project with the rights of the auth login: at once,
// and at the end of the transaction.
func TestTriggersReadNoHashes(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	conn, login := projectdbtest.Connect(t, p, pgcluster.Owner), projectdbtest.Connect(t, p, pgcluster.Auth)
	trusted := projectdbtest.Connect(t, p, pgcluster.Trusted)
	pgtest.Exec(t, conn, `
		grant usage on schema public to public;
		create table public.stolen (at text, content text);
		create table public.runs (at text);
		grant insert, select on public.stolen, public.runs to public;
		alter table public.stolen disable row level security;
		alter table public.runs disable row level security;
		create function public.steal(place text) returns void language plpgsql as $$
			declare statement text;
			begin
				insert into public.runs values (place);
				foreach statement in array array[
					'select hash from auth.passwords', 'select p::text from auth.passwords p', 'select reference from auth.passwords',
					'update auth.passwords set created_at = now() returning hash', 'delete from auth.passwords returning hash',
					'select most_common_vals::text from pg_stats where schemaname = ''auth'' and attname in (''hash'', ''encrypted_password'')',
					'select encrypted_password from auth.sign_ups', 'select encrypted_password from auth.users'
				] loop
					begin
						execute 'with s as (' || statement || ') insert into public.stolen select $1, s::text from s' using place;
					exception when insufficient_privilege or feature_not_supported or syntax_error then null;
					end;
					begin
						execute 'insert into public.stolen select $1, s::text from (' || statement || ') s' using place;
					exception when insufficient_privilege or syntax_error then null;
					end;
				end loop;
				begin
					execute 'grant select on auth.passwords to public';
				exception when insufficient_privilege then null;
				end;
				begin
					execute 'alter table auth.passwords owner to current_user';
				exception when insufficient_privilege then null;
				end;
				execute 'reset role; reset session authorization';
			end $$;
		grant execute on function public.steal(text) to public;
		create function public.written() returns trigger language plpgsql as
			$$ begin perform public.steal(tg_name); return coalesce(new, old); end $$;
		create trigger before before insert or update on auth.users for each row execute function public.written();
		create trigger after after insert or update on auth.users for each row execute function public.written();
		create trigger statement after insert or update on auth.users for each statement execute function public.written();
		create table public.later (id int);
		create constraint trigger deferred after insert on public.later deferrable initially deferred
			for each row execute function public.written();
		create function public.insert_later() returns trigger language plpgsql security definer as
			$$ begin insert into public.later values (1); return null; end $$;
		create trigger insert_later after insert on auth.users for each row execute function public.insert_later()`)
	pgtest.Exec(t, trusted, `insert into auth.passwords (hash) select '`+bcrypt+`' from generate_series(1, 100); analyze auth.passwords`)
	pgtest.Exec(t, login, `
		insert into auth.users (id, email, encrypted_password) values ('`+ann+`', 'ann@example.com', auth.store_password('`+bcrypt+`'));
		insert into auth.sign_ups (id, user_id, relates_to, verification_type, created_user, encrypted_password, raw_user_meta_data)
			values (gen_random_uuid(), '`+ann+`', 'ann@example.com', 'signup', false, auth.store_password('`+bcrypt+`'), '{}')`)
	pgtest.Exec(t, login, `update auth.users set last_sign_in_at = now()`)

	for _, sql := range []string{
		`select hash from auth.passwords`, `select reference from auth.passwords`, `begin; lock table auth.passwords`, `rollback; update auth.passwords set user_id = null`,
		`delete from auth.passwords`, `truncate auth.passwords`, `table auth.passwords`,
		`grant select on auth.passwords to public`, `select auth.hide_passwords()`,
	} {
		if got := pgtest.State(t, login, sql); got != "42501" {
			t.Errorf("%s: got state %q, want 42501", sql, got)
		}
	}

	if got, want := pgtest.Value[string](t, conn, `select string_agg(distinct at, ' ' order by at) from public.runs`),
		"after before deferred statement"; got != want {
		t.Errorf("got runs of %s, want %s", got, want)
	}
	if got := pgtest.Value[int](t, conn, `select count(*) from public.stolen`); got == 0 {
		t.Error("the triggers read nothing, want references")
	}
	if got := pgtest.Value[string](t, conn, `select coalesce(string_agg(distinct at || ': ' || content, E'\n'), '') from public.stolen
		where content like '%`+bcrypt[7:]+`%'`); got != "" {
		t.Errorf("triggers read hashes:\n%s", got)
	}
	got, err := pg.Value[string](t.Context(), trusted, selectHash, pgx.StrictNamedArgs{"id": ann})
	if err != nil || got != bcrypt {
		t.Errorf("got the hash %q (%v), want %q", got, err, bcrypt)
	}
}

// TestStoredPasswords checks which hash a user has after statements that write auth.users.
func TestStoredPasswords(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	conn, trusted := projectdbtest.Connect(t, p, pgcluster.Owner), projectdbtest.Connect(t, p, pgcluster.Trusted)
	other := strings.Replace(bcrypt, "$2a$", "$2b$", 1)
	argon := "$argon2id$v=19$m=19456,t=2,p=1$" + strings.Repeat("A", 22) + "$" + strings.Repeat("A", 43)
	const row = `insert into auth.users (id, email, encrypted_password) values `
	values := func(id, email, hash string) string { return `('` + id + `', '` + email + `', '` + hash + `')` }

	for _, test := range []struct{ sql, state, ann, bob string }{
		{`update auth.users set encrypted_password = encrypted_password, raw_user_meta_data = '{}'`, "", bcrypt, argon},
		{`update auth.users set encrypted_password = '` + other + `' where id = '` + ann + `'`, "", other, argon},
		{`update auth.users set encrypted_password = null where id = '` + ann + `'`, "", "", argon},
		{`update auth.users set encrypted_password = '' where id = '` + ann + `'`, "", "", argon},
		{`update auth.users set encrypted_password = '` + other + `';
			update auth.users set encrypted_password = '` + bcrypt + `'`, "", bcrypt, bcrypt},
		{row + values(ann, "ann@example.com", other) + ` on conflict do nothing`, "", bcrypt, argon},
		{row + values(bob[:35]+"9", "ann@example.com", other) + ` on conflict do nothing`, "", bcrypt, argon},
		{row + values(ann, "ann@example.com", other) + ` on conflict (id) do update set encrypted_password = excluded.encrypted_password`, "", other, argon},
		{row + values(bob[:35]+"9", "ann@example.com", other) + ` on conflict (email) where is_sso_user = false
			do update set encrypted_password = excluded.encrypted_password`, "", other, argon},
		{`insert into auth.users select * from auth.users on conflict (id) do update set encrypted_password = excluded.encrypted_password`, "428C9", bcrypt, argon},
		{row + values(ann, "ann@example.com", other), "23505", bcrypt, argon},
		{`update auth.users set encrypted_password = (select encrypted_password from auth.users where id = '` + bob + `') where id = '` + ann + `'`, "23514", bcrypt, argon},
		{row + `(gen_random_uuid(), 'eve@example.com', (select encrypted_password from auth.users limit 1))`, "23514", bcrypt, argon},
		{`update auth.users set encrypted_password = '$2$hidden$' || id`, "23514", bcrypt, argon},
		{`update auth.users set encrypted_password = 'secret'`, "23514", bcrypt, argon},
		{`create function public.zz() returns trigger language plpgsql as $$ begin new.encrypted_password := '` + other + `'; return new; end $$;
			create trigger zz before update on auth.users for each row execute function public.zz(); update auth.users set phone = null`, "23514", bcrypt, argon},
		{`create function public.aa() returns trigger language plpgsql as $$ begin new.encrypted_password := '` + other + `'; return new; end $$;
			create trigger aa before update on auth.users for each row execute function public.aa(); update auth.users set phone = null`, "", other, other},
		{`create function public.aa() returns trigger language plpgsql as $$ begin
				update auth.users set encrypted_password = '` + other + `' where id = new.id and encrypted_password is not null and new.phone = '1511';
				return new;
			end $$;
			create trigger aa after update of phone on auth.users for each row execute function public.aa();
			update auth.users set phone = '1511', encrypted_password = '` + argon + `' where id = '` + ann + `'`, "", other, argon},
		{`delete from auth.users where id = '` + ann + `'`, "", "", argon},
	} {
		pgtest.Exec(t, conn, `delete from auth.users; `+row+values(ann, "ann@example.com", bcrypt)+`,`+
			values(bob, "bob@example.com", argon))
		if got := pgtest.State(t, conn, test.sql); got != test.state {
			t.Errorf("%s: got state %q, want %q", test.sql, got, test.state)
		}
		for id, want := range map[string]string{ann: test.ann, bob: test.bob} {
			got, err := pg.Value[string](t.Context(), trusted, selectHash, pgx.StrictNamedArgs{"id": id})
			if err != nil || got != want {
				t.Errorf("%s: got the hash %q of %s (%v), want %q", test.sql, got, id, err, want)
			}
		}
		if got := pgtest.Value[int](t, trusted, `select count(*) from auth.passwords p where user_id is not null
			and not exists (select from auth.users u where u.id = p.user_id and u.encrypted_password = p.reference)`); got != 0 {
			t.Errorf("%s: got %d hashes that no user has, want 0", test.sql, got)
		}
		pgtest.Exec(t, conn, `drop function if exists public.aa, public.zz cascade`)
	}
}

// TestHidePasswords moves the hashes of a former release: the project's triggers do not run, and
// statistics forget the column.
func TestHidePasswords(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	conn, trusted := projectdbtest.Connect(t, p, pgcluster.Owner), projectdbtest.Connect(t, p, pgcluster.Trusted)
	pgtest.Exec(t, conn, `
		create function public.f() returns trigger language plpgsql as $$ begin raise 'a trigger runs'; end $$;
		create trigger aa after update on auth.users for each row execute function public.f()`)
	pgtest.Exec(t, trusted, `set session_replication_role = replica;
		insert into auth.users (id, email, encrypted_password) values ('`+ann+`', 'ann@example.com', '`+bcrypt+`'), ('`+bob+`', 'bob@example.com', null);
		insert into auth.users (id, encrypted_password) select gen_random_uuid(), '`+bcrypt+`' from generate_series(1, 100);
		insert into auth.sign_ups (id, user_id, relates_to, verification_type, created_user, encrypted_password, raw_user_meta_data)
			select gen_random_uuid(), '`+ann+`', 'ann@example.com', 'signup', false, '`+bcrypt+`', '{}' from generate_series(1, 100);
		reset session_replication_role; analyze auth.users, auth.sign_ups`)

	const values = `select count(*)::int from pg_stats where tablename in ('users', 'sign_ups') and attname = 'encrypted_password'`
	if got := pgtest.Value[int](t, trusted, values); got != 2 {
		t.Fatalf("got statistics of %d columns before, want 2", got)
	}
	for range 2 {
		pgtest.Exec(t, trusted, `select auth.hide_passwords()`)
	}
	if got := pgtest.Value[int](t, trusted, values); got != 0 {
		t.Errorf("got statistics of %d columns, want 0", got)
	}

	for sql, want := range map[string]int{
		`select count(*) from auth.users where encrypted_password is not null`:                                                                             101,
		`select count(*) from auth.users u join auth.passwords p on p.reference = u.encrypted_password and p.user_id = u.id and p.hash = '` + bcrypt + `'`: 101,
		`select count(*) from auth.sign_ups s join auth.passwords p on p.reference = s.encrypted_password and p.hash = '` + bcrypt + `'`:                   100,
		`select count(*) from auth.passwords`: 201,
	} {
		if got := pgtest.Value[int](t, trusted, sql); got != want {
			t.Errorf("%s: got %d, want %d", sql, got, want)
		}
	}
}
