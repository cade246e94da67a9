package authapi_test

import (
	"testing"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/pg"
)

// TestTriggersStealNoHashes signs users up and in while a trigger copies hashes into a table.
func TestTriggersStealNoHashes(t *testing.T) {
	t.Parallel()

	p := newApp(t, func(s *rules.Settings) { s.ConfirmEmail, s.MailIntervalSeconds = true, 0 })
	p.exec(`
		create table public.stolen (content text);
		alter table public.stolen disable row level security;
		grant usage on schema public to public;
		grant insert on public.stolen to public;
		create function public.steal() returns trigger language plpgsql as $$
		declare statement text;
		begin
			insert into public.stolen values (tg_op);
			foreach statement in array array['select p::text from auth.passwords p', 'select s::text from auth.sign_ups s',
				'select u::text from auth.users u', 'delete from auth.passwords returning hash'] loop
				begin
					execute 'with s (content) as (' || statement || ') insert into public.stolen select content from s';
				exception when insufficient_privilege then null;
				end;
			end loop;
			return coalesce(new, old);
		end $$;
		create trigger before before insert or update or delete on auth.users for each row execute function public.steal();
		create trigger after after insert or update or delete on auth.users for each row execute function public.steal()`)

	const login = "/token?grant_type=password"
	p.post("/signup", `{"email":"ann@example.com","password":"`+password+`"}`).want(200)
	p.mail(rules.MailConfirmation, "ann@example.com")
	p.post("/signup", `{"email":"ann@example.com","password":"second `+password+`"}`).want(200)
	p.open(p.link(p.mail(rules.MailConfirmation, "ann@example.com")))
	p.post(login, `{"email":"ann@example.com","password":"`+password+`"}`).fails(400, "invalid_credentials")
	token := p.post(login, `{"email":"ann@example.com","password":"second `+password+`"}`).
		want(200).text("access_token")
	p.send("PUT", "/user", token, `{"password":"another `+password+`"}`).want(200)
	p.post(login, `{"email":"ann@example.com","password":"another `+password+`"}`).want(200)
	p.send("POST", "/admin/users", p.secret, `{"email":"bob@example.com",
		"password_hash":"$2a$04$1ye2tE2eTbZGbT8LwhTuFe3mvxqq0B.IQnkKvyGHUwxaKlmEbwBXC"}`).want(200)

	for sql, want := range map[string]bool{
		`select count(*) > 10 from public.stolen where content ~ '\$2\$hidden\$'`: true,
		`select count(*) > 0 from public.stolen where content ~ 'argon2|\$2a\$'`:  false,
	} {
		if got, err := pg.Value[bool](t.Context(), p.project.Owner(), sql); got != want || err != nil {
			t.Errorf("%s: got %t (%v), want %t", sql, got, err, want)
		}
	}
}
