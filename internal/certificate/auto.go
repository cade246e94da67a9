package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	orderTimeout = 5 * time.Minute // for an order, its challenges included

	minRetry = 2 * time.Minute // backoff after failed orders; Let's Encrypt allows five an hour
	maxRetry = time.Hour

	challengeProtocol = "acme-tls/1" // ALPN protocol for the challenge tls-alpn-01
)

// errNone is the failure for a handshake before there is a certificate.
var errNone = errors.New("there is no certificate yet")

// AutoConfig configures an [Auto].
type AutoConfig struct {
	Host      string         // name in the certificate
	Address   *net.TCPAddr   // own address, to which the challenge's port 443 leads
	Directory string         // ACME service URL
	Roots     *x509.CertPool // authorities for the ACME service's own certificate; nil: the system's
	Pool      *pgxpool.Pool
	Store     *platform.Store
	Key       []byte // encrypts stored certificates and keys
	Log       *slog.Logger
}

// Auto provides a certificate from an ACME service by certmagic, which renews it when the service
// says so, or after two thirds of its lifetime.
type Auto struct {
	AutoConfig
	storage *storage
	manager atomic.Pointer[manager] // nil: Run was not called
}

// manager is certmagic's part of an [Auto], with a goroutine that maintains the certificate.
type manager struct {
	cache  *certmagic.Cache
	config *certmagic.Config
}

// NewAuto returns a source. It has no certificate before Run is called.
func NewAuto(c AutoConfig) *Auto {
	return &Auto{AutoConfig: c, storage: newStorage(c.Pool, c.Store, c.Key)}
}

// TLSConfig returns the listener's configuration. A handshake fails while there is no certificate,
// and never orders one.
func (a *Auto) TLSConfig() *tls.Config {
	return tlsConfig(func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		m := a.manager.Load()
		if m == nil {
			return nil, errNone
		}
		if slices.Contains(hello.SupportedProtos, challengeProtocol) && hello.ServerName != a.Host {
			return nil, errors.New("a challenge for another host")
		}

		return m.config.GetCertificate(hello)
	}, challengeProtocol)
}

// ExpiresAt returns when the certificate expires.
func (a *Auto) ExpiresAt() time.Time {
	m := a.manager.Load()
	if m == nil {
		return time.Time{}
	}

	for _, c := range m.cache.AllMatchingCertificates(a.Host) {
		return c.Leaf.NotAfter
	}

	return time.Time{}
}

// Run loads or orders the certificate and renews it until ctx ends.
func (a *Auto) Run(ctx context.Context) error {
	m := a.start()
	defer m.cache.Stop()

	retry := minRetry
	for {
		err := a.manage(ctx, m)
		if err == nil {
			<-ctx.Done()
			return nil
		}

		if ctx.Err() == nil {
			a.Log.Error("could not get a certificate", "host", a.Host, "next", retry.String(), "error", err)
		}

		if tick.Pause(ctx, retry) != nil {
			return nil
		}
		retry = min(2*retry, maxRetry)
	}
}

// start starts certmagic.
func (a *Auto) start() *manager {
	m := &manager{}
	m.cache = certmagic.NewCache(certmagic.CacheOptions{Logger: zap.NewNop(),
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return m.config, nil }})
	m.config = certmagic.New(m.cache, certmagic.Config{Storage: a.storage, Logger: zap.NewNop(), OnEvent: a.log,
		DefaultServerName: a.Host, FallbackServerName: a.Host, DisableStorageCheck: true,
		OCSP: certmagic.OCSPConfig{DisableStapling: true}})
	m.config.Issuers = []certmagic.Issuer{issuer{certmagic.NewACMEIssuer(m.config, certmagic.ACMEIssuer{
		CA: a.Directory, TestCA: a.Directory, TrustedRoots: a.Roots, Agreed: true, DisableHTTPChallenge: true,
		ListenHost: a.Address.IP.String(), AltTLSALPNPort: a.Address.Port, CertObtainTimeout: orderTimeout,
		Logger: zap.NewNop()})}}
	a.manager.Store(m)

	return m
}

// manage loads the certificate, or orders it once. Then certmagic maintains it.
func (a *Auto) manage(ctx context.Context, m *manager) error {
	if err := a.adopt(ctx, m.config.Issuers[0].IssuerKey()); err != nil {
		return fmt.Errorf("load the certificate of a former release: %w", err)
	}

	return m.config.ManageSync(ctx, []string{a.Host})
}

// log logs certmagic's events. The error of a first order is returned by manage.
func (a *Auto) log(_ context.Context, event string, data map[string]any) error {
	switch event {
	case "cert_obtaining":
		a.Log.Info("ordering a certificate", "host", a.Host, "directory", a.Directory)
	case "cached_managed_cert":
		a.Log.Info("certificate loaded", "host", a.Host, "expiresAt", a.ExpiresAt())
	case "cert_failed":
		if renewal, _ := data["renewal"].(bool); renewal {
			a.Log.Error("could not renew the certificate", "host", a.Host, "error", data["error"])
		}
	}

	return nil
}

// issuer orders without asking a person at a terminal for an address.
type issuer struct{ *certmagic.ACMEIssuer }

// PreCheck implements [certmagic.PreChecker].
func (i issuer) PreCheck(ctx context.Context, names []string, _ bool) error {
	return i.ACMEIssuer.PreCheck(ctx, names, false)
}
