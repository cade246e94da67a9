// Package password judges new passwords, and hashes and verifies them with argon2id.
//
// A hash takes much memory and time on purpose, so a [Hasher] lets only as many run
// at once as there are processors, and the others wait in a line of limited length.
package password

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/argon2"

	"socle/internal/fault"
)

// OWASP's parameters. Stored hashes carry their own, so these can change.
const (
	memory = 19 << 10 // KiB
	passes = 2
	lanes  = 1

	saltSize = 16
	keySize  = 32
)

const (
	maxSize    = 1024            // bytes of a password
	maxWaiting = 512             // hashes, a few seconds' worth
	maxWait    = 6 * time.Second // shorter than a request may take
)

// Hasher hashes passwords, some at a time. Its methods may be called concurrently.
type Hasher struct {
	min     int           // characters of a new password
	slots   chan struct{} // one element for each hash under way
	waiting atomic.Int64
}

// New returns a Hasher for passwords of at least min characters.
func New(min int) *Hasher {
	return &Hasher{min: min, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// Hash returns the argon2id hash of a password as a PHC string. Its faults are Unprocessable
// for more than 1024 bytes and TooMany when too many others wait, or for too long; if ctx ends first, its error is returned.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	if len(password) > maxSize {
		return "", tooLong()
	}

	salt := make([]byte, saltSize)
	rand.Read(salt) // never fails
	p := phc{memory, passes, lanes, salt, nil}

	key, err := h.derive(ctx, password, p)
	if err != nil {
		return "", err
	}

	p.key = key
	return p.String(), nil
}

// unknown stands for the hash of an account that does not exist. No password has it, and the zero key is not looked at.
var unknown = phc{memory, passes, lanes, make([]byte, saltSize), make([]byte, keySize)}

// Verify reports whether hash is that of the password. The hash "" stands for an unknown account and is no
// password's, which takes as long to find out as for a known one. More than 1024 bytes are no account's
// password either, which is found out at once. Its faults are those of [Hasher.Hash], but for the size.
func (h *Hasher) Verify(ctx context.Context, hash, password string) (bool, error) {
	if len(password) > maxSize {
		return false, nil
	}

	p, known := unknown, hash != ""
	if known {
		var err error
		if p, err = parse(hash); err != nil {
			return false, fmt.Errorf("verify a password: %w", err)
		}
	}

	key, err := h.derive(ctx, password, p)
	if err != nil {
		return false, err
	}

	return subtle.ConstantTimeCompare(key, p.key) == 1 && known, nil
}

// derive computes a key when it is its turn.
func (h *Hasher) derive(ctx context.Context, password string, p phc) ([]byte, error) {
	if err := h.enter(ctx); err != nil {
		return nil, err
	}

	defer func() { <-h.slots }()

	return argon2.IDKey([]byte(password), p.salt, p.passes, p.memory, p.lanes, keySize), nil
}

// enter waits for a free slot and takes it.
func (h *Hasher) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}

	select {
	case h.slots <- struct{}{}:
		return nil
	default:
	}

	defer h.waiting.Add(-1)

	tooMany := &fault.Error{Kind: fault.TooMany, Detail: "too many passwords are being checked", RetryAfter: maxWait}
	if h.waiting.Add(1) > maxWaiting {
		return tooMany
	}

	patience := time.NewTimer(maxWait)
	defer patience.Stop()

	select {
	case h.slots <- struct{}{}:
		return nil
	case <-patience.C:
		return tooMany
	case <-ctx.Done():
		return ctx.Err()
	}
}
