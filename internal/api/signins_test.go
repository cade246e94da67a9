package api_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// createSignIn creates an end user with a session and a verified factor, and returns them by the
// names of path parameters.
func createSignIn(t *testing.T, a *apitest.API, n string) map[string]string {
	t.Helper()

	user := a.Create("/projects/"+a.Project+"/end-users",
		`{"email": "signed-in-`+n+`@example.com", "is_confirmed": true}`)
	session, factor, passkey := uuid.NewString(), uuid.NewString(), uuid.NewString()
	pool := a.Server.Projects().Open(uuid.MustParse(a.Project)).EndUsers()
	for _, sql := range []string{
		`insert into auth.mfa_factors (id, user_id, friendly_name, factor_type, status)
			values ('` + factor + `', '` + user + `', 'phone of ` + n + `', 'totp', 'verified')`,
		`insert into auth.sessions (id, user_id, user_agent, ip, aal, factor_id)
			values ('` + session + `', '` + user + `', 'curl/8', '203.0.113.7', 'aal2', '` + factor + `')`,
		`insert into auth.webauthn_credentials (id, user_id, credential_id, public_key, friendly_name)
			values ('` + passkey + `', '` + user + `', '` + passkey + `', '', 'laptop of ` + n + `')`,
		`insert into auth.mfa_amr_claims (session_id, authentication_method) values ('` + session + `', 'totp')`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}

	return map[string]string{"endUserUUID": user, "endUserSessionUUID": session, "factorUUID": factor,
		"passkeyUUID": passkey}
}

// TestEndUserSignIns lists the ways by which a user signs in, and takes them away.
func TestEndUserSignIns(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	names := createSignIn(t, a, "1")
	stranger := createSignIn(t, a, "2")
	path := "/projects/" + a.Project + "/end-users/" + names["endUserUUID"]
	missing := "/projects/" + a.Project + "/end-users/" + apitest.MissingUUID

	a.Get(path+"/identities").Want(200).Total(1).Content("0.provider", "email").
		Content("0.email", "signed-in-1@example.com")
	a.Get(path+"/sessions").Want(200).Total(1).Content("0.uuid", names["endUserSessionUUID"]).
		Content("0.level", "aal2").Content("0.methods.0", "totp").Content("0.address", "203.0.113.7").
		Content("0.userAgent", "curl/8").Content("0.clientUuid", nil)
	a.Get(path+"/factors").Want(200).Content("0.type", "totp").Content("0.status", "verified").
		Content("0.name", "phone of 1")

	a.Get(path+"/passkeys").Want(200).Content("0.uuid", names["passkeyUUID"]).Content("0.name", "laptop of 1").
		Content("0.lastUsedAt", nil)

	for _, kind := range []string{"identities", "sessions", "factors", "passkeys"} {
		a.Get(missing + "/" + kind).Want(404)
		a.Get("/projects/" + a.Project + "/end-users/x/" + kind).Want(400)
	}
	a.Get(path + "/sessions?sort=address").Want(400)

	a.Delete(path + "/factors/" + stranger["factorUUID"]).Want(404)
	a.Delete(path+"/factors/"+names["factorUUID"]).Want(200).Content("name", "phone of 1")
	a.Delete(path + "/factors/" + names["factorUUID"]).Want(404)
	a.Delete(path + "/factors/x").Want(400)
	a.Get(path+"/sessions").Want(200).Content("0.level", "aal1").Content("0.methods", []any{})

	a.Delete(path + "/passkeys/" + stranger["passkeyUUID"]).Want(404)
	a.Delete(path+"/passkeys/"+names["passkeyUUID"]).Want(200).Content("name", "laptop of 1")
	a.Delete(path + "/passkeys/" + names["passkeyUUID"]).Want(404)
	a.Delete(path + "/passkeys/x").Want(400)

	a.Delete(path + "/sessions/" + stranger["endUserSessionUUID"]).Want(404)
	a.Delete(path+"/sessions/"+names["endUserSessionUUID"]).Want(200).Content("address", "203.0.113.7")
	a.Delete(path + "/sessions/" + names["endUserSessionUUID"]).Want(404)
	a.Delete(path + "/sessions/x").Want(400)
	a.Get(path + "/sessions").Want(200).Total(0)
	a.Get("/projects/" + a.Project + "/audit?action=deleteEndUserFactor").Want(200).Total(1)
	a.Get("/projects/" + a.Project + "/audit?action=deleteEndUserPasskey").Want(200).Total(1)
}

// mailTo waits for a mail of a kind in the project's mailbox, and returns its text.
func mailTo(t *testing.T, a *apitest.API, recipient, kind string) string {
	t.Helper()

	text := ""
	until(t, kind+" is mailed to "+recipient, func() bool {
		r := a.Get("/projects/" + a.Project + "/mails").Want(200)
		recipients, kinds, texts := values(r, "recipient"), values(r, "kind"), values(r, "text")
		for i := range recipients {
			if recipients[i] == recipient && kinds[i] == kind {
				text = texts[i]
			}
		}

		return text != ""
	})

	return text
}

