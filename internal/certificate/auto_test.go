package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"

	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/platform"
)

const host = "socle.example.com"

// acmeService is pebble, which resolves every name to this machine and looks for the challenge on
// one port.
type acmeService struct {
	directory string
	client    *http.Client
	roots     *x509.CertPool
}

// newACMEService starts pebble. Its challenges go to the port of the address.
func newACMEService(t *testing.T, challenged net.Addr) acmeService {
	t.Helper()

	resolver := &dns.Server{Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		if q.Question[0].Qtype == dns.TypeA {
			m.Answer = append(m.Answer, &dns.A{
				Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET},
				A:   net.IPv4(127, 0, 0, 1),
			})
		}
		_ = w.WriteMsg(m)
	})}

	var err error
	if resolver.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}

	resolving := make(chan struct{})
	go func() {
		defer close(resolving)

		_ = resolver.ActivateAndServe()
	}()
	t.Cleanup(func() {
		_ = resolver.Listener.Close()
		<-resolving
	})

	quiet, store := log.New(io.Discard, "", 0), db.NewMemoryStore()
	authority := ca.New(quiet, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {}})
	validator := va.New(quiet, 0, challenged.(*net.TCPAddr).Port, false, resolver.Listener.Addr().String(), store)
	frontend := wfe.New(quiet, store, validator, authority, []string{"pebble.example"}, false, false, 1, 1)

	server := httptest.NewTLSServer(frontend.Handler())
	t.Cleanup(server.Close)

	roots := x509.NewCertPool()
	roots.AddCert(authority.GetRootCert(0).Cert)

	return acmeService{server.URL + wfe.DirectoryPath, server.Client(), roots}
}

// newAuto returns a source with a listener for its handshakes.
func newAuto(t *testing.T, url string, log *slog.Logger) (*Auto, net.Addr) {
	t.Helper()

	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)

	a := NewAuto(AutoConfig{Host: host, Pool: pool, Store: platform.New(pool),
		Key: bytes.Repeat([]byte{1}, 32), Log: log})

	listener, err := tls.Listen("tcp", "127.0.0.1:0", a.TLSConfig())
	if err != nil {
		t.Fatal(err)
	}

	server := &http.Server{Handler: http.NotFoundHandler(), ErrorLog: discardLog, ReadHeaderTimeout: time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		_ = server.Close()
		serving.Wait()
	})

	return a, listener.Addr()
}

var discardLog = log.New(io.Discard, "", 0)

// handshake returns the certificate that a client gets, verified.
func handshake(t *testing.T, at net.Addr, roots *x509.CertPool, protocols ...string) (*x509.Certificate, error) {
	t.Helper()

	conn, err := tls.Dial("tcp", at.String(), &tls.Config{ServerName: host, RootCAs: roots, NextProtos: protocols})
	if err != nil {
		return nil, err
	}
	defer conn.Close()

	return conn.ConnectionState().PeerCertificates[0], nil
}

func newDatabase(t *testing.T) string {
	t.Helper()

	return pgtest.Clone(t, "certificate", func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)

		return platform.Migrate(ctx, conn)
	})
}

// TestOrder orders a certificate from pebble on one of two servers, while the other one answers the
// challenge. Both serve the certificate, and renew it once.
func TestOrder(t *testing.T) {
	t.Parallel()

	url := newDatabase(t)
	ordering, orderingAt := newAuto(t, url, slog.New(slog.DiscardHandler))
	answering, answeringAt := newAuto(t, url, slog.New(slog.DiscardHandler))
	service := newACMEService(t, answeringAt)
	for _, a := range []*Auto{ordering, answering} {
		a.Directory, a.http = service.directory, service.client
	}

	if _, err := handshake(t, orderingAt, service.roots); err == nil {
		t.Error("a handshake succeeded before there was a certificate")
	}

	for _, a := range []*Auto{ordering, answering} {
		if err := a.refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	first, err := handshake(t, orderingAt, service.roots)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := handshake(t, answeringAt, service.roots); err != nil || !other.Equal(first) {
		t.Errorf("the other server: got another certificate, or %v", err)
	}
	if _, err := handshake(t, orderingAt, nil, "acme-tls/1"); err == nil ||
		!strings.Contains(err.Error(), "internal error") {
		t.Errorf("a handshake for a challenge that is over: got %v", err)
	}

	text, err := ordering.Store.Certificate(t.Context(), "certificate "+host)
	if err != nil || bytes.Contains(text, []byte("PRIVATE KEY")) {
		t.Errorf("the stored key can be read, or %v", err)
	}

	if got := ordering.ExpiresAt(); !got.Equal(first.NotAfter) {
		t.Errorf("ExpiresAt: got %s, want %s", got, first.NotAfter)
	}

	lifetime := first.NotAfter.Sub(first.NotBefore)
	for _, a := range []*Auto{answering, ordering} {
		a.now = func() time.Time { return first.NotBefore.Add(lifetime*2/3 - time.Minute) }
		if a.due() {
			t.Error("the certificate is due before two thirds of its lifetime")
		}

		// The new certificate is as old for this clock, so each refresh orders.
		a.now = func() time.Time { return first.NotBefore.Add(lifetime*2/3 + time.Minute) }
	}

	if err := answering.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}

	second, err := handshake(t, answeringAt, service.roots)
	if err != nil || second.Equal(first) {
		t.Fatalf("renewal: got the same certificate, or %v", err)
	}

	ordering.now = time.Now
	if err := ordering.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ordering.current.Load().Leaf; !got.Equal(second) {
		t.Error("the other server does not serve the renewed certificate")
	}
}

// TestOrderFails checks that a failed challenge names the host, and keeps the certificate.
func TestOrderFails(t *testing.T) {
	t.Parallel()

	a, _ := newAuto(t, newDatabase(t), slog.New(slog.DiscardHandler))

	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()

	service := newACMEService(t, closed.Addr())
	a.Directory, a.http = service.directory, service.client

	if err := a.refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "prove control of "+host) {
		t.Errorf("got %v", err)
	}
	if text, err := a.read(t.Context(), "challenge "+host); text != nil || err != nil {
		t.Errorf("the answer of the failed challenge is still there, or %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if err := a.Run(ctx); err != nil {
		t.Errorf("Run: got %v", err)
	}
	if err := a.refresh(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
