package authapi_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/idp/idptest"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// hooks sets functions of schema public, each with the name of its hook.
func hooks(names ...string) func(*rules.Settings) {
	return func(s *rules.Settings) {
		autoconfirm(s)
		s.AnonymousSignIn = true
		s.Hooks = rules.Hooks{}
		for _, name := range names {
			s.Hooks[name] = "pg-functions://postgres/public/" + name
		}
	}
}

// hook defines the function of a hook in PL/pgSQL. Declared are event, and rec of type record.
func (p *app) hook(name, body string) {
	p.t.Helper()
	p.exec(`create or replace function public.` + name + `(event jsonb) returns jsonb language plpgsql as $hook$
		declare rec record; begin ` + body + ` end $hook$`)
}

func (p *app) login(email string) *reply {
	p.t.Helper()
	return p.post("/token?grant_type=password", `{"email":"`+email+`","password":"`+password+`"}`)
}

// count returns the result of a statement on the login of end users.
func (p *app) count(sql string) int {
	p.t.Helper()

	n, err := pg.Value[int](p.t.Context(), p.project.EndUsers(), sql)
	if err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}

	return n
}

const addPlan = `return jsonb_set(event, '{claims,plan}', '"pro"');`

func TestAccessTokenHook(t *testing.T) {
	t.Parallel()

	p := newApp(t, hooks("custom_access_token"))
	p.exec(`create table public.profiles (id uuid primary key references auth.users on delete cascade, plan text);
		create table public.asked (method text, login text, superuser boolean, metadata jsonb);
		create function public.handle_new_user() returns trigger language plpgsql security definer set search_path = '' as $$
		begin insert into public.profiles values (new.id, new.raw_user_meta_data ->> 'plan'); return new; end $$;
		create trigger on_auth_user_created after insert on auth.users for each row execute function public.handle_new_user()`)
	p.hook("custom_access_token", `
		insert into public.asked select event ->> 'authentication_method', session_user, rolsuper, event -> 'metadata'
			from pg_catalog.pg_roles where rolname = current_user;
		return jsonb_build_object('claims', event -> 'claims' || jsonb_build_object('plan',
			(select plan from public.profiles where id = (event ->> 'user_id')::uuid), 'exp', (event #>> '{claims,iat}')::int + 600));`)

	ann := p.post("/signup", `{"email":"ann@example.com","password":"`+password+`","data":{"plan":"pro"}}`).want(200)
	sessions := []*reply{ann, p.login("ann@example.com").want(200), p.refresh(ann.text("refresh_token")).want(200),
		p.post("/signup", `{"data":{"plan":"pro"}}`).want(200)}
	for i, s := range sessions {
		if got := claim(t, s.text("access_token"), "plan"); got != "pro" {
			t.Errorf("session %d: got the plan %v", i, got)
		}
		if s.body["expires_in"] != 600.0 || claim(t, s.text("access_token"), "exp") != s.body["expires_at"] {
			t.Errorf("session %d: got the expiry %v", i, s.body["expires_in"])
		}
	}
	p.send("GET", "/user", ann.text("access_token"), "").want(200)

	got, err := pg.Value[string](t.Context(), p.project.Owner(), `
		select string_agg(distinct method, ' ' order by method) from public.asked
		where login = current_user and not superuser and metadata ->> 'name' = 'customize-access-token' and metadata ? 'ip_address'`)
	if err != nil || got != "anonymous password token_refresh" {
		t.Errorf("the hook was asked as owner about %q (%v)", got, err)
	}
}

