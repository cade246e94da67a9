package mail

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"sync"
	"testing"
)

// delivery is a mail as the server received it.
type delivery struct {
	from, to, data string
	tls            bool
	login          string // user and password, each after a NUL
}

// smtpServer is an SMTP server on a local port.
type smtpServer struct {
	addr, host, port string
	roots            *x509.CertPool
	certificate      tls.Certificate
	startTLS, auth   bool
	implicitTLS      bool
	answers          map[string]string // replies to commands that replace the default ones

	mu       sync.Mutex
	received []delivery
}

func listen(t *testing.T, s *smtpServer) *smtpServer {
	t.Helper()

	web := httptest.NewTLSServer(nil) // for its certificate
	s.certificate = web.TLS.Certificates[0]
	s.roots = x509.NewCertPool()
	s.roots.AddCert(web.Certificate())
	web.Close()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	s.addr = l.Addr().String()
	s.host, s.port, _ = net.SplitHostPort(s.addr)

	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}

			wg.Go(func() { s.serve(c) })
		}
	})

	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})

	return s
}

// mails returns the mails received so far.
func (s *smtpServer) mails() []delivery {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.received
}

func (s *smtpServer) serve(conn net.Conn) {
	var c delivery
	if s.implicitTLS {
		conn, c.tls = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{s.certificate}}), true
	}

	defer func() { conn.Close() }()

	text := textproto.NewConn(conn)
	reply := func(line string) { _ = text.PrintfLine("%s", line) }
	reply("220 localhost")

	for {
		line, err := text.ReadLine()
		if err != nil {
			return
		}

		command, rest, _ := strings.Cut(line, " ")
		if answer, ok := s.answers[command]; ok {
			reply(answer)
			continue
		}

		switch command {
		case "EHLO":
			reply("250-localhost")

			if s.startTLS && !c.tls {
				reply("250-STARTTLS")
			}
			if s.auth {
				reply("250-AUTH PLAIN LOGIN")
			}

			reply("250-8BITMIME")
			reply("250 SMTPUTF8")
		case "STARTTLS":
			reply("220 go on")
			conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{s.certificate}})
			text, c.tls = textproto.NewConn(conn), true
		case "AUTH":
			_, secret, _ := strings.Cut(rest, " ")
			plain, _ := base64.StdEncoding.DecodeString(secret)
			c.login = string(plain)
			reply("235 welcome")
		case "MAIL":
			c.from = rest
			reply("250 ok")
		case "RCPT":
			c.to = rest
			reply("250 ok")
		case "DATA":
			reply("354 go on")

			lines, err := text.ReadDotLines()
			if err != nil {
				return
			}

			c.data = strings.Join(lines, "\n")
			s.mu.Lock()
			s.received = append(s.received, c)
			s.mu.Unlock()
			reply("250 taken")
		case "QUIT":
			reply("221 bye")
			return
		default: // NOOP, RSET
			reply("250 ok")
		}
	}
}
