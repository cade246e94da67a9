package mail

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/mail/mailtest"
)

// TestIndependentServer: an independent server accepts mails over STARTTLS and over implicit TLS,
// with the password only.
func TestIndependentServer(t *testing.T) {
	t.Parallel()

	web := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(web.Close)
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())

	for scheme, implicit := range map[string]bool{"smtp": false, "smtps": true} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()

			m := mailtest.Start(t, web.TLS.Certificates[0], implicit)
			s := &smtpServer{addr: m.Addr, roots: roots}
			login := sender(t, s, scheme+"://us%40er:p%2Fw@"+m.Addr)
			for range 2 { // one SMTP session each
				if err := login.Send(t.Context(), hello); err != nil {
					t.Fatal(err)
				}

				if got := m.Receive(); !got.Secure || got.From != "noreply@example.com" ||
					fmt.Sprint(got.To) != "[ada@example.com]" || !strings.HasSuffix(got.User, " "+mailtest.User) {
					t.Errorf("got %+v", got)
				} else {
					checkMessage(t, got.Data)
				}
			}

			lost := hello
			lost.To = "nobody@example.com"
			if err := login.Send(t.Context(), lost); !errors.Is(err, ErrRefused) {
				t.Errorf("got %v for an unknown address, want ErrRefused", err)
			}

			for _, wrong := range []string{scheme + "://us%40er:wrong@", scheme + "://"} {
				if err := sender(t, s, wrong+m.Addr).Send(t.Context(), hello); err == nil {
					t.Errorf("Send to %s = nil, want an error", wrong)
				}
			}

			untrusting := sender(t, s, scheme+"://us%40er:p%2Fw@"+m.Addr)
			if err := untrusting.client.SetTLSConfig(
				&tls.Config{ServerName: "example.com", MinVersion: tls.VersionTLS12},
			); err != nil {
				t.Fatal(err)
			}

			if err := untrusting.Send(t.Context(), hello); err == nil {
				t.Error("the password was shown to a server whose certificate is not good")
			}
		})
	}
}
