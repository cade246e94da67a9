package lifecycle_test

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/address"
	"github.com/socle-dev/socle/internal/password"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

const (
	bob    = "0192d5b0-0000-7000-8000-000000000002"
	bcrypt = "$2a$06$abcdefghijklmnopqrstuuBnnhV2Bq5Zs3Wu6wgSY0q2Q4Wcx6zBO"
)

// TestUsersBySQL checks what the project's owner changes of its end users.
func TestUsersBySQL(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	conn := projectdbtest.Connect(t, p, pgcluster.Owner)
	login := projectdbtest.Connect(t, p, pgcluster.Auth)
	pgtest.Exec(t, conn, `
		create table public.profiles (id uuid primary key references auth.users on delete cascade, email text, name text);
		create function public.welcome() returns trigger language plpgsql security definer as $$
			begin insert into public.profiles values (new.id, new.email, new.raw_user_meta_data ->> 'name'); return new; end $$;
		create trigger on_auth_user_created after insert on auth.users for each row execute function public.welcome();
		create view public.people as select id, email from auth.users;
		grant all on public.people to authenticated;

		insert into auth.users (instance_id, id, aud, role, email, encrypted_password, email_confirmed_at, confirmation_token,
			recovery_token, email_change, email_change_token_new, raw_app_meta_data, raw_user_meta_data, created_at, updated_at, phone)
		values ('00000000-0000-0000-0000-000000000000', '`+ann+`', 'authenticated', 'authenticated', ' Ann@Example.com', extensions.crypt('secret', extensions.gen_salt('bf')),
			now(), '', '', '', 'x', '{"provider": "email", "plan": "pro"}', '{"name": "Ann"}', now(), now(), null)
		returning id;
		insert into auth.users (id, email, phone) select '`+bob+`', 'bob@example.com', '+49 151' on conflict do nothing;
		insert into auth.users (id, email) values ('`+bob+`', 'bob@example.com') on conflict (id) do nothing;
		insert into auth.identities (id, provider_id, user_id, identity_data, provider, last_sign_in_at, created_at, updated_at)
			select gen_random_uuid(), id, id, format('{"sub": "%s", "email": "%s"}', id, email)::jsonb, 'email', now(), now(), now() from auth.users;
		insert into auth.identities (provider_id, user_id, identity_data, provider) values ('7', '`+bob+`', '{"sub": "7"}', 'github')`)

	for sql, want := range map[string]string{
		`select string_agg(concat_ws('|', email, phone, role, aud, email_confirmed_at is not null, raw_app_meta_data), E'\n' order by email) from auth.users`: `ann@example.com|authenticated|authenticated|t|{"plan": "pro", "provider": "email", "providers": ["email"]}
bob@example.com|49151|authenticated|authenticated|f|{"provider": "email", "providers": ["email", "github", "phone"]}`,
		`select string_agg(concat_ws('|', provider, identity_data - 'sub'), E'\n' order by user_id, provider) from auth.identities`: `email|{"email": "ann@example.com", "email_verified": true, "phone_verified": false}
email|{"email": "bob@example.com", "email_verified": false, "phone_verified": false}
github|{}
phone|{"phone": "49151", "email_verified": false, "phone_verified": false}`,
		`select string_agg(concat_ws('|', email, name), ';' order by email) from public.profiles`: "ann@example.com|Ann;bob@example.com",
	} {
		if got := pgtest.Value[string](t, conn, sql); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", sql, got, want)
		}
	}
	if got := pgtest.Value[string](t, login, `select email_change_token_new from auth.users where id = '`+ann+`'`); got != "" {
		t.Errorf("got the token %q of a user made by SQL, want none", got)
	}

	const session = `insert into auth.sessions (id, user_id) values (gen_random_uuid(), '` + ann + `')`
	for sql, want := range map[string]string{
		`update auth.users set raw_app_meta_data = raw_app_meta_data || '{"role": "admin"}' where email = 'ann@example.com'`:       "",
		`update auth.users set email_confirmed_at = now(), banned_until = null, updated_at = now()`:                                "",
		`update auth.users set encrypted_password = '` + bcrypt + `'`:                                                              "",
		`insert into auth.users (id, email) values ('` + ann + `', 'x@y.z') on conflict (id) do update set email = excluded.email`: "",
		`delete from auth.users`:                                                                                                  "",
		`select id from auth.users for update`:                                                                                    "",
		`insert into auth.users (email) values ('x@y.z')`:                                                                         "23502",
		`insert into auth.users (id, email) values (gen_random_uuid(), 'ANN@example.com')`:                                        "23505",
		`insert into auth.users (id, email) values (gen_random_uuid(), 'ann')`:                                                    "23514",
		`insert into auth.users (id, phone) values (gen_random_uuid(), 'ann')`:                                                    "23514",
		`insert into auth.users (id, encrypted_password) values (gen_random_uuid(), 'secret')`:                                    "23514",
		`insert into auth.users (id, raw_user_meta_data) values (gen_random_uuid(), '[]')`:                                        "23514",
		`insert into auth.users (id, raw_user_meta_data) values (gen_random_uuid(), jsonb_build_object('a', repeat('x', 16384)))`: "23514",
		`insert into auth.users (id, role) values (gen_random_uuid(), repeat('x', 64))`:                                           "23514",
		`insert into auth.users (id, is_sso_user) values (gen_random_uuid(), true)`:                                               "23514",
		`update auth.users set id = gen_random_uuid()`:                                                                            "42501",
		`update auth.users set deleted_at = now()`:                                                                                "42501",
		`update auth.users set banned_until = 'infinity'`:                                                                         "23514",
		`update auth.users set banned_until = '0044-01-01 BC'`:                                                                    "23514",
		`update auth.users set email_confirmed_at = '10000-01-01'`:                                                                "23514",
		`insert into auth.users (id, deleted_at) values (gen_random_uuid(), now())`:                                               "23514",
		`create function public.zz() returns trigger language plpgsql as $$ begin new.role := 'service_role'; return new; end $$;
		create trigger zz before insert on auth.users for each row execute function public.zz();
		insert into auth.users (id, email) values (gen_random_uuid(), 'zoe@example.com')`: "23514",
		`update auth.users set role = 'service_role'`:                                                                                 "42501",
		`insert into auth.users (id, role) values (gen_random_uuid(), 'service_role')`:                                                "42501",
		`update auth.users set encrypted_password = 'x'`:                                                                              "23514",
		`update auth.users set raw_user_meta_data = jsonb_build_object('a', (select hash from auth.passwords))`:                       "42501",
		`insert into auth.users (id) values ('` + ann + `') on conflict (id) do update set role = (select hash from auth.passwords)`:  "42501",
		`insert into auth.users (id) values (gen_random_uuid()) returning (select hash from auth.passwords)`:                          "42501",
		`insert into auth.identities (provider_id, user_id, identity_data, provider) values ('7', '` + ann + `', '{}', 'github')`:     "23505",
		`insert into auth.identities (provider_id, user_id, identity_data, provider) values ('8', gen_random_uuid(), '{}', 'github')`: "23503",
		`insert into auth.identities (provider_id, user_id, identity_data, provider) values ('8', gen_random_uuid(), '{}', 'email')`:  "23503",
		`insert into auth.identities (provider_id, user_id, identity_data, provider) values ('8', '` + ann + `', '{}', '')`:           "23514",
		`update auth.identities set provider_id = '8'`:                                                                                "42501",
		`set role authenticated; delete from public.people`:                                                                           "42501",
		`set role authenticated; update public.people set email = 'x@y.z'`:                                                            "42501",
		`set role authenticated; insert into public.people values (gen_random_uuid(), 'x@y.z')`:                                       "42501",
	} {
		if strings.HasPrefix(sql, "set role") {
			request := projectdbtest.Connect(t, p, pgcluster.Request)
			if got := pgtest.State(t, request, sql); got != want {
				t.Errorf("%s: got state %q, want %q", sql, got, want)
			}
			continue
		}

		if got := pgtest.State(t, conn, "begin; "+sql); got != want {
			t.Errorf("%s: got state %q, want %q", sql, got, want)
		}
		pgtest.Exec(t, conn, "rollback")
	}

	pgtest.Exec(t, login, session)
	pgtest.Exec(t, conn, `update auth.users set raw_user_meta_data = '{}' where id = '`+ann+`'`)
	if got := pgtest.Value[int](t, login, `select count(*) from auth.sessions`); got != 1 {
		t.Errorf("got %d sessions after a change of metadata, want 1", got)
	}
	pgtest.Exec(t, conn, `update auth.users set encrypted_password = '`+bcrypt+`', email = 'Eve@example.com'
		where id = '`+ann+`'`)
	if got := pgtest.Value[int](t, login, `select count(*) from auth.sessions`); got != 0 {
		t.Errorf("got %d sessions after a change of the password, want 0", got)
	}
	if got := pgtest.Value[string](t, conn, `select email from auth.identities where user_id = '`+ann+`'`); got != "eve@example.com" {
		t.Errorf("got the identity of %s after a change of the address", got)
	}
	pgtest.Exec(t, conn, `delete from auth.users`)
	if got := pgtest.Value[int](t, conn, `select (select count(*) from auth.identities) + (select count(*) from public.profiles)`); got != 0 {
		t.Errorf("got %d identities and profiles of deleted users, want 0", got)
	}
}

