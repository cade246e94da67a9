package enduser

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser/message"
	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/queue"
)

// deliver runs the jobs of mails, each as an attempt, and returns their last failure.
func (u *users) deliver(attempt int) (failure error) {
	u.t.Helper()

	for i, args := range takeJobs[mailArgs](u) {
		job := &queue.Job[mailArgs]{ID: int64(i), Args: args, Attempt: attempt, CreatedAt: time.Unix(1, 0)}
		if err := u.service.sendMail(u.t.Context(), job); err != nil {
			failure = err
		}
	}

	return failure
}

// mailbox returns the mails of the mailbox, the latest first.
func (u *users) mailbox() []message.Mail {
	u.t.Helper()

	mails, err := pg.All[message.Mail](u.t.Context(), u.Rows(), `
		select id as uuid, recipient, kind, subject, html, body as text, error, created_at from auth.mails
		order by created_at desc, id desc`, pgx.StrictNamedArgs{})
	ok(u.t, err)

	return mails
}

// TestMailsOfJobs delivers the mails of requests. A link leads where the request says if the
// settings allow it.
func TestMailsOfJobs(t *testing.T) {
	t.Parallel()

	u := newUsers(t, func(c *rules.Config) {
		c.RedirectURLs = []string{"https://*.example.com/**"}
		c.Mails = map[string]rules.MailText{"recovery.de": {Subject: "Passwort von {{ .Data.name }}",
			Text: "{{ .ConfirmationURL }}"}}
	})
	ann := u.user("ann@example.com")
	metadata := AdminUpdate{UserMetadata: json.RawMessage(`{"name":"Ann","language":"de_AT"}`)}
	_, err := u.UpdateUser(t.Context(), ann.ID, metadata, home)
	ok(t, err)

	for redirect, want := range map[string]string{"https://app.example.com/x": "https%3A%2F%2Fapp.example.com%2Fx",
		"https://evil.example.org/": "http%3A%2F%2Flocalhost%3A3000"} {
		ok(t, u.Recover(t.Context(), LinkRequest{Email: ann.Email, RedirectTo: redirect}, home))
		ok(t, u.deliver(1))
		m := u.mailbox()[0]
		if m.Recipient != ann.Email || m.Kind != "recovery" || m.Subject != "Passwort von Ann" ||
			!strings.HasPrefix(m.Text, u.Issuer()+"/verify?token=") ||
			!strings.HasSuffix(m.Text, "&redirect_to="+want) {
			t.Errorf("%s: got %+v", redirect, m)
		}
	}

	// The same request for an unknown address makes no mail, nor does a token that was used.
	n := len(u.mailbox())
	ok(t, u.Recover(t.Context(), LinkRequest{Email: "nobody@example.com"}, home))
	ok(t, u.SendCode(t.Context(), LinkRequest{Email: ann.Email}, home))
	u.exec(`delete from auth.one_time_tokens`)
	ok(t, u.deliver(1))
	if got := len(u.mailbox()); got != n {
		t.Errorf("got %d mails, want %d", got, n)
	}
}

// TestMessagesOfJobs delivers text messages, as long as their codes are valid.
func TestMessagesOfJobs(t *testing.T) {
	t.Parallel()

	u := newUsers(t, withPhones)
	ask := func() smsArgs {
		t.Helper()

		ok(t, u.SendPhoneCode(t.Context(), PhoneCodeRequest{Phone: "+491701", CreateUser: true}, home))
		return takeJobs[smsArgs](u)[0]
	}
	deliver := func(args smsArgs) {
		t.Helper()
		ok(t, u.service.sendSMS(t.Context(), &queue.Job[smsArgs]{Args: args, Attempt: 1}))
	}

	args := ask()
	deliver(args)
	m := u.mailbox()
	if len(m) != 1 || m[0].Recipient != "+491701" || m[0].Kind != "sms" {
		t.Fatalf("got the mailbox %+v, want the message", m)
	}
	_, err := u.verifyPhone("sms", "491701", strings.TrimPrefix(m[0].Text, "Your code is "))
	ok(t, err)

	deliver(args) // the code was used
	former := ask()
	ask()
	deliver(former) // replaced
	if got := u.mailbox(); len(got) != 1 {
		t.Errorf("got the mailbox %+v, want no more messages", got)
	}
}

// TestMailHook has a hook send the mails. It gets both codes of a change of the address at once,
// and a mail that it declines for good is not repeated.
func TestMailHook(t *testing.T) {
	t.Parallel()

	status := http.StatusOK
	events := make(chan mailEvent, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var event mailEvent
		if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
			t.Error(err)
		}
		events <- event
		w.Header().Set("Content-Type", "application/json")
		if status != http.StatusOK {
			_, _ = w.Write([]byte(`{"error":{"http_code":422,"message":"no such mailbox"}}`))
			return
		}
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(server.Close)

	u := newUsers(t, func(c *rules.Config) {
		c.ConfirmEmail = true
		c.Hooks = rules.Hooks{rules.HookMail: server.URL}
		c.Secrets["hooks."+rules.HookMail] = "v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	})
	who := u.session(u.user("ann@example.com")).identity()
	_, err := u.UpdateSelf(t.Context(), who, Update{Email: "anna@example.com"}, home)
	ok(t, err)
	ok(t, u.deliver(1))
	event := <-events
	_, err = u.verifyCode("email_change", "ann@example.com", event.Mail.Token)
	ok(t, err)
	_, err = u.verifyCode("email_change", "anna@example.com", event.Mail.TokenNew)
	ok(t, err)
	if len(events) != 0 || event.Mail.EmailActionType != "email_change" || event.Mail.SiteURL != u.Issuer() ||
		event.Metadata.Name != "send-email" || event.User.ID != who.User {
		t.Errorf("got %+v and %d more events", event, len(events))
	}

	status = http.StatusUnprocessableEntity
	ok(t, u.Recover(t.Context(), LinkRequest{Email: "anna@example.com"}, home))
	if err := u.deliver(1); err == nil || !isDeclined(err) {
		t.Errorf("a declined mail: got %v", err)
	}
	if got := u.mailbox(); len(got) != 1 || got[0].Error != "no such mailbox" || got[0].Text != "" {
		t.Errorf("got the mailbox %+v, want the failure", got)
	}
}
