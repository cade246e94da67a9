package authapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/pg"
)

// byMailHook has the hook send_email send all mails.
func byMailHook(s *rules.Settings) {
	hooks("send_email")(s)
	s.ConfirmEmail, s.MailIntervalSeconds = true, 0
}

// mailEvent is the event of the hook send_email.
type mailEvent struct {
	Metadata struct{ Name string }
	User     struct {
		Email    string
		NewEmail string `json:"new_email"`
	}
	Mail map[string]string `json:"email_data"`
}

// sent waits for the event of a mail of a type, and removes it.
func (p *app) sent(kind string) mailEvent {
	p.t.Helper()

	var found []string
	apitest.Until(p.t, kind, func() bool {
		var err error
		found, err = pg.Values[string](p.t.Context(), p.project.Owner(), `
			delete from public.sent where event #>> '{email_data,email_action_type}' = @kind returning event::text`,
			pgx.StrictNamedArgs{"kind": kind})
		if err != nil {
			p.t.Fatal(err)
		}

		return len(found) > 0
	})

	var e mailEvent
	if err := json.Unmarshal([]byte(found[0]), &e); err != nil || len(found) > 1 || e.Metadata.Name != "send-email" {
		p.t.Errorf("got %d events: %s (%v)", len(found), found, err)
	}

	return e
}

// verify opens a session by the code or the link token of a mail.
func (p *app) verify(body string) *reply {
	p.t.Helper()
	return p.post("/verify", body).want(200)
}

