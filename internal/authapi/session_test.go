package authapi_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/pg"
)

func TestSignUpAndRows(t *testing.T) {
	t.Parallel()

	p := newApp(t, autoconfirm)
	p.exec(`create table public.notes (id int generated always as identity primary key, owner uuid not null default auth.uid() references auth.users on delete cascade, body text);
		create policy own on public.notes to authenticated using (owner = auth.uid()) with check (owner = auth.uid());
		grant select, insert on public.notes to authenticated`)

	ann := p.post("/signup", `{"email":"Ann@Example.com","password":"`+password+`","data":{"name":"Ann"}}`).want(200).
		equal("user.email", "ann@example.com").equal("user.user_metadata.name", "Ann").
		equal("user.app_metadata.provider", "email").
		equal("user.aud", "authenticated").equal("token_type", "bearer")
	ben := p.signUp("ben@example.com")

	if status := p.rows("POST", ann.text("access_token"), `{"body":"hers"}`); status != "201 " {
		t.Errorf("insert a row: got %s, want 201", status)
	}
	if got := p.rows("GET", ann.text("access_token"), ""); got != `200 [{"body":"hers"}]` {
		t.Errorf("rows of the user: got %s", got)
	}
	if got := p.rows("GET", ben.text("access_token"), ""); got != `200 []` {
		t.Errorf("rows of another user: got %s", got)
	}

	var claims map[string]any
	segment, err := base64.RawURLEncoding.DecodeString(strings.Split(ann.text("access_token"), ".")[1])
	if err != nil || json.Unmarshal(segment, &claims) != nil {
		t.Fatalf("claims %s: %v", segment, err)
	}

	for name, want := range map[string]any{"sub": ann.text("user.id"), "aud": "authenticated", "role": "authenticated",
		"aal": "aal1", "email": "ann@example.com", "phone": "", "is_anonymous": false,
		"iss": p.URL + "/projects/" + p.Project + "/auth/v1"} {
		if claims[name] != want {
			t.Errorf("claim %s: got %v, want %v", name, claims[name], want)
		}
	}

	p.send("GET", "/user", ann.text("access_token"), "").want(200).equal("email", "ann@example.com")
	p.post("/signup", `{"email":"ann@example.com","password":"`+password+`"}`).fails(422, "user_already_exists").
		equal("message", "User already registered")

	p.post("/token?grant_type=password", `{"email":"ANN@example.com ","password":"`+password+`"}`).want(200)
	for _, body := range []string{`{"email":"ann@example.com","password":"wrong"}`, `{"email":"nobody@example.com","password":"wrong"}`} {
		p.post("/token?grant_type=password", body).fails(400, "invalid_credentials").equal("message",
			"Invalid login credentials")
	}
}

// rows sends a request about the notes to the rows API, and returns the status and the body.
func (p *app) rows(method, token, body string) string {
	p.t.Helper()

	r, err := http.NewRequestWithContext(p.t.Context(), method,
		p.URL+"/projects/"+p.Project+"/rest/v1/notes?select=body", strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}

	if method == "POST" {
		r.URL.RawQuery = ""
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Apikey", p.publishable)
	r.Header.Set("Authorization", "Bearer "+token)

	res, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()

	text, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}

	return res.Status[:4] + string(text)
}

