package message

import (
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/textproto"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/mail"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// newOutbox returns the outbox of a new project. The install has no mail server.
func newOutbox(t *testing.T, change func(*rules.Config)) *Outbox {
	t.Helper()

	c := rules.Config{Settings: rules.Default(), Secrets: rules.Secrets{}}
	change(&c)
	log := slog.New(slog.DiscardHandler)
	install, err := mail.New("", "", log)
	if err != nil {
		t.Fatal(err)
	}

	client := outbound.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	o, err := New(Config{Project: projectdbtest.New(t), Settings: c, Install: install, Client: client, Senders: client,
		Log: log})
	if err != nil {
		t.Fatal(err)
	}

	return o
}

// list returns the mailbox.
func (o *Outbox) list(t *testing.T) []Mail {
	t.Helper()

	mails, total, err := Mailbox{o.Project}.List(t.Context(), pg.Page{Number: 1, Limit: 1000, Sort: "createdAt"})
	if err != nil || int(total) != len(mails) {
		t.Fatalf("got %d of %d mails, %v", len(mails), total, err)
	}

	return mails
}

// delivery is a mail that an SMTP server has received.
type delivery struct{ from, to, data string }

// receiveMails returns the address of an SMTP server without TLS, and its mails. It refuses those
// to nobody@.
func receiveMails(t *testing.T) (address string, mails <-chan delivery) {
	t.Helper()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })

	deliveries := make(chan delivery, 10)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			receiveMail(textproto.NewConn(conn), deliveries)
		}
	}()

	return l.Addr().String(), deliveries
}

// receiveMail serves a session of SMTP (RFC 5321).
func receiveMail(c *textproto.Conn, to chan<- delivery) {
	defer c.Close()

	var d delivery
	reply := "220 ready"
	for {
		if c.PrintfLine("%s", reply) != nil {
			return
		}

		line, err := c.ReadLine()
		if err != nil {
			return
		}

		reply = "250 ok"
		switch verb, rest, _ := strings.Cut(line, ":"); {
		case strings.HasPrefix(line, "QUIT"):
			_ = c.PrintfLine("221 bye")
			return
		case strings.HasPrefix(line, "DATA"):
			_ = c.PrintfLine("354 go on")
			data, err := io.ReadAll(c.DotReader())
			if err != nil {
				return
			}
			d.data = string(data)
			to <- d
		case verb == "MAIL FROM":
			d.from = rest
		case verb == "RCPT TO":
			if d.to = rest; strings.HasPrefix(rest, "<nobody@") {
				reply = "550 no such mailbox"
			}
		}
	}
}

// TestSendMail sends mails by the project's own server. The mailbox has the failures.
func TestSendMail(t *testing.T) {
	t.Parallel()

	address, mails := receiveMails(t)
	o := newOutbox(t, func(c *rules.Config) {
		c.SMTP = rules.SMTP{URL: "smtp://" + address, From: "Notes <notes@example.com>"}
	})
	if o.UsesInstall() {
		t.Error("mails go by the server of the install")
	}

	m := mail.Message{ID: "1", To: "ann@example.com", Subject: "Welcome", Text: "code"}
	if err := o.SendMail(t.Context(), Attempt{ID: "1", Number: 1, Kind: "invite", Recipient: m.To}, m); err != nil {
		t.Fatal(err)
	}
	if d := <-mails; !strings.Contains(d.from, "<notes@example.com>") ||
		!strings.EqualFold(d.to, "<ann@example.com>") ||
		!strings.Contains(d.data, "Subject: Welcome\n") || !strings.Contains(d.data, `"Notes" <notes@example.com>`) {
		t.Errorf("got %+v", d)
	}
	if got := o.list(t); len(got) != 0 {
		t.Errorf("got the mailbox %+v, want none", got)
	}

	refused := Attempt{ID: "2", Number: 1, Kind: "invite", Recipient: "nobody@example.com"}
	m.To = refused.Recipient
	if err := o.SendMail(t.Context(), refused, m); !IsPermanent(err) {
		t.Errorf("a refused recipient: got %v, want a permanent failure", err)
	}
	if got := o.list(t); len(got) != 1 || got[0].Recipient != m.To || got[0].Text != "" ||
		!strings.Contains(got[0].Error, "no such mailbox") {
		t.Errorf("got the mailbox %+v, want the failure without the text", got)
	}

	// An attempt that succeeds ends the failures of those before.
	refused.Number = 2
	o.Record(t.Context(), refused, nil)
	if got := o.list(t); len(got) != 0 {
		t.Errorf("got the mailbox %+v, want none", got)
	}
}

