package server_test

import (
	"encoding/base32"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/token"
)

// invite invites an address to the organization of a, and returns the link of the mail.
func invite(t *testing.T, a *apitest.API, email string) string {
	t.Helper()

	a.Post("/organizations/"+a.Organization+"/invitations", fmt.Sprintf(`{"email": %q, "role_id": 4}`, email)).Want(201)
	return mailedLink(t, a, email, "/accept-invitation", 1)
}

// members returns the number of members of a's organization.
func members(a *apitest.API) int {
	return len(a.Get("/organizations/" + a.Organization + "/members").Want(200).Get("").([]any))
}

func TestAcceptInvitationBySigningUp(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	email := "new-" + a.Email
	link := invite(t, a, email)

	v := visit(t, a)
	v.a.Send("HEAD", link, "").Want(200)
	v.get(link)
	p := v.get(link).want(200, "invites you to join", "as developer", "Create your account")
	if got := p.inputs()["email"]["value"]; got != email || !strings.Contains(p.inputs()["email"]["tag"], "readonly") {
		t.Errorf("got address %q, want %q, not to be changed", got, email)
	}
	if n := members(a); n != 1 {
		t.Fatalf("GET made a member: got %d", n)
	}

	// Every broken rule stands next to its input. Values stay, except passwords.
	p = p.submit(map[string]string{"username": "a b", "password": "short"}).want(422, "Error:").
		field("username", "Must be 3 to 100 letters, digits, _ or -.").field("password", "Must have at least")
	if got := p.inputs()["username"]["value"]; got != "a b" {
		t.Errorf("got username %q after a failure, want it kept", got)
	}
	if got := p.inputs()["password"]["value"]; got != "" {
		t.Errorf("the page repeats the password %q", got)
	}
	if !strings.Contains(p.inputs()["username"]["tag"], "autofocus") {
		t.Error("the first invalid input has no focus")
	}

	// Another address than the invited one is refused as by the API.
	p.post("/accept-invitation", url.Values{"token": {p.inputs()["token"]["value"]}, "new": {"true"},
		"email": {"other-" + email}, "username": {"x-" + a.User[24:]}, "password": {apitest.Password}}).
		want(422).field("email", "Must be the invited address.")

	name := "new-" + a.User[24:]
	p.submit(map[string]string{"username": name, "password": apitest.Password}).
		want(200, "You are now a member", "socle login --url "+a.URL, `href="/console"`)
	if n := members(a); n != 2 {
		t.Errorf("got %d members, want 2", n)
	}

	p.submit(map[string]string{"username": name + "2", "password": apitest.Password}).
		want(404, "no longer valid")
	v.get(link).want(404, "no longer valid", "already used")

	// The page has left no session behind, and the account works.
	if n := apitest.Value[int64](a, `
		select count(*) from platform.sessions s join platform.users u on u.uuid = s.user_uuid where u.email = $1`, email); n != 0 {
		t.Errorf("got %d sessions, want none", n)
	}

	r := v.a.Post("/users/login", fmt.Sprintf(`{"email": %q, "password": %q}`, email, apitest.Password)).Want(200)
	if actor := apitest.Value[string](a, `select entry::jsonb ->> 'actor' from `+apitest.AuditLog+`
		where entry::jsonb ->> 'action' = 'acceptInvitation' and entry::jsonb ->> 'actor' = $1`, r.Get("uuid")); actor == "" {
		t.Error("the audit log does not name the new user")
	}
}

func TestAcceptInvitationByLoggingIn(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	guest, other := a.SignUp("guest"), a.SignUp("other")
	link := invite(t, a, guest.Email)

	v := visit(t, a)
	p := v.get(link).want(200, "This address has an account.", "Log in and join")

	p.submit(map[string]string{"password": "wrong password"}).want(403, "The e-mail address or the password is wrong.")

	// Another user has the link: the same refusal as the API's.
	token := p.inputs()["token"]["value"]
	other.Post("/invitations/accept", fmt.Sprintf(`{"token": %q}`, token)).Want(403).Code("other_address")
	v.post("/accept-invitation", url.Values{"token": {token}, "email": {other.Email}, "password": {apitest.Password}}).
		want(403, "The invitation is for another e-mail address.")
	if n := members(a); n != 1 {
		t.Fatalf("got %d members, want 1", n)
	}

	p.submit(map[string]string{"password": apitest.Password}).want(200, "You are now a member")
	if n := members(a); n != 2 {
		t.Errorf("got %d members, want 2", n)
	}
	p.submit(map[string]string{"password": apitest.Password}).want(404, "no longer valid")
}