func TestSignUpRefused(t *testing.T) {
	t.Parallel()

	p := newApp(t, autoconfirm)
	for body, want := range map[string]string{
		`{"email":"nonsense","password":"` + password + `"}`: "400 validation_failed Unable to validate email address: invalid format",
		`{"email":"ann@example.com","password":"short"}`:     "422 weak_password Password should be at least 8 characters.",
		`{"email":"ann@example.com"}`:                        "400 validation_failed Signup requires a valid password",
		`{}`:                                                 "422 anonymous_provider_disabled Anonymous sign-ins are disabled",
		`{"phone":"+4912345","password":"` + password + `"}`: "400 phone_provider_disabled Phone signups are disabled",
		`{"email":"a@b.c","password":"` + password + `","data":{"a":"` + strings.Repeat("x", 17<<10) + `"}}`: "400 validation_failed user_metadata must have at most 16384 bytes",
		`{"email":"a@b.c","password":"` + password + `","data":[]}`:                                          "400 validation_failed user_metadata must be an object",
		`{"email":"a@b.c","password":"` + password + `","code_challenge":"x"}`:                               "400 validation_failed PKCE flow requires code_challenge_method and code_challenge",
		`{"email":5,"password":"x"}`:                    "400 bad_json Could not parse request body as JSON: email must be a string",
		`{"gotrue_meta_security":{"captcha_token":[]}}`: "400 bad_json Could not parse request body as JSON: gotrue_meta_security/captcha_token must be a string",
		`{"email":`:                             "400 bad_json Could not parse request body as JSON",
		`"` + strings.Repeat("x", 65<<10) + `"`: "413 request_too_large Request body is larger than 65536 bytes",
	} {
		got := p.post("/signup", body)
		if text := strings.Join([]string{http.StatusText(got.status), got.text("code"), got.text("message")},
			" "); text !=
			strings.Replace(want, want[:3], statusText(want[:3]), 1) {
			t.Errorf("%.80s: got %d %s %s, want %s", body, got.status, got.text("code"), got.text("message"), want)
		}
	}

	if reasons := p.post("/signup", `{"email":"ann@example.com","password":"short"}`).
		body["weak_password"]; reasons == nil {
		t.Error("a weak password has no reasons")
	}
}

func statusText(digits string) string {
	return map[string]string{"400": "Bad Request", "422": "Unprocessable Entity",
		"413": "Request Entity Too Large"}[digits]
}

// TestKeys checks which keys and tokens each kind of endpoint takes.
func TestKeys(t *testing.T) {
	t.Parallel()

	p, other := newApp(t, autoconfirm), newApp(t, autoconfirm)
	ann, eve := p.signUp("ann@example.com").text("access_token"), other.signUp("eve@example.com").text("access_token")

	for _, tt := range []struct {
		method, path, key string
		status            int
		code              string
	}{
		{"POST", "/token?grant_type=password", "", 401, "no_authorization"},
		{"POST", "/token?grant_type=password", "socle_publishable_none", 401, "no_authorization"},
		{"POST", "/token?grant_type=password", other.publishable, 401, "no_authorization"},
		{"GET", "/user", "", 401, "no_authorization"},
		{"GET", "/user", p.publishable, 403, "bad_jwt"},
		{"GET", "/user", "a.b.c", 403, "bad_jwt"},
		{"GET", "/user", ann + "x", 403, "bad_jwt"},
		{"GET", "/user", eve, 403, "bad_jwt"},
		{"GET", "/user", p.Token, 403, "bad_jwt"},
		{"GET", "/admin/users", "", 401, "no_authorization"},
		{"GET", "/admin/users", p.publishable, 403, "not_admin"},
		{"GET", "/admin/users", ann, 403, "not_admin"},
		{"GET", "/admin/users", other.secret, 401, "no_authorization"},
		{"POST", "/nothing", p.secret, 404, "not_found"},
		{"POST", "/sso", p.publishable, 404, "saml_provider_disabled"},
		{"DELETE", "/signup", p.publishable, 405, "method_not_allowed"},
	} {
		p.send(tt.method, tt.path, tt.key, "{}").fails(tt.status, tt.code)
	}

	if res := p.Anonymous().Send("GET", "/projects", "", "Authorization: Bearer "+ann); res.Status != 401 {
		t.Errorf("a token of an end user at the platform: got %d, want 401", res.Status)
	}

	p.send("GET", "/user", ann, "", "Apikey", p.publishable).want(200)
	malformed := p.send("GET", "/user", "this-is-no-token", "", "Apikey", p.secret).fails(403, "bad_jwt")
	if !strings.HasPrefix(malformed.text("message"), "invalid JWT") {
		t.Errorf("a malformed token: got %s", malformed.raw)
	}
	p.post("/verify", `{"type":"sms","phone":"1234-invalid","token":"123456"}`).fails(400, "validation_failed")
	old := p.send("GET", "/user", "", "", "X-Supabase-Api-Version", "")
	if old.want(401).text("error_code") != "no_authorization" || old.body["code"] != 401.0 || old.text("msg") == "" {
		t.Errorf("without a version: got %s", old.raw)
	}

	preflight := p.send("OPTIONS", "/token", "", "", "Origin", "https://app.example.com").want(204)
	if !strings.Contains(preflight.header.Get("Access-Control-Allow-Headers"), "x-supabase-api-version") {
		t.Errorf("preflight: got %v", preflight.header)
	}

	p.send("GET", "/health", "", "").want(200)
	if p.send("GET", "/settings", "", "").want(200).body["mailer_autoconfirm"] != true {
		t.Error("the settings don't show that addresses need no confirmation")
	}
	if keys, _ := p.send("GET", "/.well-known/jwks.json", "", "").want(200).body["keys"].([]any); len(keys) != 1 {
		t.Errorf("got %d keys, want 1", len(keys))
	}
}

