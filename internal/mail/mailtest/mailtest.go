// Package mailtest runs a third-party SMTP server with TLS for tests.
package mailtest

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The server's only user.
const (
	User     = "us@er"
	Password = "p/w"
)

// clients is the third-party software's folder, for tests in folders below internal.
const clients = "../server/testdata/clients"

// Server accepts mails of its user, except to nobody@.
type Server struct {
	Addr  string
	t     testing.TB
	lines *json.Decoder
}

// Mail is a mail that the server has taken.
type Mail struct {
	Secure     bool
	User, From string // User after the authentication mechanism
	To         []string
	Data       string
}

// Start starts a server on a local port, with STARTTLS or implicit TLS.
func Start(t testing.TB, certificate tls.Certificate, implicitTLS bool) *Server {
	t.Helper()

	if _, err := os.Stat(filepath.Join(clients, "node_modules", "smtp-server")); err != nil {
		t.Fatal("the mail server is missing: make clients")
	}

	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}

	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	node := exec.CommandContext(t.Context(), "node", "mailbox.mjs")
	node.Dir = clients
	node.Env = append(os.Environ(), "MAIL_TLS="+map[bool]string{true: "yes", false: "no"}[implicitTLS],
		"MAIL_USER="+User, "MAIL_PASSWORD="+Password, "MAIL_KEY="+text("PRIVATE KEY", key),
		"MAIL_CERTIFICATE="+text("CERTIFICATE", certificate.Certificate[0]))
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

	s := &Server{t: t, lines: json.NewDecoder(bufio.NewReader(out))}
	var listening struct{ Port int }
	if err := s.lines.Decode(&listening); err != nil {
		t.Fatal(err)
	}

	s.Addr = fmt.Sprintf("127.0.0.1:%d", listening.Port)
	return s
}

// Receive waits for the next mail.
func (s *Server) Receive() Mail {
	s.t.Helper()

	var m Mail
	if err := s.lines.Decode(&m); err != nil {
		s.t.Fatal(err)
	}

	return m
}