// TestHooksThatFail breaks the contract in many ways. The session in use survives, and no other one
// is left.
func TestHooksThatFail(t *testing.T) {
	t.Parallel()

	p := newApp(t, hooks("custom_access_token"))
	p.hook("custom_access_token", addPlan)
	session := p.signUp("ann@example.com")
	p.exec(`create table public.written (n int)`)

	change := func(claim, value string) string {
		return `return jsonb_set(event, '{claims,` + claim + `}', '` + value + `');`
	}
	for name, test := range map[string]struct {
		body   string
		status int
		code   string
		text   string
	}{
		"raise":          {`raise exception 'a secret';`, 500, "unexpected_failure", "pg-functions://postgres/public/custom"},
		"loop":           {`loop perform pg_sleep(1);end loop;`, 422, "hook_timeout", "Failed to reach hook within maximum time"},
		"sleep":          {`perform set_config('statement_timeout', '0', false); perform pg_sleep(60);`, 422, "hook_timeout", ""},
		"trap":           {`loop begin perform pg_sleep(60); exception when query_canceled then end; end loop;`, 422, "hook_timeout", ""},
		"huge":           {`return jsonb_build_object('claims', repeat('x', 1000000));`, 422, "hook_payload_over_size_limit", "Payload size"},
		"rejection":      {`return '{"error": {"http_code": 403, "message": "Not today"}}';`, 403, "unknown", "Not today"},
		"odd status":     {`return '{"error": {"http_code": 200, "message": "Not today"}}';`, 500, "unexpected_failure", "Not today"},
		"list":           {`return '[1]';`, 500, "unexpected_failure", "Error unmarshaling"},
		"null":           {`return null;`, 500, "unexpected_failure", "output claims field is missing"},
		"text":           {`return '{"claims": "x"}';`, 500, "unexpected_failure", ""},
		"no email":       {`return event #- '{claims,email}';`, 500, "unexpected_failure", "email is required"},
		"type":           {change("aal", "1"), 500, "unexpected_failure", "aal has another type"},
		"audience":       {change("aud", "1"), 500, "unexpected_failure", "aud has another type"},
		"metadata":       {change("app_metadata", "[]"), 500, "unexpected_failure", "app_metadata has another type"},
		"other user":     {change("sub", `"x"`), 500, "unexpected_failure", "sub must stay"},
		"other session":  {change("session_id", `"x"`), 500, "unexpected_failure", "session_id must stay"},
		"longer":         {change("exp", "99999999999"), 500, "unexpected_failure", "exp must not be later"},
		"service role":   {change("role", `"service_role"`), 500, "unexpected_failure", "role must not become"},
		"drop":           {`drop function public.custom_access_token(jsonb);` + addPlan, 200, "", ""},
		"dropped":        {``, 500, "unexpected_failure", "Error running hook URI"},
		"auth.users":     {`update auth.users set role = 'service_role';` + addPlan, 500, "unexpected_failure", ""},
		"hashes":         {`select hash into rec from auth.passwords;` + addPlan, 500, "unexpected_failure", ""},
		"sessions":       {`select * into rec from auth.sessions;` + addPlan, 500, "unexpected_failure", ""},
		"set role":       {`execute 'set role service_role';` + addPlan, 500, "unexpected_failure", ""},
		"superuser":      {`execute 'set session authorization postgres';` + addPlan, 500, "unexpected_failure", ""},
		"commit":         {`commit;` + addPlan, 500, "unexpected_failure", ""},
		"notices":        {`for i in 1..10 loop raise notice '%', repeat('x', 100000); end loop;` + addPlan, 200, "", ""},
		"end of session": {`perform pg_terminate_backend(pg_backend_pid());` + addPlan, 500, "unexpected_failure", ""},
	} {
		if name == "dropped" {
			p.exec(`drop function public.custom_access_token(jsonb)`)
		} else {
			p.hook("custom_access_token", test.body)
		}

		before := p.count(`select count(*)::int from auth.sessions`)
		got := p.login("ann@example.com")
		if got.status != test.status || got.text("code") != test.code || !strings.Contains(got.raw, test.text) ||
			strings.Contains(got.raw, "a secret") {
			t.Errorf("%s: got %d %s, want %d %s", name, got.status, got.raw, test.status, test.code)
		}

		after := p.count(`select count(*)::int from auth.sessions`)
		if test.status == 200 {
			before++
		} else if name != "loop" && name != "sleep" && name != "trap" { // slow
			want := test.status
			if name == "huge" {
				want = 500 // supabase-js ends the session after 422
			}
			if status := p.refresh(session.text("refresh_token")).status; status != want {
				t.Errorf("%s: refresh: got %d, want %d", name, status, want)
			}
		}
		if after != before {
			t.Errorf("%s: got %d sessions, want %d", name, after, before)
		}

		p.hook("custom_access_token", addPlan)
		p.move("-1 minute") // beyond the time in which a spent token is accepted
		session = p.refresh(session.text("refresh_token")).want(200)
	}
}