func (p *app) refresh(token string) *reply {
	p.t.Helper()
	return p.post("/token?grant_type=refresh_token", `{"refresh_token":"`+token+`"}`)
}

// TestRefresh has the responses to refresh tokens. Package enduser tests their rules.
func TestRefresh(t *testing.T) {
	t.Parallel()

	p := newApp(t, autoconfirm)
	first := p.signUp("ann@example.com").text("refresh_token")
	second := p.refresh(first).want(200)
	third := p.refresh(second.text("refresh_token")).want(200)
	p.move("-1 day")
	p.refresh(first).fails(400, "refresh_token_already_used")
	p.refresh(third.text("refresh_token")).fails(400, "refresh_token_not_found")
	p.send("GET", "/user", third.text("access_token"), "").fails(403, "session_not_found")
	p.refresh("").fails(400, "validation_failed")

	other := newApp(t, autoconfirm)
	other.refresh(p.signUp("ben@example.com").text("refresh_token")).fails(400, "refresh_token_not_found")
}

// move moves the times of all sessions.
func (p *app) move(by string) {
	p.t.Helper()

	if _, err := pg.Exec(p.t.Context(), p.project.EndUsers(), `
		update auth.sessions set created_at = created_at + $1::text::interval, refreshed_at = refreshed_at + $1::text::interval`, by); err != nil {
		p.t.Fatal(err)
	}
}

// TestLogout has the responses to scopes. Package enduser tests the sessions that end.
func TestLogout(t *testing.T) {
	t.Parallel()

	p := newApp(t, autoconfirm)
	own := p.signUp("ann@example.com")
	other := p.post("/token?grant_type=password", `{"email":"ann@example.com","password":"`+password+`"}`).want(200)

	token := own.text("access_token")
	p.send("POST", "/logout?scope=all", token, "").fails(400, "validation_failed")
	p.send("POST", "/logout?scope=others", token, "").want(204)
	p.refresh(other.text("refresh_token")).fails(400, "refresh_token_not_found")
	p.send("POST", "/logout", token, "").want(204)
	p.send("GET", "/user", token, "").fails(403, "session_not_found")
}

// TestUpdateUser has the responses to changes of the signed-in user. Package enduser tests their
// rules.
func TestUpdateUser(t *testing.T) {
	t.Parallel()

	p := newApp(t, autoconfirm)
	token := p.signUp("ann@example.com").text("access_token")

	put := func(body string) *reply { return p.send("PUT", "/user", token, body) }
	put(`{"data":{"name":"Ann","city":"Bonn"}}`).want(200).equal("user_metadata.city", "Bonn")
	put(`{"password":"short"}`).fails(422, "weak_password")
	put(`{"password":"another horse battery","current_password":"wrong"}`).fails(400, "invalid_credentials")
	put(`{"email":"nonsense"}`).fails(400, "validation_failed")
	put(`{"email":"anna@example.com"}`).want(200).equal("email", "anna@example.com")
	put(`{"password":"another horse battery"}`).want(200)
	p.post("/token?grant_type=password", `{"email":"anna@example.com","password":"another horse battery"}`).want(200)
}