func TestAcceptInvitationWithSecondFactor(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	guest := a.SignUp("guest")
	link := invite(t, a, guest.Email)

	created := guest.Post("/users/me/totp", fmt.Sprintf(`{"password": %q}`, apitest.Password)).Want(201)
	secret, err := base32.StdEncoding.DecodeString(created.Get("secret").(string))
	if err != nil {
		t.Fatal(err)
	}

	recovery := guest.Post("/users/me/totp/confirm",
		fmt.Sprintf(`{"code": %q}`, token.TOTPCode(secret, token.TOTPStep(time.Now())))).Want(200).
		Get("recoveryCodes.0").(string)

	p := visit(t, a).get(link).submit(map[string]string{"password": apitest.Password}).
		want(403).field("code", "Is required: six digits")
	p.submit(map[string]string{"password": apitest.Password, "code": "wrong-recovery"}).
		want(403).field("code", "Is wrong or was used before.")
	if n := members(a); n != 1 {
		t.Errorf("got %d members, want 1", n)
	}

	p.submit(map[string]string{"password": apitest.Password, "code": recovery}).want(200, "You are now a member")
}

func TestExpiredAndForgedLinks(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	link := invite(t, a, "late-"+a.Email)
	a.Exec(`update platform.links set expires_at = now() where email = $1`, "late-"+a.Email)

	v := visit(t, a)
	v.get(link).want(404, "no longer valid", "Ask the person who invited you")
	for _, path := range []string{"/accept-invitation", "/reset-password", "/confirm-email"} {
		for _, token := range []string{"", "x", "socle_link_x", strings.Repeat("x", 5000), "<script>a</script>"} {
			p := v.get(path + "?token=" + url.QueryEscape(token))
			refused(t, p.want(p.Status, "no longer valid"))
			if strings.Contains(p.html, "<script") {
				t.Errorf("%s: the page has a script", path)
			}

			refused(t, v.post(path, url.Values{"token": {token}, "password": {apitest.Password},
				"email": {"x@example.com"}}))
		}
	}
}

func TestResetPassword(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	v := visit(t, a)
	v.get("/forgot-password").want(200).submit(map[string]string{"email": "no address"}).
		want(422).field("email", "Must be an e-mail address")
	v.get("/forgot-password").submit(map[string]string{"email": a.Email}).want(200, "Check your mail", a.Email)
	v.get("/forgot-password").submit(map[string]string{"email": "nobody-" + a.Email}).want(200, "Check your mail")

	link := mailedLink(t, a, a.Email, "/reset-password", 1)
	p := v.get(link).want(200, "Set a new password", a.Email)
	p = p.submit(map[string]string{"password": "short"}).want(422).field("password", "Must have at least")
	a.Get("/users/me").Want(200) // no session has ended yet

	p.submit(map[string]string{"password": "a wholly new password"}).want(200, "Your password is set")
	a.Get("/users/me").Want(401)
	p.submit(map[string]string{"password": "another new password"}).want(422, "no longer valid", "Request another link")
	v.get(link).want(422, "no longer valid")

	v.a.Post("/users/login", fmt.Sprintf(`{"email": %q, "password": "a wholly new password"}`, a.Email)).Want(200)
}

