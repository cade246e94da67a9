// Package leaked finds leaked passwords, by a range protocol service or a folder. Package enduser
// decides the consequences.
package leaked

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // the range protocol names passwords by it
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/socle-dev/socle/internal/cache"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/outbound"
)

const (
	leakTimeout = 3 * time.Second // the password is accepted after it
	rangeDigits = 5               // hash digits that a service sees

	maxCachedRanges = 32
	rangeTTL        = time.Hour
)

// Passwords looks up leaked passwords, by the range protocol of Have I Been Pwned: the service sees
// five digits of a password's hash, and returns the rest of all that begin so. It is safe for
// concurrent use.
type Passwords struct {
	address string // URL without the range, or a folder
	client  *outbound.Client
	clock   func() time.Time
	ranges  *cache.Cache[string, []byte]
}

// New returns the leaked passwords at an address that the install's administrator has chosen, in
// any network: a URL to which the range is appended, or a folder with a file per range.
func New(address string) *Passwords {
	everywhere := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	l := &Passwords{address: address, client: outbound.New(everywhere), clock: time.Now}
	l.ranges = cache.New[string, []byte](cache.Limits{Entries: maxCachedRanges, TTL: rangeTTL,
		Now: func() time.Time { return l.clock() }})

	return l
}

// Contains reports whether a password is known from a leak.
func (l *Passwords) Contains(ctx context.Context, tenant fair.Key, password string) (bool, error) {
	sum := sha1.Sum([]byte(password)) //nolint:gosec // see above
	digits := strings.ToUpper(hex.EncodeToString(sum[:]))
	prefix, rest := digits[:rangeDigits], []byte(digits[rangeDigits:])

	hashes, err := l.lookup(ctx, tenant, prefix)
	if err != nil {
		return false, fmt.Errorf("read a range of leaked passwords: %w", err)
	}

	for line := range bytes.Lines(hashes) {
		hash, count, _ := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
		if bytes.EqualFold(hash, rest) {
			return string(count) != "0", nil // padding
		}
	}

	return false, nil
}

// lookup returns a range's hashes, without their first digits.
func (l *Passwords) lookup(ctx context.Context, tenant fair.Key, prefix string) ([]byte, error) {
	if hashes, ok := l.ranges.Get(prefix); ok {
		return hashes, nil
	}

	read := l.readFile
	if strings.Contains(l.address, "://") {
		read = func(prefix string) ([]byte, error) { return l.request(ctx, tenant, prefix) }
	}

	hashes, err := read(prefix)
	if err != nil {
		return nil, err
	}

	l.ranges.Put(prefix, hashes)
	return hashes, nil
}

// request asks a service for a range. Padding hides its size from network observers.
func (l *Passwords) request(ctx context.Context, tenant fair.Key, prefix string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, leakTimeout)
	defer cancel()

	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.address+prefix, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Add-Padding", "true")

	res, err := l.client.Do(ctx, tenant, r)
	if err == nil && res.Status != http.StatusOK {
		err = fmt.Errorf("status %d", res.Status)
	}

	return res.Body, err
}

// readFile reads a range from the folder: a file named like it, as a mirror keeps them, or with the
// extension that the Have I Been Pwned downloader adds.
func (l *Passwords) readFile(prefix string) ([]byte, error) {
	f, err := os.Open(filepath.Join(l.address, prefix+".txt"))
	if errors.Is(err, os.ErrNotExist) {
		f, err = os.Open(filepath.Join(l.address, prefix))
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()

	return io.ReadAll(io.LimitReader(f, outbound.MaxResponse))
}
