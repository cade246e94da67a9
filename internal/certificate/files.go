package certificate

import (
	"context"
	"crypto/tls"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// reloadInterval is the interval of checks for changed files.
const reloadInterval = 10 * time.Second

// Files provides the certificate in two PEM files: the chain and its private key.
type Files struct {
	chain, key string // paths
	log        *slog.Logger
	current    atomic.Pointer[tls.Certificate]
	loaded     [2]fs.FileInfo // state of the files when they were read
}

// OpenFiles reads the files.
func OpenFiles(chain, key string, log *slog.Logger) (*Files, error) {
	f := &Files{chain: chain, key: key, log: log}
	if _, err := f.reload(); err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}

	return f, nil
}

// TLSConfig returns the configuration of the listener.
func (f *Files) TLSConfig() *tls.Config {
	return tlsConfig(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return f.current.Load(), nil })
}

// ExpiresAt returns the end of the certificate's validity.
func (f *Files) ExpiresAt() time.Time { return expiry(f.current.Load()) }

// Run reloads changed files until ctx ends. It keeps the current certificate while the files do not
// make a pair, as between the replacement of one and the other.
func (f *Files) Run(ctx context.Context) error {
	tick := time.NewTicker(reloadInterval)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}

		switch changed, err := f.reload(); {
		case err != nil:
			f.log.Warn("could not reload the certificate, serving the previous one", "error", err)
		case changed:
			f.log.Info("certificate reloaded", "expiresAt", f.current.Load().Leaf.NotAfter)
		}
	}
}

// reload reads the files if they have changed, and reports whether they had.
func (f *Files) reload() (changed bool, err error) {
	var now [2]fs.FileInfo
	for i, name := range []string{f.chain, f.key} {
		if now[i], err = os.Stat(name); err != nil {
			return false, err
		}

		before := f.loaded[i]
		changed = changed || before == nil || !os.SameFile(before, now[i]) ||
			before.Size() != now[i].Size() || !before.ModTime().Equal(now[i].ModTime())
	}

	if !changed {
		return false, nil
	}

	pair, err := tls.LoadX509KeyPair(f.chain, f.key)
	if err != nil {
		return false, err
	}

	f.loaded = now
	f.current.Store(&pair)

	return true, nil
}
