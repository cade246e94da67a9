package certificate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/tick"
	"github.com/socle-dev/socle/internal/token"
)

const (
	challengeTTL     = time.Second // cache TTL for a challenge: anyone can ask for it
	challengeTimeout = 5 * time.Second
)

// storage is certmagic's storage in the platform database, which all servers share. Values are
// sealed. Locks are advisory ones, each held by a connection, so those of a killed server are free.
type storage struct {
	pool  *pgxpool.Pool
	store *platform.Store
	key   []byte

	mu    sync.Mutex
	locks map[string]heldLock

	challenge readChallenge
}

// heldLock is a lock that a connection holds.
type heldLock struct {
	release chan<- struct{}
	done    <-chan error
}

// readChallenge is the challenge that was read last.
type readChallenge struct {
	mu    sync.Mutex
	key   string
	value []byte // nil: none pending
	at    time.Time
}

var _ certmagic.Storage = (*storage)(nil)

func newStorage(pool *pgxpool.Pool, store *platform.Store, key []byte) *storage {
	return &storage{pool: pool, store: store, key: key, locks: map[string]heldLock{}}
}

// Lock takes a lock, once another server has released it.
func (s *storage) Lock(ctx context.Context, name string) error {
	sum := sha256.Sum256([]byte("certificate " + name))
	acquired, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := pg.WithPoolLock(ctx, s.pool, pg.LockBlocking, int64(binary.BigEndian.Uint64(sum[:])),
			func(*pgx.Conn) error {
				close(acquired)
				<-release
				return nil
			})
		done <- err
	}()

	select {
	case err := <-done:
		return err
	case <-acquired:
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	s.locks[name] = heldLock{release, done}
	return nil
}

// Unlock releases a lock.
func (s *storage) Unlock(_ context.Context, name string) error {
	s.mu.Lock()
	lock, ok := s.locks[name]
	delete(s.locks, name)
	s.mu.Unlock()

	if !ok {
		return fmt.Errorf("the lock %s is not held", name)
	}

	close(lock.release)
	return <-lock.done
}

// Store stores a value. It returns once all servers see a challenge.
func (s *storage) Store(ctx context.Context, key string, value []byte) error {
	ciphertext, err := token.Seal(s.key, value)
	if err != nil {
		return err
	}
	if err := s.store.SetCertificate(ctx, key, ciphertext); err != nil || !isChallenge(key) {
		return err
	}

	return tick.Pause(ctx, challengeTTL)
}

// isChallenge reports whether a key is for a challenge under way.
func isChallenge(key string) bool { return strings.Contains(key, "/challenge_tokens/") }

// Load returns a value. It fails with [fs.ErrNotExist] without one.
func (s *storage) Load(ctx context.Context, key string) ([]byte, error) {
	if isChallenge(key) {
		return s.loadChallenge(ctx, key)
	}
	return s.load(ctx, key)
}

func (s *storage) load(ctx context.Context, key string) ([]byte, error) {
	ciphertext, err := s.store.Certificate(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}

	return token.Open(s.key, ciphertext)
}

// loadChallenge returns a challenge. It reads the database once within the TTL, since the keys are
// those of one host.
func (s *storage) loadChallenge(ctx context.Context, key string) ([]byte, error) {
	c := &s.challenge
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.key != key || time.Since(c.at) > challengeTTL {
		ctx, cancel := context.WithTimeout(ctx, challengeTimeout)
		defer cancel()

		value, err := s.load(ctx, key)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		c.key, c.value, c.at = key, value, time.Now()
	}

	if c.value == nil {
		return nil, fs.ErrNotExist
	}

	return c.value, nil
}

// Delete removes a key and those below it.
func (s *storage) Delete(ctx context.Context, key string) error {
	return s.store.DeleteCertificates(ctx, key)
}

// Exists reports whether there is a key, or one below it.
func (s *storage) Exists(ctx context.Context, key string) bool {
	_, err := s.Stat(ctx, key)
	return err == nil
}

// List returns the keys below a key.
func (s *storage) List(ctx context.Context, prefix string, recursive bool) ([]string, error) {
	rows, err := s.store.Certificates(ctx, prefix)
	if err != nil {
		return nil, err
	}

	var keys []string
	for _, c := range rows {
		name := c.Name
		if below, ok := strings.CutPrefix(name, prefix+"/"); ok && !recursive {
			first, _, _ := strings.Cut(below, "/")
			name = prefix + "/" + first
		}
		if len(keys) == 0 || keys[len(keys)-1] != name { // they are sorted
			keys = append(keys, name)
		}
	}

	return keys, nil
}

// Stat describes a key, or those below it.
func (s *storage) Stat(ctx context.Context, key string) (certmagic.KeyInfo, error) {
	rows, err := s.store.Certificates(ctx, key)
	if err != nil {
		return certmagic.KeyInfo{}, err
	}
	if len(rows) == 0 {
		return certmagic.KeyInfo{}, fs.ErrNotExist
	}

	info := certmagic.KeyInfo{Key: key, IsTerminal: rows[0].Name == key}
	for _, c := range rows {
		info.Size += c.Size
		if c.UpdatedAt.After(info.Modified) {
			info.Modified = c.UpdatedAt
		}
	}

	return info, nil
}

// adopt stores a former release's certificate, which did without certmagic, for certmagic. Its own
// value stays for a return to that release.
func (a *Auto) adopt(ctx context.Context, issuer string) error {
	keys := certmagic.StorageKeys
	if a.storage.Exists(ctx, keys.SiteMeta(issuer, a.Host)) {
		return nil
	}

	text, err := a.storage.load(ctx, "certificate "+a.Host)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}

	pair, err := tls.X509KeyPair(text, text)
	if err != nil || pair.Leaf.VerifyHostname(a.Host) != nil {
		return err // nil: the host has changed
	}

	meta, err := json.Marshal(certmagic.CertificateResource{SANs: []string{a.Host}})
	if err != nil {
		return err
	}

	key, chain := splitPEM(text)
	for _, entry := range []struct {
		key   string
		value []byte
	}{
		{keys.SitePrivateKey(issuer, a.Host), key},
		{keys.SiteCert(issuer, a.Host), chain},
		{keys.SiteMeta(issuer, a.Host), meta},
	} {
		if err := a.storage.Store(ctx, entry.key, entry.value); err != nil {
			return err
		}
	}

	return nil
}

// splitPEM splits PEM with a key and a chain of certificates.
func splitPEM(text []byte) (key, chain []byte) {
	var keys, certificates bytes.Buffer
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		to := &certificates
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			to = &keys
		}
		to.Write(pem.EncodeToMemory(block))
	}

	return keys.Bytes(), certificates.Bytes()
}
