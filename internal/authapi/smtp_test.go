package authapi_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/mail/mailtest"
)

// delivery is a mail that an SMTP server has received.
type delivery struct{ from, to, data string }

// receiveMails returns the address of an SMTP server without TLS, and its mails.
func receiveMails(t *testing.T) (address string, received <-chan delivery) {
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
			d.to = rest
		}

		reply = "250 ok"
	}
}

// TestOwnMailServer: a project's mails go by its server, in the language of the user.
func TestOwnMailServer(t *testing.T) {
	t.Parallel()

	address, received := receiveMails(t)
	text := func(subject string) rules.MailText {
		return rules.MailText{Subject: subject, Text: "{{ .Token }}"}
	}
	p := newApp(t, func(s *rules.Settings) {
		s.SMTP = rules.SMTP{URL: "smtp://" + address, From: "Notes <notes@example.com>"}
		s.Mails = map[string]rules.MailText{"confirmation": text("Welcome"), "confirmation.de": text("Willkommen"),
			"confirmation.pt-br": text("Bem-vindo")}
	})

	for language, subject := range map[string]string{"": "Welcome", "de_AT": "Willkommen", "pt": "Welcome",
		"pt-BR": "Bem-vindo"} {
		recipient := "user" + language + "@example.com"
		p.post("/otp", `{"email":"`+recipient+`","data":{"language":"`+language+`"}}`).want(200)

		d := <-received
		if !strings.Contains(d.from, "<notes@example.com>") || !strings.EqualFold(d.to, "<"+recipient+">") ||
			!strings.Contains(d.data, "Subject: "+subject+"\n") ||
			!strings.Contains(d.data, `"Notes" <notes@example.com>`) {
			t.Errorf("language %q: got %+v, want the subject %s", language, d, subject)
		}
	}

	p.Get("/projects/" + p.Project + "/mails").Want(200).Total(0)
}

// selfSigned returns a certificate for 127.0.0.1 that no one has signed.
func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}

	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestOwnMailServerTLS: a mail waits while the certificate of the project's server is not good, and
// the project's administrators see why. It goes to a server with a good one, and the password too.
func TestOwnMailServerTLS(t *testing.T) {
	t.Parallel()

	for scheme, implicit := range map[string]bool{"smtp": false, "smtps": true} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()

			bad, good := mailtest.Start(t, selfSigned(t), implicit), mailtest.Start(t, trusted, implicit)
			p := newApp(t, nil)
			settings, mails := "/projects/"+p.Project+"/auth-settings", "/projects/"+p.Project+"/mails"
			use := func(server *mailtest.Server) {
				p.Put(settings, `{"smtp": {"url": "`+scheme+"://"+url.PathEscape(mailtest.User)+"@"+server.Addr+`",
					"from": "Notes <notes@example.com>"}, "secrets": {"smtp": "`+mailtest.Password+`"}}`).Want(200)
			}

			unsent := func() string { return fmt.Sprint(p.Get(mails).Want(200).Metadata("total")) }

			use(bad)
			p.post("/otp", `{"email":"ann@example.com"}`).want(200)
			apitest.Until(t, "the failure is recorded", func() bool { return unsent() == "1" })

			got := p.Get(mails).Want(200).Total(1).Content("0.recipient", "ann@example.com").
				Content("0.kind", "confirmation").Content("0.html", "").Content("0.text", "")
			const untrusted = "certificate signed by unknown authority"
			if text, _ := got.Get("0.error").(string); !strings.Contains(text, untrusted) {
				t.Errorf("got the error %q, want %s", text, untrusted)
			}

			use(good)
			m := good.Receive()
			if !m.Secure || !strings.HasSuffix(m.User, " "+mailtest.User) || m.From != "notes@example.com" ||
				len(m.To) != 1 || m.To[0] != "ann@example.com" {
				t.Errorf("got %+v", m)
			}
			apitest.Until(t, "the failure is removed", func() bool { return unsent() == "0" })

			// The server refuses a recipient for good.
			p.post("/otp", `{"email":"nobody@example.com"}`).want(200)
			apitest.Until(t, "the refusal is recorded", func() bool { return unsent() == "1" })
			if text, _ := p.Get(mails).Want(200).Get("0.error").(string); !strings.Contains(text, "no such mailbox") {
				t.Errorf("got the error %q, want that of the server", text)
			}
		})
	}
}

func TestOwnMailServerSettings(t *testing.T) {
	t.Parallel()

	p := newApp(t, nil)
	path := "/projects/" + p.Project + "/auth-settings"
	for _, smtp := range []string{
		`{"url": "https://smtp.example.com", "from": "a@example.com"}`,
		`{"url": "smtp://", "from": "a@example.com"}`,
		`{"url": "smtps://user:password@smtp.example.com", "from": "a@example.com"}`,
		`{"url": "smtps://user@smtp.example.com", "from": "a@example.com"}`,
		`{"url": "smtps://smtp.example.com/path", "from": "a@example.com"}`,
		`{"url": "smtps://smtp.example.com", "from": "nobody"}`,
		`{"url": "smtps://smtp.example.com"}`,
	} {
		p.Put(path, `{"smtp": `+smtp+`}`).Want(422).Field("smtp")
	}

	p.Put(path, `{"smtp": {"url": "smtps://user@smtp.example.com:465", "from": "a@example.com"},
		"secrets": {"smtp": "s3cret"}}`).
		Want(200).Content("smtp.url", "smtps://user@smtp.example.com:465").Content("secretNames.0", "smtp")
	p.Put(path, `{"mails": {"recovery.de!": {"subject": "x", "html": "x", "text": ""}}}`).Want(422).
		Field("mails.recovery.de!")
	p.Put(path, `{"smtp": {}}`).Want(200)
}