// TestNewUserHook refuses users by their domain, whichever way they come.
func TestNewUserHook(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	p := newApp(t, func(s *rules.Settings) {
		withProvider(provider.URL)(s)
		hooks("before_user_created")(s)
		s.ConfirmEmail, s.SMS.SignIn = true, true
	})
	p.exec(`create table public.asked (event jsonb)`)
	p.hook("before_user_created", `insert into public.asked values (event);
		if coalesce(event #>> '{user,email}', '') not like '%@example.com' then
			return '{"error": {"http_code": 403, "message": "Please use your company address."}}';
		end if;
		return '{}';`)
	provider.Person(map[string]any{"sub": "1", "email": "eve@elsewhere.com", "email_verified": true})

	for request, key := range map[string]string{
		`/signup {"email":"eve@elsewhere.com","password":"` + password + `"}`: p.publishable,
		`/signup {"phone":"491700000001","password":"` + password + `"}`:      p.publishable,
		`/otp {"phone":"491700000002"}`:                                       p.publishable,
		`/signup {}`:                                                          p.publishable,
		`/otp {"email":"eve@elsewhere.com"}`:                                  p.publishable,
		`/token?grant_type=id_token {"provider":"custom:test","id_token":"` + provider.IDToken(nil) + `"}`: p.publishable,
		`/invite {"email":"eve@elsewhere.com"}`:                                                            p.secret,
		`/admin/generate_link {"type":"magiclink","email":"eve@elsewhere.com"}`:                            p.secret,
		`/admin/generate_link {"type":"signup","email":"eve@elsewhere.com","password":"` + password + `"}`: p.secret,
	} {
		path, body, _ := strings.Cut(request, " ")
		got := p.send("POST", path, key, body)
		if got.status != 403 || got.text("message") != "Please use your company address." {
			t.Errorf("%s: got %d %s", request, got.status, got.raw)
		}
	}
	if n := p.count(`select count(*)::int from auth.users`); n != 0 {
		t.Errorf("got %d users, want none", n)
	}

	ann := p.post("/signup", `{"email":"ann@example.com","password":"`+password+`","data":{"a":"b"}}`).want(200)
	provider.Person(map[string]any{"sub": "2", "email": "ben@example.com", "email_verified": true})
	ben := p.idToken(provider.IDToken(nil)).want(200)
	for id, provider := range map[string]string{ann.text("id"): "email", ben.text("user.id"): "custom:test"} {
		n, err := pg.Value[int](t.Context(), p.project.Owner(), `
			select count(*)::int from public.asked where event #>> '{user,id}' = $1 and event #>> '{user,app_metadata,provider}' = $2
				and event #>> '{metadata,name}' = 'before-user-created'`, id, provider)
		if err != nil || n != 1 {
			t.Errorf("the hook was asked %d times about %s (%v), want once", n, id, err)
		}
	}

	n, err := pg.Value[int](t.Context(), p.project.Owner(), `
		select count(*)::int from public.asked where event #>> '{user,phone}' in ('491700000001', '491700000002')`)
	if err != nil || n != 2 {
		t.Errorf("the hook saw %d numbers (%v), want 2", n, err)
	}

	p.hook("before_user_created", `raise exception 'x';`)
	p.post("/signup", `{"email":"new@example.com","password":"`+password+`"}`).fails(500, "unexpected_failure")
	p.send("POST", "/admin/users", p.secret, `{"email":"x@elsewhere.com"}`).want(200) // asks nobody
}