// TestManyUsersBySQL checks what follows statements on several users: each has its own outcome.
func TestManyUsersBySQL(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	conn := projectdbtest.Connect(t, p, pgcluster.Owner)
	login := projectdbtest.Connect(t, p, pgcluster.Auth)
	pgtest.Exec(t, conn, `
		create function public.forget() returns trigger language plpgsql security definer as $$
			begin delete from auth.users where id = new.id and new.email like 'gone%'; return null; end $$;
		create trigger forget after insert on auth.users for each row execute function public.forget();
		insert into auth.users (id, email, phone)
		select gen_random_uuid(), case n % 3 when 0 then 'gone' else 'user' end || n || '@example.com', case n when 1 then '491' end
		from generate_series(1, 300) n`)
	pgtest.Exec(t, login, `insert into auth.sessions (id, user_id) select gen_random_uuid(), id from auth.users where email < 'user2'`)

	const identities = `select count(*) filter (where i.email = u.email) || ' of ' || count(*) || ', ' || count(distinct u.id) || ' users'
		from auth.users u left join auth.identities i on i.user_id = u.id`
	steps := []struct{ sql, identities, sessions string }{
		{"", "200 of 201, 200 users", "75"},
		{`update auth.users set raw_user_meta_data = '{"a": 1}', updated_at = now()`, "200 of 201, 200 users", "75"},
		{`update auth.users set email = 'new-' || email, phone = null`, "200 of 200, 200 users", "75"},
		{`update auth.users set encrypted_password = case when email like 'new-user10@%' then '` + bcrypt + `' end,
			email = email`, "200 of 200, 200 users", "74"},
		{`insert into auth.users (id, email) select id, 'x' || email from auth.users where email < 'new-user2'
			union all select gen_random_uuid(), 'b@example.com'
			on conflict (id) do update set email = excluded.email`, "201 of 201, 201 users", "74"},
		{`delete from auth.users where email like 'x%'`, "126 of 126, 126 users", "0"},
	}
	for _, step := range steps {
		if step.sql != "" {
			pgtest.Exec(t, conn, step.sql)
		}
		if got := pgtest.Value[string](t, conn, identities); got != step.identities {
			t.Errorf("%s: got the identities %s, want %s", step.sql, got, step.identities)
		}
		if got := pgtest.Value[string](t, login, `select count(*)::text from auth.sessions`); got != step.sessions {
			t.Errorf("%s: got %s sessions, want %s", step.sql, got, step.sessions)
		}
	}

	for _, sql := range []string{
		`insert into auth.users (id, email) select gen_random_uuid(), 'c' || n from generate_series(1, 2) n`,
		`create function public.admin() returns trigger language plpgsql as $$ begin new.role := 'service_role'; return new; end $$;
		create trigger zz before update on auth.users for each row when (old.email = 'b@example.com') execute function public.admin();
		update auth.users set updated_at = now()`,
		`create function public.other() returns trigger language plpgsql as $$
			begin new.id := gen_random_uuid(); new.role := 'service_role'; return new; end $$;
		create trigger zz before update on auth.users for each row when (old.email is null) execute function public.other();
		insert into auth.users (id) values (gen_random_uuid());
		update auth.users set updated_at = now()`,
	} {
		if got := pgtest.State(t, conn, "begin; "+sql); got != "23514" {
			t.Errorf("%s: got state %q, want 23514", sql, got)
		}
		pgtest.Exec(t, conn, "rollback")
	}
}

