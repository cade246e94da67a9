package certificate

import (
	"context"
	"crypto/tls"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Files provides the certificate in two PEM files: the chain and its private key. It reads changed
// files at the next handshake. While they do not make a pair, as between the replacement of one and
// the other, it provides the previous certificate. It is safe for concurrent use.
type Files struct {
	chain, key string // paths
	log        *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	states  [2]fs.FileInfo // file states at the last read attempt; nil: missing
}

// OpenFiles reads the files.
func OpenFiles(chain, key string, log *slog.Logger) (*Files, error) {
	f := &Files{chain: chain, key: key, log: log}
	if _, err := f.reload(); err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}

	return f, nil
}

// TLSConfig returns the listener's configuration.
func (f *Files) TLSConfig() *tls.Config { return tlsConfig(f.GetCertificate) }

// GetCertificate returns the current certificate, for [tls.Config].
func (f *Files) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	switch reloaded, err := f.reload(); {
	case err != nil:
		f.log.Warn("could not reload the certificate, serving the previous one", "file", f.chain, "error", err)
	case reloaded:
		f.log.Info("certificate reloaded", "file", f.chain, "expiresAt", f.current.Leaf.NotAfter)
	}

	return f.current, nil
}

// ExpiresAt returns when the certificate expires.
func (f *Files) ExpiresAt() time.Time {
	c, _ := f.GetCertificate(nil)
	return expiry(c)
}

// Run returns when ctx ends.
func (f *Files) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// reload reads the files if they have changed since the last attempt, and reports whether there is
// a new certificate.
func (f *Files) reload() (changed bool, err error) {
	var now [2]fs.FileInfo
	for i, name := range []string{f.chain, f.key} {
		now[i], _ = os.Stat(name) // reading a missing file fails below
	}

	if f.current != nil && sameState(now[0], f.states[0]) && sameState(now[1], f.states[1]) {
		return false, nil
	}

	f.states = now

	pair, err := tls.LoadX509KeyPair(f.chain, f.key)
	if err != nil {
		return false, err
	}

	f.current = &pair
	return true, nil
}

// sameState reports whether a file is unchanged between two [os.Stat] calls.
func sameState(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}

	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
