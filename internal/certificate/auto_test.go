package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
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

	"github.com/caddyserver/certmagic"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"

	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/token"
)

const host = "socle.example.com"

// acmeService is pebble, which resolves every name to this machine and looks for the challenge on
// one port.
type acmeService struct {
	directory string
	roots     *x509.CertPool // authorities of the service's own certificate, and of those that it issues
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
	roots.AddCert(server.Certificate())

	return acmeService{server.URL + wfe.DirectoryPath, roots}
}

// newAuto returns a source with a listener for its handshakes. Its service is set later.
func newAuto(t *testing.T, url string) (*Auto, net.Addr) {
	t.Helper()

	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	a := NewAuto(AutoConfig{Host: host, Address: listener.Addr().(*net.TCPAddr), Pool: pool,
		Store: platform.New(pool), Key: bytes.Repeat([]byte{1}, 32), Log: slog.New(slog.DiscardHandler)})

	server := &http.Server{Handler: http.NotFoundHandler(), ErrorLog: discardLog, ReadHeaderTimeout: time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(tls.NewListener(listener, a.TLSConfig())) })
	t.Cleanup(func() {
		_ = server.Close()
		serving.Wait()
	})

	return a, listener.Addr()
}

// startWith starts certmagic with a service.
func (a *Auto) startWith(t *testing.T, s acmeService) *manager {
	t.Helper()

	a.Directory, a.Roots = s.directory, s.roots
	m := a.start()
	t.Cleanup(m.cache.Stop)

	return m
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
// challenge. Both serve the certificate, and a renewed one. It is not parallel: certmagic keeps the
// challenges of a process by host, and other tests have the same one.
func TestOrder(t *testing.T) {
	url := newDatabase(t)
	ordering, orderingAt := newAuto(t, url)
	answering, answeringAt := newAuto(t, url)
	service := newACMEService(t, answeringAt)

	if _, err := handshake(t, orderingAt, service.roots); err == nil {
		t.Error("a handshake succeeded before there was a certificate")
	}

	managers := map[*Auto]*manager{ordering: ordering.startWith(t, service), answering: answering.startWith(t, service)}
	for _, a := range []*Auto{ordering, answering} {
		if err := a.manage(t.Context(), managers[a]); err != nil {
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
	if _, err := handshake(t, orderingAt, nil, challengeProtocol); err == nil ||
		!strings.Contains(err.Error(), "internal error") {
		t.Errorf("a handshake for a challenge that is over: got %v", err)
	}
	if got := ordering.ExpiresAt(); !got.Equal(first.NotAfter) {
		t.Errorf("ExpiresAt: got %s, want %s", got, first.NotAfter)
	}

	stored, err := ordering.Store.Certificates(t.Context(), "certificates")
	if err != nil || len(stored) != 3 {
		t.Fatalf("got the stored values %v, %v", stored, err)
	}
	for _, c := range stored {
		if text, err := ordering.Store.Certificate(t.Context(), c.Name); err != nil ||
			bytes.Contains(text, []byte("PRIVATE KEY")) {
			t.Errorf("the stored %s can be read, or %v", c.Name, err)
		}
	}

	if err := managers[answering].config.RenewCertSync(t.Context(), host, true); err != nil {
		t.Fatal(err)
	}

	// As certmagic does once a certificate is due: another server may have renewed it.
	var renewed *x509.Certificate
	for a, at := range map[*Auto]net.Addr{ordering: orderingAt, answering: answeringAt} {
		managers[a].cache.RemoveManaged([]certmagic.SubjectIssuer{{Subject: host}})
		if _, err := managers[a].config.CacheManagedCertificate(t.Context(), host); err != nil {
			t.Fatal(err)
		}

		got, err := handshake(t, at, service.roots)
		if err != nil || got.Equal(first) || (renewed != nil && !got.Equal(renewed)) {
			t.Fatalf("got another certificate than the renewed one, or %v", err)
		}
		renewed = got
	}
}

// TestAdopt serves a certificate that a release without certmagic has stored, and orders none.
func TestAdopt(t *testing.T) {
	t.Parallel()

	a, at := newAuto(t, newDatabase(t))
	chain, text := newPair(t)
	sealed, err := token.Seal(a.Key, text)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Store.SetCertificate(t.Context(), "certificate "+host, sealed); err != nil {
		t.Fatal(err)
	}

	roots := x509.NewCertPool()
	roots.AddCert(chain)
	m := a.startWith(t, acmeService{directory: "https://127.0.0.1:1/directory"})
	if err := a.manage(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if got, err := handshake(t, at, roots); err != nil || !got.Equal(chain) {
		t.Errorf("got another certificate, or %v", err)
	}
}

// TestOrderFails: a failed challenge names the host and leaves nothing, and Run ends with its
// context.
func TestOrderFails(t *testing.T) {
	t.Parallel()

	a, _ := newAuto(t, newDatabase(t))

	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()

	m := a.startWith(t, newACMEService(t, closed.Addr()))
	if err := a.manage(t.Context(), m); err == nil || !strings.Contains(err.Error(), host) {
		t.Errorf("got %v", err)
	}

	stored, err := a.Store.Certificates(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range stored {
		if isChallenge(c.Name) {
			t.Errorf("the failed challenge %s is still there", c.Name)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Run(ctx); err != nil {
		t.Errorf("Run: got %v", err)
	}
}

// TestLock: a lock excludes other servers until it is released.
func TestLock(t *testing.T) {
	t.Parallel()

	url := newDatabase(t)
	first, _ := newAuto(t, url)
	second, _ := newAuto(t, url)
	if err := first.storage.Lock(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}

	taken := make(chan error, 1)
	go func() { taken <- second.storage.Lock(t.Context(), "x") }()

	for waiting := 0; waiting == 0; {
		select {
		case err := <-taken:
			t.Fatalf("a lock was taken twice, or %v", err)
		default:
		}

		if err := first.Pool.QueryRow(t.Context(), `
			select count(*) from pg_locks
			where locktype = 'advisory' and not granted
				and database = (select oid from pg_database where datname = current_database())`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}

	if err := first.storage.Unlock(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	if err := second.storage.Unlock(t.Context(), "x"); err != nil {
		t.Error(err)
	}
}