// TestPlatformTriggersStay checks that no trigger of the platform stands for another one.
func TestPlatformTriggersStay(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	conn := projectdbtest.Connect(t, p, pgcluster.Owner)
	pgtest.Exec(t, projectdbtest.Connect(t, p, pgcluster.Trusted), `
		create trigger socle_fact_user_created after insert on auth.users for each row execute function socle.user_fact('a');
		create trigger socle_fact_user_deleted after delete on auth.users for each row execute function socle.user_fact('a')`)
	names, err := pg.Values[string](t.Context(), conn, `
		select tgname::text from pg_trigger
		where tgrelid = 'auth.users'::regclass and tgname like 'socle\_%' and tgname not like 'socle\_fact%'`)
	if err != nil || len(names) == 0 {
		t.Fatalf("got the triggers %v, %v", names, err)
	}

	for _, name := range names {
		if got := pgtest.State(t, conn, "drop trigger "+name+" on auth.users"); got != "42501" {
			t.Errorf("drop of %s: got state %q, want 42501", name, got)
		}
	}
}

// TestFaultyAddresses checks that SQL is told the fault of an address.
func TestFaultyAddresses(t *testing.T) {
	t.Parallel()

	conn := projectdbtest.Connect(t, projectdbtest.New(t), pgcluster.Owner)
	for text, fault := range map[string]string{
		"ann": "it has no @", "ann at example.com": "it has no @", "a@b@c": "it has more than one @",
		"@b": "nothing stands before the @", "a@": "nothing stands after the @", "a b@c": "it has a space",
		".a@b": "a dot must stand between", "a.@b": "a dot must stand between", "a..b@c": "a dot must stand between",
		"a@b.": "a dot must stand between", "a@-b": "its domain begins with -", "a,b@c": "it has the character ','",
		`"a"@b`: `it has the character '"'`, "a@[1]": "it has the character '['", "a\x01@b": "it has the character",
		strings.Repeat("a", 65) + "@b":  "more than 64 bytes stand before the @",
		"a@" + strings.Repeat("b", 253): "more than 254 bytes",
		"ann@xn--bcher-kva.de":          "its domain is in Punycode", "ann@bücher.de": "it has characters beyond ASCII",
		"ann\u200b@example.com": "it has characters beyond ASCII",
	} {
		_, err := conn.Exec(t.Context(), `insert into auth.users (id, email) values (gen_random_uuid(), $1)`, text)
		if err == nil || pg.State(err) != "23514" || !strings.Contains(err.Error(), "is no e-mail address: ") ||
			!strings.Contains(err.Error(), fault) {
			t.Errorf("address %q: got %v, want 23514 and %q", text, err, fault)
		}
	}
}

