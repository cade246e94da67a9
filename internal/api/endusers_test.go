package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// endUserCalls returns the operations on the end users of a project.
func endUserCalls(a *apitest.API) []call {
	path := "/projects/" + a.Project
	user := path + "/end-users/" + apitest.MissingUUID

	return []call{
		{id: "createEndUser", method: "POST", path: path + "/end-users", body: `{"email": "late@example.com"}`},
		{id: "importEndUsers", method: "POST", path: path + "/end-users/import",
			body: `{"users": [{"uuid": "` + apitest.MissingUUID + `"}]}`},
		{id: "listEndUsers", method: "GET", path: path + "/end-users"},
		{id: "getEndUser", method: "GET", path: user},
		{id: "updateEndUser", method: "PUT", path: user, body: `{"ban_duration": "none"}`},
		{id: "deleteEndUser", method: "DELETE", path: user},
		{id: "deleteEndUserSessions", method: "DELETE", path: user + "/sessions"},
		{id: "listEndUserSessions", method: "GET", path: user + "/sessions"},
		{id: "deleteEndUserSession", method: "DELETE", path: user + "/sessions/" + apitest.MissingUUID},
		{id: "listEndUserFactors", method: "GET", path: user + "/factors"},
		{id: "deleteEndUserFactor", method: "DELETE", path: user + "/factors/" + apitest.MissingUUID},
		{id: "listEndUserPasskeys", method: "GET", path: user + "/passkeys"},
		{id: "deleteEndUserPasskey", method: "DELETE", path: user + "/passkeys/" + apitest.MissingUUID},
		{id: "listEndUserIdentities", method: "GET", path: user + "/identities"},
		{id: "inviteEndUser", method: "POST", path: path + "/end-users/invite", body: `{"email": "late@example.com"}`},
		{id: "sendEndUserMail", method: "POST", path: user + "/mails", body: `{"kind": "recovery"}`},
		{id: "previewMail", method: "POST", path: path + "/mail-preview", body: `{"kind": "recovery"}`},
		{id: "sendTestMail", method: "POST", path: path + "/test-mails", body: `{"kind": "recovery"}`},
		{id: "createEndUserToken", method: "POST", path: path + "/end-user-tokens",
			body: `{"user": "nobody@example.com"}`},
		{id: "getAuthSettings", method: "GET", path: path + "/auth-settings"},
		{id: "updateAuthSettings", method: "PUT", path: path + "/auth-settings", body: `{"sign_up": true}`},
		{id: "rotateAuthKey", method: "POST", path: path + "/auth-key/rotate"},
		{id: "listMails", method: "GET", path: path + "/mails"},
		{id: "getMail", method: "GET", path: path + "/mails/" + apitest.MissingUUID},
	}
}