func TestConfirmEmail(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	change := func(email string) string {
		t.Helper()

		a.Post("/users/me/email", fmt.Sprintf(`{"email": %q, "password": %q}`, email, apitest.Password)).Want(200)
		return mailedLink(t, a, email, "/confirm-email", 1)
	}

	taken := "taken-" + a.Email
	link := change(taken)
	v := visit(t, a)
	p := v.get(link).want(200, taken+" becomes the address")
	other := a.SignUp("other")
	a.Exec(`update platform.users set email = $1, email_folded = $1 where uuid = $2`, taken, other.User)
	p.submit(nil).want(409, "The address belongs to another account.")

	fresh := "fresh-" + a.Email
	link = change(fresh)
	v.a.Send("HEAD", link, "").Want(200)
	p = v.get(link).want(200, fresh)
	a.Get("/users/me").Want(200).Content("email", a.Email)
	p.submit(nil).want(200, "Your address is confirmed", fresh)
	a.Get("/users/me").Want(200).Content("email", fresh)
	p.submit(nil).want(422, "no longer valid")
}

// TestConfirmRecipient has an address confirm that it wants mails about responses. A member's own
// address must be confirmed as well: sign-up does not prove it.
func TestConfirmRecipient(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	f := newForm(t, a, `"label": "Name", "name": "name", "type": "text"`)
	to := "Desk-" + f.uuid + "@example.com"
	member := a.Get("/users/me").Want(200).Get("email").(string)
	name := fmt.Sprintf(`{"notify_emails": [%q, %q]}`, to, member)
	f.update(name).Content("unconfirmedEmails", "["+to+" "+member+"]")
	f.update(name)
	first := mailedLink(t, a, to, "/confirm-recipient", 1)

	v := visit(t, a)
	v.get("/confirm-recipient?token=none").want(422, "no longer valid")
	f.update(`{"notify_emails": []}`)
	v.get(first).want(422, "no longer valid") // the form has dropped the address
	f.update(name)

	p := v.get(first).want(200, "Contact <us> are mailed to "+to)
	f.Get("/forms/"+f.uuid).Want(200).Content("unconfirmedEmails", "["+to+" "+member+"]")
	p.submit(nil).want(200, "Your address is confirmed", to)
	f.Get("/forms/"+f.uuid).Want(200).Content("unconfirmedEmails", "["+member+"]")
	p.submit(nil).want(422, "no longer valid")

	other := newForm(t, a)
	other.update(name).Content("unconfirmedEmails", "["+member+"]")
}

// TestSubmissionsOfOthers rejects cross-site and malformed submissions.
func TestSubmissionsOfOthers(t *testing.T) {
	t.Parallel()

	a := apitest.SharedUser(t)
	v := visit(t, a)
	in := url.Values{"email": {"someone-" + a.Email}}
	for name, headers := range map[string][]string{
		"another site":           {"Sec-Fetch-Site: cross-site", "Origin: https://evil.example"},
		"a sibling":              {"Sec-Fetch-Site: same-site", "Origin: https://evil.example"},
		"an old browser":         {"Sec-Fetch-Site:", "Origin: https://evil.example"},
		"a page without address": {"Sec-Fetch-Site:", "Origin: null"},
	} {
		if p := v.post("/forgot-password", in, headers...); p.Status != 403 {
			t.Errorf("%s: got status %d, want 403", name, p.Status)
		}
	}

	v.post("/forgot-password", in, "Content-Type: application/json").want(400, "content type")
	v.post("/forgot-password", url.Values{"email": {strings.Repeat("x", 17<<10)}}).want(400, "larger than")
	v.post("/forgot-password", url.Values{"email": {"a\x00b"}}).want(400, "without NUL")
	v.post("/forgot-password", url.Values{"email": {"a\xffb"}}).want(400)
	v.show(v.a.Send("PUT", "/forgot-password", "")).want(405)
	v.show(v.a.Send("DELETE", "/", "", "Accept: text/html")).want(405)
}

func TestPagesAreLimited(t *testing.T) {
	t.Parallel()

	a := apitest.Empty(t, func(c *config.Config) { c.RateLimit = true })
	v := visit(t, a)
	for range 5 {
		v.get("/forgot-password").submit(map[string]string{"email": "x@example.com"}).want(200)
	}

	p := v.get("/forgot-password").submit(map[string]string{"email": "x@example.com"}).want(429, "Too many attempts")
	if p.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}