// TestEndUserMails has a member mail links to end users.
func TestEndUserMails(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	project := "/projects/" + a.Project
	path := project + "/end-users"

	guest := a.Post(path+"/invite", `{"email": "Guest@example.com", "user_metadata": {"name": "Guest"}}`).Want(201).
		Content("email", "guest@example.com").Content("userMetadata.name", "Guest").Content("emailConfirmedAt", nil)
	if text := mailTo(t, a, "guest@example.com", "invite"); !strings.Contains(text, "type=invite") {
		t.Errorf("got the mail %s", text)
	}
	a.Post(path+"/invite", `{"email": "guest@example.com"}`).Want(201).Content("uuid", guest.Get("uuid"))
	a.Post(path+"/invite", `{"email": "nonsense"}`).Want(422)
	a.Post(path+"/invite", `{`).Want(400)
	a.Post("/projects/"+apitest.MissingUUID+"/end-users/invite", `{"email": "x@example.com"}`).Want(404)

	one := path + "/" + guest.Get("uuid").(string)
	a.Post(one+"/mails", `{"kind": "confirmation"}`).Want(201)
	mailTo(t, a, "guest@example.com", "confirmation")

	ada := path + "/" + a.Create(path, `{"email": "ada@example.com", "is_confirmed": true}`)
	a.Post(path+"/invite", `{"email": "ada@example.com"}`).Want(422).Code("email_exists")
	for kind, word := range map[string]string{"recovery": "type=recovery", "magic_link": "type=magiclink"} {
		a.Post(ada+"/mails", `{"kind": "`+kind+`"}`).Want(201).Content("email", "ada@example.com")
		if text := mailTo(t, a, "ada@example.com", kind); !strings.Contains(text, word) {
			t.Errorf("got the mail %s", text)
		}
	}
	a.Post(ada+"/mails", `{"kind": "confirmation"}`).Want(422).Field("kind")
	a.Post(ada+"/mails", `{"kind": "invite"}`).Want(422).Field("kind")
	a.Post(ada+"/mails", `{`).Want(400)
	a.Post(path+"/"+apitest.MissingUUID+"/mails", `{}`).Want(404)

	phone := path + "/" + a.Create(path, `{"phone": "+491701234567"}`)
	a.Post(phone+"/mails", `{"kind": "recovery"}`).Want(422).Code("no_address")
	a.Get(project + "/audit?action=sendEndUserMail").Want(200).Total(3)
	a.Get(project + "/audit?action=inviteEndUser").Want(200).Total(2)
}

// TestMailPreview fills texts of mails with examples, and mails one to the member.
func TestMailPreview(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	project := "/projects/" + a.Project

	a.Post(project+"/mail-preview", `{"kind": "recovery"}`).Want(200).Content("subject", "Reset your password")
	hostile := a.Post(project+"/mail-preview", `{"kind": "invite", "language": "de", "text": {
		"subject": "Hallo {{ .Data.name }}", "html": "<p>{{ .Token }}</p><script>alert(1)</script>",
		"text": "{{ .Email }}"}}`).
		Want(200).Content("subject", "Hallo Grace").Content("text", "grace@example.com")
	if html := hostile.Get("html").(string); !strings.HasPrefix(html, "<p>123456</p>") {
		t.Errorf("got the HTML %s", html)
	}

	for _, body := range []string{`{"kind": "nonsense"}`, `{"kind": "invite", "language": "no language"}`,
		`{"kind": "invite", "text": {"subject": "", "text": "x"}}`,
		`{"kind": "invite", "text": {"subject": "x", "text": "{{ .Unknown }}"}}`} {
		a.Post(project+"/mail-preview", body).Want(422)
		a.Post(project+"/test-mails", body).Want(422)
	}
	a.Post(project+"/mail-preview", `{`).Want(400)
	a.Post(project+"/test-mails", `{`).Want(400)

	sent := a.Post(project+"/test-mails",
		`{"kind": "recovery", "text": {"subject": "Try", "text": "{{ .Token }}"}}`).Want(201)
	if text := mailTo(t, a, sent.Get("recipient").(string), "recovery"); text != "123456" {
		t.Errorf("got the mail %q", text)
	}

	// A mail server that does not answer is told to the member.
	a.Put(project+"/auth-settings", `{"smtp": {"url": "smtp://127.0.0.1:1", "from": "shop@example.com"}}`).Want(200)
	until(t, "the settings apply", func() bool {
		return a.Post(project+"/test-mails", `{"kind": "recovery"}`).Status == 422
	})
	a.Post(project+"/test-mails", `{"kind": "recovery"}`).Want(422).Code("mail_not_sent")
}

// TestMemberMailLimits checks that mails by members have the limits of mails.
func TestMemberMailLimits(t *testing.T) {
	t.Parallel()

	a := apitest.New(t, limited)
	project := "/projects/" + a.Project
	user := project + "/end-users/" + a.Create(project+"/end-users", `{"email": "ada@example.com"}`)

	a.Post(user+"/mails", `{"kind": "recovery"}`).Want(201)
	a.Post(user+"/mails", `{"kind": "magic_link"}`).Want(429).Code("over_email_send_rate_limit")
	a.Post(project+"/end-users/invite", `{"email": "ada@example.com"}`).Want(429)
	a.Post(project+"/test-mails", `{"kind": "recovery"}`).Want(201)
	a.Post(project+"/test-mails", `{"kind": "recovery"}`).Want(429)
}
