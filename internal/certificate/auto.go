package certificate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/crypto/acme"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/token"
)

const (
	orderLock    = 0x50c1e_0008    // arbitrary key of the advisory lock for orders
	orderTimeout = 5 * time.Minute // for an order, its challenges included

	checkInterval = time.Minute     // interval of checks for a certificate that is due, or renewed elsewhere
	minRetry      = 2 * time.Minute // backoff of failed orders; Let's Encrypt allows five an hour
	maxRetry      = time.Hour

	challengeTTL     = time.Second // TTL of a challenge that was read: anyone can ask for it
	challengeTimeout = 5 * time.Second
)

// AutoConfig configures an [Auto].
type AutoConfig struct {
	Host      string // of the certificate
	Directory string // URL of the ACME service
	Pool      *pgxpool.Pool
	Store     *platform.Store
	Key       []byte // encrypts stored certificates and keys
	Log       *slog.Logger
}

// Auto provides a certificate of an ACME service, and renews it after two thirds of its lifetime.
type Auto struct {
	AutoConfig
	current atomic.Pointer[tls.Certificate] // nil: none yet
	http    *http.Client                    // nil: the default client; for tests
	now     func() time.Time

	challenge pendingChallenge
}

// pendingChallenge is the certificate that answers the challenge of an order on any server.
type pendingChallenge struct {
	mu          sync.Mutex
	certificate *tls.Certificate // nil: none pending
	readAt      time.Time
}

// NewAuto returns a source. It has no certificate before Run is called.
func NewAuto(c AutoConfig) *Auto { return &Auto{AutoConfig: c, now: time.Now} }

// TLSConfig returns the configuration of the listener. A handshake fails while there is no
// certificate.
func (a *Auto) TLSConfig() *tls.Config {
	return tlsConfig(func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if slices.Equal(hello.SupportedProtos, []string{acme.ALPNProto}) {
			return a.pendingChallenge(hello.Context())
		}

		current := a.current.Load()
		if current == nil {
			return nil, errors.New("there is no certificate yet")
		}

		return current, nil
	}, acme.ALPNProto)
}

// ExpiresAt returns the end of the certificate's validity.
func (a *Auto) ExpiresAt() time.Time { return expiry(a.current.Load()) }

// Run loads, orders and renews the certificate until ctx ends.
func (a *Auto) Run(ctx context.Context) error {
	retry := minRetry
	for wait := time.Duration(0); ; {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}

		err := a.refresh(ctx)
		if err == nil {
			wait, retry = checkInterval, minRetry
			continue
		}

		if ctx.Err() == nil {
			a.Log.Error("could not get a certificate", "host", a.Host, "next", retry.String(), "error", err)
		}
		wait, retry = retry, min(2*retry, maxRetry)
	}
}

// refresh loads the stored certificate, and orders a new one if it is due.
func (a *Auto) refresh(ctx context.Context) error {
	if err := a.load(ctx); err != nil || !a.due() {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, orderTimeout)
	defer cancel()

	_, err := pg.WithPoolLock(ctx, a.Pool, pg.LockBlocking, orderLock, func(*pgx.Conn) error {
		if err := a.load(ctx); err != nil || !a.due() { // another server was faster
			return err
		}

		a.Log.Info("ordering a certificate", "host", a.Host, "directory", a.Directory)
		if err := a.order(ctx); err != nil {
			return err
		}

		return a.load(ctx)
	})

	return err
}

// due reports whether a certificate is missing, for another host, or past two thirds of its
// lifetime.
func (a *Auto) due() bool {
	current := a.current.Load()
	if current == nil || current.Leaf.VerifyHostname(a.Host) != nil {
		return true
	}

	lifetime := current.Leaf.NotAfter.Sub(current.Leaf.NotBefore)
	return a.now().After(current.Leaf.NotAfter.Add(-lifetime / 3))
}

// load makes the stored certificate the current one, if there is one.
func (a *Auto) load(ctx context.Context) error {
	pair, err := a.stored(ctx, "certificate "+a.Host)
	if err != nil || pair == nil {
		return err
	}

	if current := a.current.Load(); current == nil || !current.Leaf.Equal(pair.Leaf) {
		a.current.Store(pair)
		a.Log.Info("certificate loaded", "host", a.Host, "expiresAt", pair.Leaf.NotAfter)
	}

	return nil
}

// pendingChallenge returns the certificate that answers the pending challenge.
func (a *Auto) pendingChallenge(ctx context.Context) (*tls.Certificate, error) {
	c := &a.challenge
	c.mu.Lock()
	defer c.mu.Unlock()

	if time.Since(c.readAt) > challengeTTL {
		ctx, cancel := context.WithTimeout(ctx, challengeTimeout)
		defer cancel()

		var err error
		if c.certificate, err = a.stored(ctx, "challenge "+a.Host); err != nil {
			return nil, err
		}
		c.readAt = time.Now()
	}

	if c.certificate == nil {
		return nil, errors.New("no challenge is pending")
	}

	return c.certificate, nil
}

// stored returns a stored certificate with its key, nil without one.
func (a *Auto) stored(ctx context.Context, name string) (*tls.Certificate, error) {
	text, err := a.read(ctx, name)
	if err != nil || text == nil {
		return nil, err
	}

	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, fmt.Errorf("stored %s: %w", name, err)
	}

	return &pair, nil
}

// read returns the value of a name, or nil.
func (a *Auto) read(ctx context.Context, name string) ([]byte, error) {
	sealed, err := a.Store.Certificate(ctx, name)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	return token.Open(a.Key, sealed)
}

func (a *Auto) write(ctx context.Context, name string, text []byte) error {
	sealed, err := token.Seal(a.Key, text)
	if err != nil {
		return err
	}

	return a.Store.SetCertificate(ctx, name, sealed)
}