// TestAnonymous signs in without credentials.
func TestAnonymous(t *testing.T) {
	t.Parallel()

	p := newApp(t, func(s *rules.Settings) { autoconfirm(s); s.AnonymousSignIn = true })
	session := p.post("/signup", `{"data":{"a":1}}`).want(200)
	if user, _ := session.body["user"].(map[string]any); user["is_anonymous"] != true || user["email"] != "" {
		t.Errorf("got user %v", user)
	}

	token := session.text("access_token")
	p.send("GET", "/reauthenticate", token, "").fails(400, "validation_failed")
	p.send("PUT", "/user", token, `{"password":"`+password+`"}`).fails(422, "validation_failed")
	if got := p.send("PUT", "/user", token, `{"email":"ann@example.com"}`).
		want(200); got.body["is_anonymous"] != false {
		t.Errorf("got %s", got.raw)
	}
}

// TestTriggers runs code of the project with new users.
func TestTriggers(t *testing.T) {
	t.Parallel()

	p := newApp(t, autoconfirm)
	p.exec(`create table public.profiles (id uuid primary key references auth.users on delete cascade, name text);
		create function public.handle_new_user() returns trigger language plpgsql security definer set search_path = '' as $$
		begin
			if new.email like 'slow%' then perform pg_catalog.pg_sleep(86400); end if;
			if new.email like 'bad%' then raise exception 'secret of the function'; end if;
			insert into public.profiles (id, name) values (new.id, new.raw_user_meta_data ->> 'name'); return new;
		end $$;
		drop trigger if exists on_auth_user_created on auth.users;
		create trigger on_auth_user_created after insert on auth.users for each row execute function public.handle_new_user();
		comment on trigger on_auth_user_created on auth.users is 'adds a profile'`)

	p.post("/signup", `{"email":"ann@example.com","password":"`+password+`","data":{"name":"Ann"}}`).want(200)
	if got, err := pg.Value[string](t.Context(), p.project.Owner(), `select name from public.profiles`); got != "Ann" {
		t.Errorf("the profile has the name %q, %v", got, err)
	}

	p.post("/signup", `{"email":"bad@example.com","password":"`+password+`"}`).fails(500, "unexpected_failure").
		equal("message", "Database error saving new user")
	if n, err := pg.Value[int](t.Context(), p.project.EndUsers(),
		`select count(*)::int from auth.users`); n != 1 || err != nil {
		t.Errorf("got %d users (%v), want 1", n, err)
	}

	p.post("/signup", `{"email":"slow@example.com","password":"`+password+`"}`).fails(500, "unexpected_failure")

	id := p.post("/token?grant_type=password", `{"email":"ann@example.com","password":"`+password+`"}`).want(200).
		text("user.id")
	p.send("DELETE", "/admin/users/"+id, p.secret, "").want(200)
	if n, err := pg.Value[int](t.Context(), p.project.Owner(),
		`select count(*)::int from public.profiles`); n != 0 || err != nil {
		t.Errorf("got %d profiles (%v) after the user is deleted, want 0", n, err)
	}
}

// TestTriggersLeaveNothing changes the session in a trigger, and replaces its prepared statements.
func TestTriggersLeaveNothing(t *testing.T) {
	t.Parallel()

	p := newApp(t, autoconfirm)
	ann := p.signUp("ann@example.com")
	p.exec(`create schema hostile;
		create function hostile.lower(text) returns text language sql as $$ select 'mallory@example.com' $$;
		create function public.meddle() returns trigger language plpgsql as $$
		declare s record;
		begin
			perform pg_catalog.set_config('search_path', 'hostile, pg_catalog', false);
			perform pg_catalog.set_config('timezone', 'Asia/Tokyo', false);
			for s in select name from pg_catalog.pg_prepared_statements loop
				execute pg_catalog.format('deallocate %I', s.name);
				execute pg_catalog.format('prepare %I as select 1', s.name);
			end loop;
			return new;
		end $$;
		create trigger meddle after update on auth.users for each row execute function public.meddle()`)

	token, refresh := ann.text("access_token"), ann.text("refresh_token")
	for range 3 {
		for range 4 { // fills the pool
			p.send("GET", "/user", token, "").want(200).equal("email", "ann@example.com")
		}

		p.post("/token?grant_type=password", `{"email":"ann@example.com","password":"`+password+`"}`).want(200)
		refresh = p.refresh(refresh).want(200).text("refresh_token")
	}

	path, err := pg.Value[string](t.Context(), p.project.EndUserRows(), `select current_setting('search_path')`)
	if err != nil || strings.Contains(path, "hostile") {
		t.Errorf("search_path is %s (%v) after a trigger", path, err)
	}
}