func TestEndUsers(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/end-users"

	grace := a.Post(path, `{"email": "Grace@example.com", "password": "correct horse battery", "is_confirmed": true,
		"app_metadata": {"plan": "pro"}, "user_metadata": {"name": "Grace"}}`).Want(201).Content("email", "grace@example.com").
		Content("userMetadata.name", "Grace").Content("appMetadata.plan", "pro").Content("hasSecondFactor", false)
	a.Post(path, `{"email": "ada@example.com"}`).Want(201).Content("emailConfirmedAt", nil)

	for _, body := range []string{`{}`, `{"email": "nonsense"}`, `{"email": "grace@example.com"}`,
		`{"email": "x@example.com", "password": "short"}`, `{"email": "x@example.com", "ban_duration": "soon"}`,
		`{"email": "x@example.com", "app_metadata": []}`} {
		a.Post(path, body).Want(422)
	}
	a.Post(path, `{`).Want(400)

	a.Get(path+"?sort=email").Want(200).Content("0.email", "ada@example.com").Total(2)
	a.Get(path+"?search=RACE").Want(200).Content("0.email", "grace@example.com").Total(1)
	a.Get(path + "?search=" + grace.Get("uuid").(string)).Want(200).Total(1)
	a.Get(path + "?search=%25").Want(200).Total(0)
	a.Get(path + "?sort=password").Want(400)
	a.Get(path + "/x").Want(400)

	mary := a.Post(path, `{"phone": "+49 170 1234567", "is_phone_confirmed": true}`).Want(201).Content("phone", "491701234567").
		Content("email", "").Get("uuid").(string)
	a.Post(path, `{"phone": "491701234567"}`).Want(422).Code("phone_exists")
	a.Get(path + "?search=91701").Want(200).Total(1)
	a.Put(path+"/"+mary, `{"phone": "nonsense"}`).Want(422)
	if changed := a.Put(path+"/"+mary, `{"phone": "+491709999999"}`).Want(200); changed.Get("phoneConfirmedAt") == nil {
		t.Errorf("got %s, want a confirmed number", changed.Body)
	}

	one := path + "/" + grace.Get("uuid").(string)
	a.Get(one).Want(200).Content("email", "grace@example.com")
	if banned := a.Put(one, `{"ban_duration": "24h"}`).Want(200); banned.Get("bannedUntil") == nil {
		t.Errorf("got %s, want a ban", banned.Body)
	}
	a.Put(one, `{"ban_duration": "none", "email": "ada@example.com"}`).Want(422).Code("email_exists")
	a.Put(one, `{"ban_duration": "none", "user_metadata": {"name": null}}`).Want(200).Content("bannedUntil", nil)
	a.Put(one, `{"ban_duration": 1}`).Want(422)
	a.Put(one, `{}`).Want(422).Code("nothing_to_change")
	a.Put(path+"/"+apitest.MissingUUID, `{}`).Want(404)
	a.Put(path+"/x", `{}`).Want(400)

	a.Delete(one+"/sessions").Want(200).Content("sessions", 0)
	a.Delete(path + "/x/sessions").Want(400)
	a.Delete(path + "/" + apitest.MissingUUID + "/sessions").Want(404)
	a.Delete(one).Want(200).Content("email", "grace@example.com")
	a.Delete(one).Want(404)
	a.Delete(path + "/x").Want(400)
	a.Get(one).Want(404)
}