// TestCreatedUserHook tells of users once, whichever way they come.
func TestCreatedUserHook(t *testing.T) {
	t.Parallel()

	provider := idptest.New(t)
	p := newApp(t, func(s *rules.Settings) {
		withProvider(provider.URL)(s)
		hooks("before_user_created", "after_user_created")(s)
		s.SMS.SignIn = true
	})
	p.exec(`create table public.told (event jsonb)`)
	p.hook("before_user_created", `return '{}';`)
	p.hook("after_user_created", `
		perform from auth.users where id = (event #>> '{user,id}')::uuid;
		if found then insert into public.told values (event); end if;
		return '{}';`)
	provider.Person(map[string]any{"sub": "1", "email": "ben@example.com", "email_verified": true})

	told := func(want int) {
		t.Helper()

		n, err := pg.Value[int](t.Context(), p.project.Owner(), `
			select count(distinct event #> '{user,id}')::int from public.told where event #>> '{metadata,name}' = 'after-user-created'
				and event #> '{user,created_at}' is not null having count(distinct event #> '{user,id}') = count(*)`)
		if err != nil || n != want {
			t.Errorf("the hook was told of %d users (%v), want %d", n, err, want)
		}
	}

	p.signUp("ann@example.com")
	p.post("/signup", `{}`).want(200)
	p.post("/otp", `{"phone":"491700000002"}`).want(200)
	p.post("/otp", `{"email":"new@example.com"}`).want(200)
	p.idToken(provider.IDToken(nil)).want(200)
	p.send("POST", "/invite", p.secret, `{"email":"guest@example.com"}`).want(200)
	p.send("POST", "/admin/generate_link", p.secret, `{"type":"magiclink","email":"link@example.com"}`).want(200)
	told(7)

	p.idToken(provider.IDToken(nil)).want(200)
	p.post("/otp", `{"email":"new@example.com"}`).want(200)
	p.post("/signup", `{"email":"ann@example.com","password":"`+password+`"}`).fails(422, "user_already_exists")
	p.send("POST", "/invite", p.secret, `{"email":"guest@example.com"}`).want(200)
	p.send("POST", "/admin/users", p.secret, `{"email":"eve@example.com"}`).want(200)
	told(7)

	sessions := p.count(`select count(*)::int from auth.sessions`)
	p.hook("after_user_created", `return '{"error": {"http_code": 418, "message": "No tea"}}';`)
	p.post("/signup", `{"email":"carl@example.com","password":"`+password+`"}`).fails(418, "unknown").
		equal("message", "No tea")
	if n := p.count(`select count(*)::int from auth.sessions`); n != sessions {
		t.Errorf("got %d sessions, want %d", n, sessions)
	}
	p.login("carl@example.com").want(200)
}

func TestPasswordHook(t *testing.T) {
	t.Parallel()

	p := newApp(t, hooks("password_verification_attempt"))
	p.exec(`create table public.failures (id uuid primary key, n int not null)`)
	p.hook("password_verification_attempt", `
		if not (event ->> 'valid')::boolean then
			insert into public.failures values ((event ->> 'user_id')::uuid, 1)
			on conflict (id) do update set n = failures.n + 1;
		end if;
		select n into rec from public.failures where id = (event ->> 'user_id')::uuid;
		if rec.n > 2 then
			return '{"decision": "reject", "message": "Too many attempts", "should_logout_user": true}';
		end if;
		return '{"decision": "continue"}';`)

	session := p.signUp("ann@example.com")
	wrong := func(email string) *reply {
		return p.post("/token?grant_type=password", `{"email":"`+email+`","password":"wrong"}`).
			fails(400, "invalid_credentials")
	}

	wrong("nobody@example.com").equal("message", "Invalid login credentials")
	wrong("ann@example.com").equal("message", "Invalid login credentials")
	p.login("ann@example.com").want(200)
	wrong("ann@example.com")
	p.send("GET", "/user", session.text("access_token"), "").want(200)

	wrong("ann@example.com").equal("message", "Too many attempts")
	p.login("ann@example.com").fails(400, "invalid_credentials").equal("message", "Too many attempts")
	p.send("GET", "/user", session.text("access_token"), "").fails(403, "session_not_found")

	p.hook("password_verification_attempt", `return '{"decision": "reject"}';`)
	p.login("ann@example.com").fails(400, "invalid_credentials").
		equal("message", "Further password verification attempts will be rejected.")
}