// TestCleanBySQL checks that SQL accepts no address and no hash that the packages refuse.
func TestCleanBySQL(t *testing.T) {
	t.Parallel()

	conn := projectdbtest.Connect(t, projectdbtest.New(t), pgcluster.Owner)
	for text, refused := range map[string]bool{
		"ann@example.com": false, " Ann.B+c@EXAMPLE.com\n": false, "a_b@a_b": false, "o'hara@x.org": false,
		"a@b": false,
		"ann": true, "@b": true, "a@": true, "a@b@c": true, ".a@b": true, "a.@b": true, "a..b@c": true, "a@-b": true,
		"a b@c": true, `"a"@b`: true, "a@[1]": true, "a,b@c": true, "ann@xn--bcher-kva.de": true, "ann@bücher.de": true,
		strings.Repeat("a", 65) + "@b": true, strings.Repeat("a", 64) + "@b": false,
		"a@" + strings.Repeat("b", 253): true,
		"a@b.":                          true, "a@.b": true, "ann\u200b@example.com": true,
	} {
		clean, ok := address.Clean(text)
		sql := "select auth.clean_email('" + strings.ReplaceAll(text, "'", "''") + "')"
		state := pgtest.State(t, conn, sql)
		if (state != "") != refused || (state == "" && !ok) {
			t.Errorf("address %q: got state %q, package address says %v", text, state, ok)
		}
		if state != "" {
			continue
		}
		if got := pgtest.Value[string](t, conn, sql); got != clean {
			t.Errorf("address %q: got %q, want %q", text, got, clean)
		}
	}

	salt, key := strings.Repeat("A", 22), strings.Repeat("A", 43)
	for hash, refused := range map[string]bool{
		bcrypt: false, "$2b$12$" + bcrypt[7:]: false, "$argon2id$v=19$m=19456,t=2,p=1$" + salt + "$" + key: false,
		"$2b$13$" + bcrypt[7:]: true, "$2b$03$" + bcrypt[7:]: true, "$2x$06$" + bcrypt[7:]: true,
		bcrypt[1:]: true, bcrypt + "a": true,
		bcrypt[:59] + "!": true, bcrypt[:59] + "=": true, bcrypt[:59] + "+": true, bcrypt[:59] + "P": true,
		bcrypt[:58] + "é": true, bcrypt[:59] + "é": true, bcrypt[:59] + "\n": true, bcrypt + "\n": true,
		"$2a$06$" + strings.Repeat("!", 53): true, bcrypt[:28] + "v" + bcrypt[29:]: false, // unused bits of the salt
		"secret": true, "$argon2id$v=19$m=77825,t=1,p=1$" + salt + "$" + key: true,
		"$argon2id$v=19$m=19456,t=9,p=1$" + salt + "$" + key:       true,
		"$argon2i$v=19$m=19456,t=2,p=1$" + salt + "$" + key:        true,
		"$argon2id$v=19$m=19456,t=2,p=1$" + salt + "$" + key + "A": true,
	} {
		err := password.CheckImported(hash)
		state := pgtest.State(t, conn, "select auth.check_hash('"+hash+"')")
		if (state != "") != refused || (err != nil) != refused {
			t.Errorf("hash %q: got state %q, package password says %v", hash, state, err)
		}
	}
}