// TestMailbox has the mails and messages of a project without servers, a number of them at most.
func TestMailbox(t *testing.T) {
	t.Parallel()

	o := newOutbox(t, func(*rules.Config) {})
	m := mail.Message{To: "ann@example.com", Subject: "Welcome", Text: "code", HTML: "<p>code"}
	if err := o.SendMail(t.Context(), Attempt{Number: 1, Kind: "invite"}, m); err != nil {
		t.Fatal(err)
	}
	if err := o.SendSMS(t.Context(), 1, SMS{Phone: "491701", Code: "123456"}); err != nil {
		t.Fatal(err)
	}

	got := o.list(t)
	if len(got) != 2 || got[0].Subject != "Welcome" || got[0].HTML != m.HTML || got[0].Kind != "invite" ||
		got[1].Recipient != "+491701" || got[1].Text != "Your code is 123456" || got[1].Kind != "sms" {
		t.Fatalf("got the mailbox %+v", got)
	}
	if one, err := (Mailbox{o.Project}).Get(t.Context(), got[0].UUID); err != nil || one != got[0] {
		t.Errorf("got %+v, %v", one, err)
	}

	if _, err := o.Project.EndUsers().Exec(t.Context(), `
		insert into auth.mails (id, recipient, kind, subject, html, body, error, created_at)
		select gen_random_uuid(), 'x', 'invite', '', '', '', '', now() from generate_series(1, $1)`, maxMails); err != nil {
		t.Fatal(err)
	}
	if err := o.SendSMS(t.Context(), 1, SMS{Phone: "491702", Code: "123456"}); err != nil {
		t.Fatal(err)
	}
	if all := o.list(t); len(all) != maxMails || all[0].Recipient == "ann@example.com" {
		t.Errorf("got %d mails, want the newest %d", len(all), maxMails)
	}
}

// serve starts a server that keeps its requests and answers with a status.
func serve(t *testing.T, status int) (address string, requests chan *http.Request) {
	t.Helper()

	requests = make(chan *http.Request, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		requests <- r
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)

	return server.URL, requests
}

// TestTwilio sends messages by Twilio's interface.
func TestTwilio(t *testing.T) {
	t.Parallel()

	root, requests := serve(t, http.StatusCreated)
	o := newOutbox(t, func(c *rules.Config) {
		c.Secrets[rules.SecretTwilio] = "token"
		c.SMS = rules.SMS{Sender: rules.SenderTwilio, TwilioURL: root + "/", TwilioAccountSID: "AC1",
			TwilioFrom: "+15005550006", Text: "{{ .Token }} for {{ .SiteURL }}"}
	})
	for channel, to := range map[string]string{"": "+491701", ChannelWhatsApp: "whatsapp:+491701"} {
		m := SMS{ID: uuid.New(), Phone: "491701", Code: "123456", Channel: channel}
		if err := o.SendSMS(t.Context(), 1, m); err != nil {
			t.Fatal(err)
		}

		r := <-requests
		user, token, _ := r.BasicAuth()
		body, _ := io.ReadAll(r.Body) // a string
		form, err := url.ParseQuery(string(body))
		if err != nil || r.URL.Path != "/2010-04-01/Accounts/AC1/Messages.json" || user != "AC1" || token != "token" ||
			form.Get("To") != to || form.Get("From") != strings.Replace(to, "+491701", "+15005550006", 1) ||
			form.Get("Body") != "123456 for http://localhost:3000" {
			t.Errorf("channel %q: got %s %s %s", channel, r.URL, r.Header, body)
		}
	}

	o.Settings.SMS.TwilioMessagingServiceSID = "MG1"
	if err := o.SendSMS(t.Context(), 1, SMS{Phone: "491701", Code: "123456"}); err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll((<-requests).Body) // a string
	form, err := url.ParseQuery(string(body))
	if err != nil || form.Get("MessagingServiceSid") != "MG1" || form.Has("From") {
		t.Errorf("by a messaging service: got %s", body)
	}
}

// TestSMSHook sends a message by the project's hook. A failure that another attempt may repair is
// in the mailbox until one succeeds.
func TestSMSHook(t *testing.T) {
	t.Parallel()

	address, requests := serve(t, http.StatusServiceUnavailable)
	o := newOutbox(t, func(c *rules.Config) {
		c.Secrets[rules.SecretSMSHook] = "v1,whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
		c.SMS = rules.SMS{Sender: rules.SenderHook, HookURL: address}
	})
	m := SMS{ID: uuid.New(), User: map[string]string{"phone": "491701"}, Phone: "491701", Code: "123456"}
	if err := o.SendSMS(t.Context(), 1, m); err == nil || IsPermanent(err) {
		t.Errorf("got %v, want a failure that another attempt may repair", err)
	}

	r := <-requests
	var event struct {
		User struct{ Phone string }
		SMS  struct{ OTP, Phone string }
	}
	if err := json.NewDecoder(r.Body).Decode(&event); err != nil || event.User.Phone != "491701" ||
		event.SMS.Phone != "491701" || event.SMS.OTP != "123456" || r.Header.Get("Webhook-Id") != m.ID.String() ||
		r.Header.Get("Webhook-Signature") == "" {
		t.Errorf("got %+v, %v, %v", event, r.Header, err)
	}
	if got := o.list(t); len(got) != 1 || got[0].Error != "status 503" || got[0].Recipient != "+491701" {
		t.Errorf("got the mailbox %+v, want the failure", got)
	}

	o.Settings.Secrets[rules.SecretSMSHook] = "no secret"
	if err := o.SendSMS(t.Context(), 2, m); !IsPermanent(err) {
		t.Errorf("without a secret: got %v, want a permanent failure", err)
	}
}