// TestImportEndUsers imports users with hashes of other systems and signs them in.
func TestImportEndUsers(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project
	key := a.Post(path+"/keys", `{"name": "web", "kind": "publishable"}`).Want(201).Metadata("key").(string)

	const (
		ann  = "5e1f4c1c-3f0e-4a4b-9a51-0d7f6f6b2f10"
		bob  = "5e1f4c1c-3f0e-4a4b-9a51-0d7f6f6b2f11"
		cleo = "5e1f4c1c-3f0e-4a4b-9a51-0d7f6f6b2f12"

		firebase = "$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk=jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==" +
			"$42xEC+ixf3L2lw==$lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ=="
	)
	body := `{"users": [
		{"uuid": "` + ann + `", "email": "Ann@example.com", "password_hash": "` + firebase + `", "email_confirmed_at": "2026-01-31T12:00:00Z",
			"created_at": "2025-01-31T12:00:00Z", "app_metadata": {"plan": "pro"}, "user_metadata": {"name": "Ann"},
			"identities": [{"provider": "google", "provider_id": "g1", "identity_data": {"sub": "g1"}}]},
		{"uuid": "` + bob + `", "email": "ann@example.com"},
		{"uuid": "` + cleo + `", "email": "nonsense"},
		{"uuid": "` + cleo + `", "password_hash": "md5"},
		{"uuid": "` + cleo + `", "identities": [{"provider": "google", "provider_id": "g1"}]},
		{"uuid": "` + cleo + `", "email": "cleo@example.com", "phone": "+491701234567", "phone_confirmed_at": "2026-01-31T12:00:00Z",
			"identities": [{"provider": "phone", "provider_id": "` + cleo + `"}]},
		{"uuid": "` + bob + `", "phone": "491701234567"},
		{"uuid": "` + bob + `", "phone": "nonsense"}]}`
	a.Post(path+"/end-users/import", body).Want(201).Content("0.outcome", "created").Content("0.uuid", ann).
		Content("1.outcome", "failed").Content("1.code", "email_exists").Content("2.code", "validation_failed").
		Content("3.code", "validation_failed").Content("4.code", "identity_already_exists").
		Content("5.outcome", "created").Content("6.code", "phone_exists").Content("7.code", "validation_failed")
	a.Post(path+"/end-users/import", body).Want(201).Content("0.outcome", "exists").Content("1.outcome", "failed").
		Content("5.outcome", "exists")
	a.Get(path+"/end-users?sort=email").Want(200).Total(2).Content("0.createdAt", "2025-01-31T12:00:00.000000Z").
		Content("0.appMetadata.plan", "pro").Content("0.userMetadata.name", "Ann").Content("1.phone", "491701234567").
		Content("1.appMetadata.providers.1", "phone")

	for range 2 { // by the hash of Firebase, and by the one that replaces it
		sendContract(t, a.Anonymous().Request("POST", path+"/auth/v1/token?grant_type=password",
			strings.NewReader(`{"email": "ann@example.com", "password": "user1password"}`), "Apikey: "+key))
	}

	a.Post("/sql", sqlBody(`
		insert into auth.users (id, email, encrypted_password, email_confirmed_at)
		values (gen_random_uuid(), 'Dora@example.com', extensions.crypt('seeded-password', extensions.gen_salt('bf')), now())`,
		writing)).Want(200)
	sendContract(t, a.Anonymous().Request("POST", path+"/auth/v1/token?grant_type=password",
		strings.NewReader(`{"email": "dora@example.com", "password": "seeded-password"}`), "Apikey: "+key))
	a.Post("/sql", sqlBody(`delete from auth.users where email = 'dora@example.com'`, writing)).Want(200)
	a.Get(path + "/end-users").Want(200).Total(2)

	_, err := a.Server.Projects().Open(uuid.MustParse(a.Project)).Owner().Exec(t.Context(), `
		create function public.fail() returns trigger language plpgsql as $$ begin raise 'secret %', new.email; end $$;
		create trigger fail before insert on auth.users for each row execute function public.fail()`)
	if err != nil {
		t.Fatal(err)
	}
	a.Post(path+"/end-users/import", `{"users": [{"uuid": "`+bob+`", "email": "bob@example.com"}]}`).Want(201).
		Content("0.outcome", "failed").Content("0.code", "unexpected_failure").
		Content("0.detail", "Database error saving new user")

	a.Post(path+"/end-users/import", `{"users": []}`).Want(422)
	many := strings.TrimSuffix(strings.Repeat(`{"uuid": "`+ann+`"},`, 101), ",")
	a.Post(path+"/end-users/import", `{"users": [`+many+`]}`).Want(422)
	a.Post("/projects/x/end-users/import", body).Want(400)
}

