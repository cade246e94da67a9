package authapi_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/mail/mailtest"
)

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