// TestMailHook has a function send all kinds of mails. None goes to the mailbox.
func TestMailHook(t *testing.T) {
	t.Parallel()

	p := newApp(t, byMailHook)
	p.exec(`create table public.sent (event jsonb)`)
	p.hook("send_email", `insert into public.sent values (event); return '{}';`)

	p.post("/signup?redirect_to=http://localhost:3000/in", `{"email":"ann@example.com","password":"`+password+`"}`).
		want(200)
	e := p.sent("signup")
	for name, want := range map[string]string{"redirect_to": "http://localhost:3000/in", "token_new": "",
		"token_hash_new": "", "site_url": p.URL + "/projects/" + p.Project + "/auth/v1"} {
		if got, ok := e.Mail[name]; !ok || got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if e.User.Email != "ann@example.com" || len(e.Mail["token"]) != 6 {
		t.Errorf("got %+v", e)
	}
	p.verify(`{"type":"email","token_hash":"` + e.Mail["token_hash"] + `"}`)

	p.post("/recover", `{"email":"ann@example.com"}`).want(200)
	p.verify(`{"type":"recovery","email":"ann@example.com","token":"` + p.sent("recovery").Mail["token"] + `"}`)

	p.post("/otp", `{"email":"ann@example.com"}`).want(200)
	link := p.sent("magiclink").Mail
	session := p.verify(`{"type":"magiclink","token_hash":"` + link["token_hash"] + `"}`).text("access_token")

	p.send("GET", "/reauthenticate", session, "").want(200)
	p.send("PUT", "/user", session, `{"password":"another long one","nonce":"`+
		p.sent("reauthentication").Mail["token"]+`"}`).want(200)

	p.send("POST", "/invite", p.secret, `{"email":"ben@example.com"}`).want(200)
	p.verify(`{"type":"invite","token_hash":"` + p.sent("invite").Mail["token_hash"] + `"}`)

	p.post("/recover", `{"email":"nobody@example.com"}`).want(200)
	if n := p.count(`select count(*)::int from auth.mails`); n != 0 {
		t.Errorf("got %d mails in the mailbox, want none", n)
	}
}

// TestMailHookOfChange asks once for both mails of a change of the address, whose names are
// crossed, and for one mail if there is no present address.
func TestMailHookOfChange(t *testing.T) {
	t.Parallel()

	p := newApp(t, byMailHook)
	p.exec(`create table public.sent (event jsonb)`)
	p.hook("send_email", `insert into public.sent values (event); return '{}';`)

	p.post("/signup", `{"email":"ann@example.com","password":"`+password+`"}`).want(200)
	hash := p.sent("signup").Mail["token_hash"]
	session := p.verify(`{"type":"email","token_hash":"` + hash + `"}`).text("access_token")

	p.send("PUT", "/user", session, `{"email":"new@example.com"}`).want(200)
	p.sent("email_change")
	p.post("/resend", `{"type":"email_change","email":"ann@example.com"}`).want(200)
	e := p.sent("email_change")
	if e.User.Email != "ann@example.com" || e.User.NewEmail != "new@example.com" {
		t.Errorf("got the user %+v", e.User)
	}

	// By the code for the present address, and the link for the new one.
	p.post("/verify", `{"type":"email_change","email":"new@example.com","token":"`+e.Mail["token"]+`"}`).
		fails(403, "otp_expired")
	p.verify(`{"type":"email_change","email":"ann@example.com","token":"` + e.Mail["token"] + `"}`)
	p.verify(`{"type":"email_change","token_hash":"`+e.Mail["token_hash"]+`"}`).equal("user.email", "new@example.com")

	// By the other two.
	p.send("PUT", "/user", session, `{"email":"last@example.com"}`).want(200)
	e = p.sent("email_change")
	p.verify(`{"type":"email_change","token_hash":"` + e.Mail["token_hash_new"] + `"}`)
	p.verify(`{"type":"email_change","email":"last@example.com","token":"`+e.Mail["token_new"]+`"}`).
		equal("user.email", "last@example.com")

	guest := p.post("/signup", `{}`).want(200).text("access_token")
	p.send("PUT", "/user", guest, `{"email":"guest@example.com"}`).want(200)
	e = p.sent("email_change")
	if e.Mail["token_new"] != "" || e.Mail["token_hash_new"] != "" {
		t.Errorf("got tokens for an address that is not there: %v", e.Mail)
	}
	p.verify(`{"type":"email_change","email":"guest@example.com","token":"`+e.Mail["token"]+`"}`).
		equal("user.email", "guest@example.com")
}

// TestMailHookEndpoint asks an endpoint with two secrets, which is not available at first and
// refuses one address. An administrator sees the refusal.
func TestMailHookEndpoint(t *testing.T) {
	t.Parallel()

	const former = "v1,whsec_c29jbGUgc2lnbnMgd2l0aCB0d28ga2V5cw=="
	requests := make(chan request, 10)
	var attempts atomic.Int32
	url := endpoint(t, func(w http.ResponseWriter, r request, event map[string]any) {
		requests <- r
		switch {
		case event["user"].(map[string]any)["email"] == "eve@example.com":
			_, _ = w.Write([]byte(`{"error": {"http_code": 403, "message": "Not you"}}`))
		case attempts.Add(1) == 1:
			w.WriteHeader(http.StatusInternalServerError)
		default:
			_, _ = w.Write([]byte("{}"))
		}
	})

	p := newApp(t, nil)
	if _, err := p.Server.Services().EndUsers.UpdateConfig(t.Context(), p.project.UUID, uuid.MustParse(p.User),
		func(c *rules.Config) {
			byMailHook(&c.Settings)
			c.Hooks["send_email"], c.Secrets["hooks.send_email"] = url, former+"|"+webhookSecret
		}); err != nil {
		t.Fatal(err)
	}

	p.post("/signup", `{"email":"ann@example.com","password":"`+password+`"}`).want(200)
	first, second := <-requests, <-requests
	if first.Header.Get("Webhook-Id") != second.Header.Get("Webhook-Id") {
		t.Error("the second attempt has another webhook-id")
	}

	signatures := strings.Split(second.Header.Get("Webhook-Signature"), " ")
	if len(signatures) != 2 {
		t.Fatalf("got the signatures %q, want two", signatures)
	}
	for i, secret := range []string{former, webhookSecret} {
		second.Header.Set("Webhook-Signature", signatures[i])
		if !second.isSigned(t, secret) {
			t.Errorf("signature %d is wrong", i)
		}
	}

	p.post("/signup", `{"email":"eve@example.com","password":"`+password+`"}`).want(200)
	<-requests
	if m := p.mail("confirmation", "eve@example.com"); m.Error != "Not you" || m.Text != "" {
		t.Errorf("got %+v, want the refusal without the text", m)
	}
}
