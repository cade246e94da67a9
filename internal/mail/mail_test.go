package mail

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"strings"
	"testing"
	"time"
)

var hello = Message{
	ID:      "1.2",
	To:      "ada@example.com",
	Subject: "Grüße",
	Text:    "Hello Ada,\n\nhttps://example.com/x?a=b\n",
	HTML:    "<p>Hello</p>\n",
}

// sender returns a sender that trusts the certificate of a test server.
func sender(t *testing.T, s *smtpServer, url string) *Sender {
	t.Helper()

	sender, err := New(url, "Söcle <noreply@example.com>", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	if err := sender.client.SetTLSConfig(&tls.Config{
		RootCAs:    s.roots,
		ServerName: "example.com",
		MinVersion: tls.VersionTLS12,
	}); err != nil {
		t.Fatal(err)
	}

	return sender
}

func TestSend(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		server   *smtpServer
		url      string // before host and port
		tls      bool
		login    string
		contains string
	}{
		"plain":                   {url: "smtp://"},
		"TLS where it is offered": {server: &smtpServer{startTLS: true}, url: "smtp://", tls: true},
		"password": {server: &smtpServer{startTLS: true, auth: true}, url: "smtp://us%40er:p%2Fw@",
			tls: true, login: "\x00us@er\x00p/w"},
		"TLS from the start": {server: &smtpServer{implicitTLS: true, auth: true}, url: "smtps://user:pw@",
			tls: true, login: "\x00user\x00pw"},
		"TLS without anyone's name": {server: &smtpServer{implicitTLS: true}, url: "smtps://", tls: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := listen(t, cmp.Or(tt.server, &smtpServer{}))
			if err := sender(t, s, tt.url+s.addr).Send(t.Context(), hello); err != nil {
				t.Fatal(err)
			}

			mails := s.mails()
			if len(mails) != 1 {
				t.Fatalf("got %d mails, want 1", len(mails))
			}

			got := mails[0]
			if got.tls != tt.tls || got.login != tt.login ||
				!strings.HasPrefix(got.from, "FROM:<noreply@example.com>") ||
				!strings.HasPrefix(got.to, "TO:<ada@example.com>") {
				t.Errorf("got %+v", got)
			}

			checkMessage(t, got.data)
		})
	}
}

func checkMessage(t *testing.T, data string) {
	t.Helper()

	m, err := netmail.ReadMessage(strings.NewReader(data))
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}

	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil || subject != hello.Subject {
		t.Errorf("got subject %q, %v", subject, err)
	}

	from, err := m.Header.AddressList("From")
	if err != nil || from[0].Name != "Söcle" || from[0].Address != "noreply@example.com" {
		t.Errorf("got From %v, %v", from, err)
	}
	if m.Header.Get("Message-Id") != "<1.2@example.com>" || m.Header.Get("Auto-Submitted") != "auto-generated" ||
		m.Header.Get("To") != "<ada@example.com>" {
		t.Errorf("got headers %v", m.Header)
	}

	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}

	parts := multipart.NewReader(m.Body, params["boundary"])
	for _, want := range []string{hello.Text, hello.HTML} {
		part, err := parts.NextRawPart()
		if err != nil {
			t.Fatal(err)
		}

		got, err := io.ReadAll(quotedprintable.NewReader(part))
		if err != nil || strings.TrimSpace(strings.ReplaceAll(string(got), "\r\n", "\n")) != strings.TrimSpace(want) {
			t.Errorf("got part %q, %v, want %q", got, err, want)
		}
	}
}

