package mail

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// scripts is the folder of the third-party software for tests.
const scripts = "../server/testdata/clients"

// independentServer is a third-party SMTP server.
type independentServer struct {
	smtpServer
	lines *json.Decoder
}

func startIndependentServer(t *testing.T, implicitTLS string) *independentServer {
	t.Helper()

	if _, err := os.Stat(filepath.Join(scripts, "node_modules", "smtp-server")); err != nil {
		t.Fatal("the mail server is missing: make clients")
	}

	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()

	key, err := x509.MarshalPKCS8PrivateKey(web.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}

	node := exec.CommandContext(t.Context(), "node", "mailbox.mjs")
	node.Dir = scripts
	node.Env = append(os.Environ(), "MAIL_TLS="+implicitTLS, "MAIL_USER=us@er", "MAIL_PASSWORD=p/w",
		"MAIL_KEY="+string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
		"MAIL_CERTIFICATE="+string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})))
	node.Stderr = os.Stderr

	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	in, err := node.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := node.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		in.Close()
		_ = node.Wait()
	})

	m := &independentServer{lines: json.NewDecoder(bufio.NewReader(out))}
	m.roots = x509.NewCertPool()
	m.roots.AddCert(web.Certificate())

	var listening struct{ Port int }
	if err := m.lines.Decode(&listening); err != nil {
		t.Fatal(err)
	}

	m.addr = fmt.Sprintf("127.0.0.1:%d", listening.Port)
	return m
}

// TestIndependentServer: an independent server accepts mails over STARTTLS and over implicit TLS,
// with the password only.
func TestIndependentServer(t *testing.T) {
	t.Parallel()

	for scheme, implicit := range map[string]string{"smtp": "no", "smtps": "yes"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()

			m := startIndependentServer(t, implicit)
			login := sender(t, &m.smtpServer, scheme+"://us%40er:p%2Fw@"+m.addr)
			for range 2 { // one SMTP session each
				if err := login.Send(t.Context(), hello); err != nil {
					t.Fatal(err)
				}

				var got struct {
					Secure     bool
					User, From string
					To         []string
					Data       string
				}
				if err := m.lines.Decode(&got); err != nil {
					t.Fatal(err)
				}

				if !got.Secure || got.From != "noreply@example.com" || fmt.Sprint(got.To) != "[ada@example.com]" ||
					len(got.User) < 6 || got.User[len(got.User)-5:] != "us@er" {
					t.Errorf("got %+v", got)
				}

				checkMessage(t, got.Data)
			}

			lost := hello
			lost.To = "nobody@example.com"
			if err := login.Send(t.Context(), lost); !errors.Is(err, ErrRefused) {
				t.Errorf("got %v for an unknown address, want ErrRefused", err)
			}

			for _, wrong := range []string{scheme + "://us%40er:wrong@", scheme + "://"} {
				if err := sender(t, &m.smtpServer, wrong+m.addr).Send(t.Context(), hello); err == nil {
					t.Errorf("Send to %s = nil, want an error", wrong)
				}
			}

			untrusting := sender(t, &m.smtpServer, scheme+"://us%40er:p%2Fw@"+m.addr)
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