func TestFactorHook(t *testing.T) {
	t.Parallel()

	p := newApp(t, hooks("mfa_verification_attempt", "custom_access_token"))
	p.hook("custom_access_token", addPlan)
	p.hook("mfa_verification_attempt", `
		if event ->> 'factor_type' = 'totp' and event ? 'factor_id' and (event ->> 'valid')::boolean then
			return '{"decision": "continue"}';
		end if;
		return '{"decision": "reject", "message": "No more"}';`)

	session := p.signUp("ann@example.com")
	bearer := session.text("access_token")
	factor := p.send("POST", "/factors", bearer, `{"factor_type":"totp"}`).want(200)
	path := "/factors/" + factor.text("id")
	secret, err := token.ParseTOTPText(factor.text("totp.secret"))
	if err != nil {
		t.Fatal(err)
	}

	verify := func(code string) *reply {
		id := p.send("POST", path+"/challenge", bearer, "{}").want(200).text("id")
		return p.send("POST", path+"/verify", bearer, `{"challenge_id":"`+id+`","code":"`+code+`"}`)
	}
	code := token.TOTPCode(secret, token.TOTPStep(time.Now()))

	// The client keeps its refresh token if the tokens of the second level can't be made.
	p.hook("custom_access_token", `if event ->> 'authentication_method' = 'totp' then raise 'x'; end if;`+addPlan)
	verify(code).fails(500, "unexpected_failure")
	p.move("-1 minute")
	session = p.refresh(session.text("refresh_token")).want(200)
	if got := claim(t, session.text("access_token"), "aal"); got != "aal2" {
		t.Errorf("got the level %v, want aal2", got)
	}

	p.hook("custom_access_token", addPlan)
	code = token.TOTPCode(secret, token.TOTPStep(time.Now())+1)
	if got := claim(t, verify(code).want(200).text("access_token"), "plan"); got != "pro" {
		t.Errorf("got the plan %v, want pro", got)
	}

	verify("000000x").fails(403, "mfa_verification_rejected").equal("message", "No more")
	p.send("GET", "/user", bearer, "").fails(403, "session_not_found")
}

// TestHooksAtOnce logs in more users at once than there are connections of either login.
func TestHooksAtOnce(t *testing.T) {
	t.Parallel()

	p := newApp(t, hooks("custom_access_token", "before_user_created", "password_verification_attempt"))
	p.hook("custom_access_token", `perform pg_sleep(0.05);`+addPlan)
	p.hook("before_user_created", `return '{}';`)
	p.hook("password_verification_attempt", `return '{"decision": "continue"}';`)
	p.signUp("ann@example.com")

	var wait sync.WaitGroup
	for range 12 {
		wait.Go(func() {
			if got := p.login("ann@example.com"); got.status != 200 {
				t.Errorf("log-in: got %d %s", got.status, got.raw)
			}
		})
		wait.Go(func() {
			if got := p.post("/signup", `{}`); got.status != 200 {
				t.Errorf("sign-up: got %d %s", got.status, got.raw)
			}
		})
	}
	wait.Wait()
}

// TestHookOfNeighbor keeps all connections of one project busy with endless hooks. Another project
// does not notice.
func TestHookOfNeighbor(t *testing.T) {
	t.Parallel()

	p, q := newApp(t, hooks("custom_access_token")), newApp(t, hooks("custom_access_token"))
	p.hook("custom_access_token", addPlan)
	q.hook("custom_access_token", addPlan)
	p.signUp("ann@example.com")
	q.signUp("ben@example.com")
	p.hook("custom_access_token", `perform pg_advisory_lock(1), pg_sleep(60);`)

	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if got := p.login("ann@example.com"); got.status < 422 {
				t.Errorf("an endless hook: got %d %s", got.status, got.raw)
			}
		})
	}

	apitest.Until(t, "a hook runs", func() bool { return p.project.Owner().Stat().AcquiredConns() > 1 })
	for range 3 {
		q.login("ben@example.com").want(200)
	}
	wait.Wait()

	p.hook("custom_access_token", addPlan)
	p.login("ann@example.com").want(200)
}

// TestNoHooks counts connections taken: a project without hooks takes none of the owner.
func TestNoHooks(t *testing.T) {
	t.Parallel()

	p := newApp(t, hooks())
	owner := p.project.Owner().Stat().AcquireCount()

	session := p.signUp("ann@example.com")
	taken := func(f func()) int64 {
		before := p.project.EndUsers().Stat().AcquireCount()
		f()
		return p.project.EndUsers().Stat().AcquireCount() - before
	}

	login := taken(func() { p.login("ann@example.com").want(200) })
	refresh := taken(func() { p.refresh(session.text("refresh_token")).want(200) })
	if login != 3 || refresh != 2 {
		t.Errorf("a log-in takes %d connections, a refresh %d; want 3 and 2", login, refresh)
	}
	if got := p.project.Owner().Stat().AcquireCount(); got != owner {
		t.Errorf("%d connections of the owner were taken, want none", got-owner)
	}
}