func TestAuthSettings(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/auth-settings"
	a.Get(path).Want(200).Content("signUp", true).Content("confirmEmail", true).Content("anonymousSignIn", false).
		Content("passwordMinLength", 8)
	a.Put(path, `{}`).Want(422).Code("nothing_to_change")

	a.Put(path, `{"site_url": "https://app.example.com", "redirect_urls": ["https://*.example.com/**"], "sign_up": false,
		"mails": {"recovery": {"subject": "New password", "html": "<a href='{{ .ConfirmationURL }}'>{{ .Data.name }}</a>", "text": ""}}}`).
		Want(200).Content("siteUrl", "https://app.example.com").Content("mails.recovery.subject", "New password")
	a.Get(path).Want(200).Content("signUp", false).Content("redirectUrls.0", "https://*.example.com/**").
		Content("codeSeconds", 3600)

	a.Put(path, `{"secrets": {"providers.github": "s3cret", "providers.google": "canary"}}`).Want(200).
		Content("secretNames.1", "providers.google")
	a.Put(path, `{"hooks": {"before_user_created": "pg-functions://postgres/public/f"}}`).Want(200).
		Content("hooks.before_user_created", "pg-functions://postgres/public/f")
	a.Put(path, `{"hooks": {}, "leaked_password_check": true, "password_required_characters": ["digit"]}`).Want(200).
		Content("leakedPasswordCheck", true).Content("passwordRequiredCharacters.0", "digit")
	a.Put(path, `{"secrets": {"providers.google": ""}, "sign_up": false}`).Want(200).
		Content("secretNames.0", "providers.github")
	r := a.Get(path).Want(200)
	if bytes.Contains(r.Body, []byte("s3cret")) || bytes.Contains(r.Body, []byte("google")) {
		t.Errorf("a secret is shown or was not removed: %s", r.Body)
	}

	const hook = `{"sms": {"sign_in": true, "sender": "hook", "hook_url": "https://sms.example.com/send"}`
	a.Put(path, hook+`}`).Want(422).Field("secrets.sms.hook")
	a.Put(path, hook+`, "secrets": {"sms.hook": "short"}}`).Want(422).Field("secrets.sms.hook")
	a.Put(path, hook+`, "secrets": {"sms.hook": "v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}`).Want(200).
		Content("sms.sender", "hook").Content("sms.interval_seconds", 60).Content("sms.per_hour", 30)
	a.Put(path, `{"secrets": {"sms.hook": ""}}`).Want(422).Field("secrets.sms.hook")

	for body, field := range map[string]string{
		`{"webauthn": {"passkeys": true, "rp_id": "10.0.0.7"}}`:                        "webauthn",
		`{"webauthn": {"passkeys": true, "origins": ["https://evil.example"]}}`:        "webauthn",
		`{"sms": {"sender": "hook", "hook_url": "ftp://x"}}`:                           "sms",
		`{"sms": {"text": "no code"}}`:                                                 "sms",
		`{"sms": {"test_numbers": {"+49170": "123456"}}}`:                              "sms",
		`{"sms": {"calling_codes": ["+49"]}}`:                                          "sms",
		`{"secrets": {"providers.nothing": "x"}}`:                                      "secrets.providers.nothing",
		`{"secrets": {"providers.google": "` + strings.Repeat("x", 4097) + `"}}`:       "secrets.providers.google",
		`{"hooks": {"nothing": "pg-functions://postgres/public/f"}}`:                   "hooks.nothing",
		`{"hooks": {"before_user_created": "https://example.com/"}}`:                   "secrets.hooks.before_user_created",
		`{"hooks": {"before_user_created": "ftp://example.com/"}}`:                     "hooks.before_user_created",
		`{"hooks": {"before_user_created": "pg-functions://postgres/f"}}`:              "hooks.before_user_created",
		`{"password_required_characters": ["emoji"]}`:                                  "password_required_characters",
		`{"captcha": {"enabled": true, "provider": "turnstile"}}`:                      "secrets.captcha",
		`{"captcha": {"enabled": true, "provider": "none"}}`:                           "captcha.provider",
		`{"captcha": {"enabled": false, "provider": "hcaptcha", "url": "x"}}`:          "captcha.url",
		`{"access_token_seconds": 10}`:                                                 "access_token_seconds",
		`{"password_min_length": 5}`:                                                   "password_min_length",
		`{"session_seconds": 10}`:                                                      "session_seconds",
		`{"site_url": "javascript:alert(1)"}`:                                          "site_url",
		`{"redirect_urls": ["[x"]}`:                                                    "redirect_urls",
		`{"mails": {"nothing": {"subject": "x", "html": "x", "text": ""}}}`:            "mails.nothing",
		`{"mails": {"invite": {"subject": "x", "html": "{{ .Secret }}", "text": ""}}}`: "mails.invite",
	} {
		a.Put(path, body).Want(422).Field(field)
	}
	a.Get("/projects/x/auth-settings").Want(400)
	a.Put("/projects/x/auth-settings", `{"sign_up": true}`).Want(400)

	a.Post("/projects/"+a.Project+"/auth-key/rotate", "").Want(201).Content("generation", 2)
	a.Post("/projects/"+a.Project+"/auth-key/rotate", "").Want(201).Content("generation", 3)
	a.Post("/projects/x/auth-key/rotate", "").Want(400)
}