// TestSendFails: permanent failures are distinguished from temporary ones, and the password is sent
// only over trusted TLS.
func TestSendFails(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		server  *smtpServer
		url     string
		refused bool
	}{
		"unknown mailbox": {server: &smtpServer{answers: map[string]string{"RCPT": "550 5.1.1 nobody"}},
			url: "smtp://", refused: true},
		"busy": {server: &smtpServer{answers: map[string]string{"RCPT": "450 4.2.1 later"}},
			url: "smtp://"},
		"refused content": {server: &smtpServer{answers: map[string]string{"DATA": "554 5.7.1 spam"}},
			url: "smtp://", refused: true},
		"wrong password": {
			server: &smtpServer{startTLS: true, auth: true, answers: map[string]string{"AUTH": "535 5.7.8 wrong"}},
			url:    "smtp://user:canary@",
		},
		"no TLS, and a password":     {server: &smtpServer{auth: true}, url: "smtp://user:canary@"},
		"nobody to show it to":       {server: &smtpServer{startTLS: true}, url: "smtp://user:canary@"},
		"TLS where there is no such": {url: "smtps://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := listen(t, cmp.Or(tt.server, &smtpServer{}))
			err := sender(t, s, tt.url+s.addr).Send(t.Context(), hello)
			if err == nil || errors.Is(err, ErrRefused) != tt.refused || strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v, want one that is final: %v", err, tt.refused)
			}

			if got := s.mails(); len(got) != 0 {
				t.Errorf("got mails %+v", got)
			}
		})
	}

	t.Run("bad certificate", func(t *testing.T) {
		t.Parallel()

		s := listen(t, &smtpServer{startTLS: true, auth: true})
		untrusting, err := New("smtp://user:canary@"+s.addr, "a@example.com", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}

		if err := untrusting.Send(t.Context(), hello); err == nil || errors.Is(err, ErrRefused) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("told to stop", func(t *testing.T) {
		t.Parallel()

		s := listen(t, &smtpServer{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cancel()

		if err := sender(t, s, "smtp://"+s.addr).Send(ctx, hello); err == nil || errors.Is(err, ErrRefused) {
			t.Errorf("got %v", err)
		}
	})
}

// TestHeaderInjection: untrusted values never end a header line or start another header.
func TestHeaderInjection(t *testing.T) {
	t.Parallel()

	s := listen(t, &smtpServer{})
	client := sender(t, s, "smtp://"+s.addr)
	for _, to := range []string{"", "nobody", "a@example.com\r\nBcc: all@example.com", "a@example.com\n",
		"Ada <a@example.com>", "a@example.com, b@example.com", "a@example.com>\r\nRCPT TO:<b@example.com",
		"<a@example.com>"} {
		if err := client.Send(t.Context(), Message{
			ID:      "1",
			To:      to,
			Subject: "x",
			Text:    "x",
		}); !errors.Is(err, ErrRefused) {
			t.Errorf("to %q: got %v, want a refusal", to, err)
		}
	}

	for _, name := range []string{
		"Evil\r\nBcc: all@example.com", "Evil\nBcc: all@example.com\n\nbody", "Evil\u2028Bcc: all@example.com",
		"Evil\x00\x85Bcc: all@example.com", "\u202eEvil",
	} {
		m, err := Render("invitation", "ada@example.com", map[string]string{
			"organization": name, "inviter": name, "role": "viewer", "server": "s", "link": "l", "expires": "e",
		})
		if err != nil {
			t.Fatal(err)
		}

		m.ID = "1"
		if err := client.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}

	for _, got := range s.mails() {
		m, err := netmail.ReadMessage(strings.NewReader(got.data))
		if err != nil {
			t.Fatal(err)
		}

		subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
		if m.Header.Get("Bcc") != "" || err != nil || !strings.Contains(subject, "Evil") ||
			strings.ContainsAny(subject, "\r\n\u2028\u202e\x00") {
			t.Errorf("got subject %q and headers %v", subject, m.Header)
		}

		if lines := strings.Split(got.data, "\n"); strings.Contains(strings.Join(lines, "\n"), "\nBcc:") {
			t.Errorf("a line begins with Bcc:\n%s", got.data)
		}
	}

	if got := len(s.mails()); got != 5 {
		t.Errorf("got %d mails, want 5", got)
	}
}

func TestLogged(t *testing.T) {
	t.Parallel()

	var log bytes.Buffer
	s, err := New("", "", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}

	m := hello
	m.Text += "forged\nlevel=ERROR msg=forged\n"
	if err := s.Send(t.Context(), m); err != nil || !s.LogOnly() {
		t.Fatal(err)
	}

	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "to=ada@example.com") ||
		!strings.Contains(got, "https://example.com/x?a=b") {
		t.Errorf("got log %q, want one line with the mail", got)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()

	for _, tt := range [][2]string{
		{"smtp://h", "nobody"}, {"smtp://u:canary%zz@h", "a@example.com"}, {"smtp://h", ""},
		{"smtp://u:canary@:25", "a@example.com"},
	} {
		if _, err := New(tt[0], tt[1], nil); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%v: got %v", tt, err)
		}
	}
}

// TestAddressesBeyondASCII: domains go out in ASCII, local parts beyond it to servers that take
// them only.
func TestAddressesBeyondASCII(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		to, from, want string
		utf8           bool
	}{
		{"ann@bücher.example", "noreply@example.com", "ann@xn--bcher-kva.example", false},
		{"ann@bücher.example", "noreply@bücher.example", "ann@xn--bcher-kva.example", true},
		{"Ann@ｅxample.com", "noreply@bücher.example", "Ann@example.com", false},
		{"änn@bücher.example", "noreply@example.com", "", false},
		{"ann@example.com", "söcle@example.com", "", false},
		{"änn@bücher.example", "noreply@example.com", "änn@xn--bcher-kva.example", true},
	} {
		s := &smtpServer{}
		if !tt.utf8 {
			s.answers = map[string]string{"EHLO": "250 8BITMIME"}
		}
		listen(t, s)

		sender, err := New("smtp://"+s.addr, tt.from, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}

		m := hello
		m.To = tt.to
		err = sender.Send(t.Context(), m)
		if tt.want == "" {
			if !errors.Is(err, ErrNeedsUTF8) || !errors.Is(err, ErrRefused) || len(s.mails()) != 0 {
				t.Errorf("%+v: got %v and %d mails, want ErrNeedsUTF8", tt, err, len(s.mails()))
			}
			continue
		}

		if err != nil || len(s.mails()) != 1 {
			t.Errorf("%+v: got %v and %d mails", tt, err, len(s.mails()))
			continue
		}

		got := s.mails()[0]
		if !strings.HasPrefix(got.to, "TO:<"+tt.want+">") || !strings.Contains(got.data, tt.want) ||
			strings.Contains(got.from+got.to+got.data, "bücher") {
			t.Errorf("%+v: got %s, %s\n%s", tt, got.from, got.to, got.data)
		}
	}
}