func TestAdmin(t *testing.T) {
	t.Parallel()

	p := newApp(t, nil)
	admin := func(method, path, body string) *reply { p.t.Helper(); return p.send(method, path, p.secret, body) }

	id := uuid.NewString()
	ann := admin("POST", "/admin/users", `{"id":"`+id+`","email":"ann@example.com","password":"`+password+`","email_confirm":true,
		"app_metadata":{"plan":"pro"},"user_metadata":{"name":"Ann"}}`).want(200).equal("id", id).equal("app_metadata.plan", "pro").
		equal("app_metadata.provider", "email")
	p.post("/token?grant_type=password", `{"email":"ann@example.com","password":"`+password+`"}`).want(200)

	admin("POST", "/admin/users", `{"email":"ann@example.com"}`).fails(422, "email_exists")
	admin("POST", "/admin/users", `{"id":"`+id+`","email":"x@example.com"}`).fails(422, "user_already_exists")
	admin("POST", "/admin/users", `{"id":"x","email":"x@example.com"}`).fails(400, "bad_json").
		equal("message", "Could not parse request body as JSON: id must be a UUID")
	admin("POST", "/admin/users", `{}`).fails(400, "validation_failed")
	admin("POST", "/admin/users", `{"email":"x@example.com","password_hash":"plain"}`).fails(400, "validation_failed")
	admin("POST", "/admin/users", `{"email":"x@example.com","ban_duration":"soon"}`).fails(400, "validation_failed")
	admin("GET", "/admin/users/"+uuid.NewString(), "").fails(404, "user_not_found")
	admin("PUT", "/admin/users/"+uuid.NewString(), "{}").fails(404, "user_not_found")
	admin("DELETE", "/admin/users/"+uuid.NewString(), "").fails(404, "user_not_found")

	// bcrypt of "correct horse", with cost 4
	admin("POST", "/admin/users", `{"email":"old@example.com","email_confirm":true,
		"password_hash":"$2a$04$1ye2tE2eTbZGbT8LwhTuFe3mvxqq0B.IQnkKvyGHUwxaKlmEbwBXC"}`).want(200)

	path := "/admin/users/" + ann.text("id")
	admin("PUT", path, `{"ban_duration":"24h"}`).want(200)
	p.post("/token?grant_type=password", `{"email":"ann@example.com","password":"`+password+`"}`).fails(400,
		"user_banned")
	admin("PUT", path, `{"ban_duration":"none","user_metadata":{"name":null,"x":1},"email":"anna@example.com"}`).want(200).
		equal("email", "anna@example.com").equal("user_metadata.name", "")
	admin("PUT", path, `{"role":""}`).want(200).equal("role", "authenticated")
	session := p.post("/token?grant_type=password", `{"email":"anna@example.com","password":"`+password+`"}`).want(200)
	admin("PUT", path, `{"password":"another horse battery"}`).want(200)
	p.refresh(session.text("refresh_token")).fails(400, "refresh_token_not_found")

	for _, name := range []string{"b", "c"} {
		admin("POST", "/admin/users", `{"email":"`+name+`@example.com"}`).want(200)
	}
	list := admin("GET", "/admin/users?page=1&per_page=3", "").want(200)
	if users, _ := list.body["users"].([]any); len(users) != 3 || list.header.Get("X-Total-Count") != "4" ||
		list.header.Get("Link") != `</admin/users?page=2&per_page=3>; rel="next", </admin/users?page=2&per_page=3>; rel="last"` {
		t.Errorf("got %d users, %v", len(users), list.header)
	}
	admin("GET", "/admin/users?page=&per_page=", "").want(200)
	admin("GET", "/admin/users?page=x", "").fails(400, "validation_failed")

	admin("DELETE", path, `{"should_soft_delete":true}`).want(200)
	if admin("GET", path, "").want(200).text("deleted_at") == "" {
		t.Error("a soft deletion leaves no trace")
	}
	p.post("/token?grant_type=password", `{"email":"anna@example.com","password":"another horse battery"}`).fails(400, "invalid_credentials")
	admin("DELETE", path, "").want(200)
	admin("GET", path, "").fails(404, "user_not_found")
}