func TestMails(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project
	key := a.Post(path+"/keys", `{"name": "web", "kind": "publishable"}`).Want(201).Metadata("key").(string)

	request := a.Anonymous().Request("POST", path+"/auth/v1/signup",
		strings.NewReader(`{"email": "ada@example.com", "password": "correct horse battery"}`), "Apikey: "+key)
	sendContract(t, request)

	until(t, "the mail is in the mailbox", func() bool {
		return fmt.Sprint(a.Get(path+"/mails").Want(200).Metadata("total")) == "1"
	})

	mail := a.Get(path+"/mails?sort=recipient&order=desc").Want(200).Content("0.recipient", "ada@example.com").
		Content("0.kind", "confirmation").Get("0.uuid").(string)
	text := a.Get(path + "/mails/" + mail).Want(200).Get("text").(string)
	if !strings.Contains(text, a.URL+path+"/auth/v1/verify?token=") {
		t.Errorf("got the mail %q, want a link", text)
	}

	a.Get(path + "/mails/" + apitest.MissingUUID).Want(404)
	a.Get(path + "/mails/x").Want(400)
	a.Get("/projects/x/mails").Want(400)
}

// sendContract sends a request that is no operation of the document.
func sendContract(t *testing.T, r *http.Request) {
	t.Helper()

	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()

	if res.StatusCode != http.StatusOK {
		t.Fatalf("got status %d, want 200", res.StatusCode)
	}
}

// createMail puts a mail into the mailbox of a project and returns its UUID.
func createMail(t *testing.T, a *apitest.API) string {
	t.Helper()

	id := uuid.NewString()
	if _, err := a.Server.Projects().Open(uuid.MustParse(a.Project)).EndUsers().Exec(t.Context(), `
		insert into auth.mails (id, recipient, kind, subject, html, body)
		values ($1, 'ada@example.com', 'invite', 'subject', 'html', 'text')`, id); err != nil {
		t.Fatal(err)
	}

	return id
}

// TestCreateEndUserToken reads rows as an end user: the policies decide, the token has the user's
// claims, changes no account, and the audit log has it.
func TestCreateEndUserToken(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	project := "/projects/" + a.Project
	id := a.Create(project+"/end-users", `{"email": "grace@example.com", "is_confirmed": true}`)
	a.Post("/sql", `{"read_only": false, "query": "create table notes (id int, owner uuid, text text); `+
		`alter table notes enable row level security; grant select on notes to authenticated; `+
		`create policy own on notes for select to authenticated using (owner = auth.uid()); `+
		`insert into notes values (1, '`+id+`', 'own'), (2, gen_random_uuid(), 'other')"}`).Want(200)

	developer := a.Member(4)
	for _, who := range []string{id, "Grace@example.com"} {
		token := developer.Post(project+"/end-user-tokens", `{"user": "`+who+`"}`).Want(201).Content("userUuid", id).
			Metadata("token").(string)

		get := func(path string) (int, string) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.URL+project+path, nil)
			if err != nil {
				t.Fatal(err)
			}

			r.Header.Set("Authorization", "Bearer "+token)
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()

			var body bytes.Buffer
			if _, err := body.ReadFrom(res.Body); err != nil {
				t.Fatal(err)
			}

			return res.StatusCode, body.String()
		}

		if status, body := get("/rest/v1/notes?select=text"); status != 200 || body != `[{"text":"own"}]` {
			t.Errorf("%s: got %d %s, want the user's own row", who, status, body)
		}
		if status, body := get("/auth/v1/reauthenticate"); status < 400 {
			t.Errorf("%s: the token of no session is one of the account: %d %s", who, status, body)
		}
	}

	a.Get(project+"/audit?action=createEndUserToken").Want(200).Total(2).Content("0.actor", developer.User).
		Content("0.created", id)
	developer.Post(project+"/end-user-tokens", `{"user": "nobody@example.com"}`).Want(404)
	developer.Post(project+"/end-user-tokens", `{"user": ""}`).Want(422).Field("user")
	developer.Post(project+"/end-user-tokens", `{`).Want(400)
	a.Member(5).Post(project+"/end-user-tokens", `{"user": "grace@example.com"}`).Want(403)
}
