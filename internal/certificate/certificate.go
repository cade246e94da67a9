// Package certificate provides the HTTPS listener's certificates: from files that it reloads, or
// from an ACME service such as Let's Encrypt, by the challenge tls-alpn-01.
//
// An install's servers share the ACME account, the certificate and the pending challenge in the
// platform database: one server orders, any answers the challenge. Handshakes never order a
// certificate, so a client can't use up the service's limits.
package certificate

import (
	"context"
	"crypto/tls"
	"time"
)

// Source provides a listener's certificate.
type Source interface {
	// TLSConfig returns the listener's configuration.
	TLSConfig() *tls.Config
	// ExpiresAt returns when the certificate expires, the zero time without a certificate.
	ExpiresAt() time.Time
	// Run renews or reloads the certificate until ctx ends.
	Run(ctx context.Context) error
}

// expiry returns when a certificate expires.
func expiry(c *tls.Certificate) time.Time {
	if c == nil {
		return time.Time{}
	}
	return c.Leaf.NotAfter
}

// tlsConfig returns a configuration for HTTP/2 and HTTP/1.1, which package httpx tells apart.
func tlsConfig(get func(*tls.ClientHelloInfo) (*tls.Certificate, error), further ...string) *tls.Config {
	return &tls.Config{GetCertificate: get, NextProtos: append([]string{"h2", "http/1.1"}, further...)}
}
