// Package password checks new passwords against the policy, and hashes and verifies passwords with
// argon2id.
//
// A hash is expensive in memory and time by design. A [Hasher] runs about one per processor, those
// of one account on half of the processors, and queues a bounded number of others, by owner.
package password

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/trace"
)

// Parameters for argon2id, as OWASP recommends. Stored hashes carry their own, so these can change.
const (
	memory = 19 << 10 // KiB
	passes = 2
	lanes  = 1

	saltSize = 16
	keySize  = 32
)

const (
	maxPasswordSize = 1024            // bytes
	queueTimeout    = 6 * time.Second // below the request timeout

	// maxQueued is far more than the hashes of queueTimeout: a queued one costs little, and a
	// client that is refused at once asks again at once.
	maxQueued = 4096
)

// Hasher hashes passwords with bounded concurrency. Its methods are safe for concurrent use.
type Hasher struct {
	places *fair.Pool // slots for concurrent hashes
	min    int        // characters in a new password
	owner  fair.Key
}

// New returns a Hasher for passwords with at least min characters.
func New(min int) *Hasher {
	return &Hasher{min: min, places: fair.New(places(runtime.GOMAXPROCS(0)))}
}

// places returns the places for concurrent hashes. One account gets half of the processors, so that
// its log-ins slow down other work to half its speed at most. The place more than processors is for
// an account without a hash.
func places(processors int) fair.Config {
	return fair.Config{Name: "password_hashes", Capacity: int64(processors) + 1, Reserve: 1,
		PerAccount: int64(max(1, processors/2)), Waiting: maxQueued, Timeout: queueTimeout}
}

// Pools returns the pools that accounts share, for metrics.
func (h *Hasher) Pools() []*fair.Pool { return []*fair.Pool{h.places} }

// For returns a Hasher for an owner's passwords, in the queue of h: owners take turns.
func (h *Hasher) For(owner fair.Key) *Hasher { return &Hasher{h.places, h.min, owner} }

// Hash returns a password's argon2id hash as a PHC string. It fails with Unprocessable for more
// than 1024 bytes, with TooMany if the queue is full or the queue timeout passes, and with ctx's
// error if it ends first.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	if len(password) > maxPasswordSize {
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

// unknownAccount is the hash for an unknown account. Its zero key is never accepted.
var unknownAccount = phc{memory, passes, lanes, make([]byte, saltSize), make([]byte, keySize)}

// Verify reports whether hash is the password's hash. The hash "" stands for an unknown account; it
// never matches and takes as long as a real one. A password beyond 1024 bytes never matches and
// returns at once. Other failures are those of [Hasher.Hash].
func (h *Hasher) Verify(ctx context.Context, hash, password string) (bool, error) {
	if len(password) > maxPasswordSize {
		return false, nil
	}

	if isBcrypt(hash) {
		return h.verifyBcrypt(ctx, hash, password)
	}
	if isFirebase(hash) {
		return h.verifyFirebase(ctx, hash, password)
	}

	p, exists := unknownAccount, hash != ""
	if exists {
		var err error
		if p, err = parse(hash); err != nil {
			return false, fmt.Errorf("verify a password: %w", err)
		}
	}

	key, err := h.derive(ctx, password, p)
	if err != nil {
		return false, err
	}

	return subtle.ConstantTimeCompare(key, p.key) == 1 && exists, nil
}

// derive computes a key in its turn.
func (h *Hasher) derive(ctx context.Context, password string, p phc) ([]byte, error) {
	release, err := h.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer release()

	return argon2.IDKey([]byte(password), p.salt, p.passes, p.memory, p.lanes, keySize), nil
}

// enter waits for the owner's turn. release ends it, and the hash's span.
func (h *Hasher) enter(ctx context.Context) (release func(), err error) {
	_, span := trace.Start(ctx, "hash password")

	lease, err := h.places.Acquire(ctx, h.owner, 1)
	if err != nil {
		span.End()
	}

	switch {
	case errors.Is(err, fair.ErrBusy):
		return nil, &fault.Error{
			Kind:       fault.TooMany,
			Detail:     "too many password checks are in progress; try again later",
			RetryAfter: queueTimeout,
		}
	case err != nil:
		return nil, err
	}

	return func() { lease.Release(); span.End() }, nil
}
