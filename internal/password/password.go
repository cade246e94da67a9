// Package password checks new passwords against the policy, and hashes and verifies passwords with
// argon2id.
//
// A hash is expensive in memory and time by design. A [Hasher] runs at most one per processor and
// queues a bounded number of others.
package password

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/trace"
)

// Parameters of argon2id, as OWASP recommends. Stored hashes carry their own, so these can change.
const (
	memory = 19 << 10 // KiB
	passes = 2
	lanes  = 1

	saltSize = 16
	keySize  = 32
)

const (
	maxPasswordSize = 1024            // bytes of a password
	maxQueued       = 512             // queued hashes; a few seconds of work
	queueTimeout    = 6 * time.Second // queue timeout, below the request timeout
)

// maxShare is the maximum number of hashes that one project has queued or running. The others
// find room in the queue.
const maxShare = maxQueued / 8

// Hasher hashes passwords with bounded concurrency. Its methods are safe for concurrent use.
type Hasher struct {
	*queue
	min   int    // characters of a new password
	owner string // whose share of the queue is bounded; "" has no bound of its own
}

// queue is shared by all hashers of a process.
type queue struct {
	slots  chan struct{} // one element per running hash
	queued atomic.Int64

	mu     sync.Mutex
	shares map[string]int // hashes queued or running, by owner
}

// New returns a Hasher for passwords of at least min characters.
func New(min int) *Hasher {
	return &Hasher{queue: &queue{slots: make(chan struct{}, runtime.GOMAXPROCS(0)), shares: map[string]int{}}, min: min}
}

// For returns a Hasher with a policy of its own, on the queue of h. One owner fills an eighth of
// the queue at most.
func (h *Hasher) For(owner string, min int) *Hasher {
	return &Hasher{queue: h.queue, min: min, owner: owner}
}

// Hash returns the argon2id hash of a password as a PHC string. It fails with Unprocessable for
// more than 1024 bytes, with TooMany if the queue is full or the queue timeout passes, and with the
// error of ctx if it ends first.
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

// Verify reports whether hash is the hash of the password. The hash "" stands for an unknown
// account; it never matches and takes as long as a real one. A password of more than 1024 bytes
// never matches and returns at once. Other failures are those of [Hasher.Hash].
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

	p, known := unknownAccount, hash != ""
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

// derive computes a key in a slot.
func (h *Hasher) derive(ctx context.Context, password string, p phc) ([]byte, error) {
	release, err := h.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer release()

	return argon2.IDKey([]byte(password), p.salt, p.passes, p.memory, p.lanes, keySize), nil
}

// enter waits for a slot within the owner's share. release gives both back, and ends the span of
// the hash.
func (h *Hasher) enter(ctx context.Context) (release func(), err error) {
	_, span := trace.Start(ctx, "hash password", trace.Internal)

	if h.owner != "" {
		h.mu.Lock()
		full := h.shares[h.owner] >= maxShare
		if !full {
			h.shares[h.owner]++
		}
		h.mu.Unlock()

		if full {
			return nil, errQueueFull()
		}
	}

	if err := h.acquire(ctx); err != nil {
		h.leave()
		return nil, err
	}

	return func() { <-h.slots; h.leave(); span.End() }, nil
}

func (h *Hasher) leave() {
	if h.owner == "" {
		return
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	if h.shares[h.owner]--; h.shares[h.owner] == 0 {
		delete(h.shares, h.owner)
	}
}

func errQueueFull() error {
	return &fault.Error{
		Kind:       fault.TooMany,
		Detail:     "too many password checks are in progress; try again later",
		RetryAfter: queueTimeout,
	}
}

// acquire waits for a free slot and takes it.
func (h *Hasher) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}

	select {
	case h.slots <- struct{}{}:
		return nil
	default:
	}

	defer h.queued.Add(-1)

	if h.queued.Add(1) > maxQueued {
		return errQueueFull()
	}

	timer := time.NewTimer(queueTimeout)
	defer timer.Stop()

	select {
	case h.slots <- struct{}{}:
		return nil
	case <-timer.C:
		return errQueueFull()
	case <-ctx.Done():
		return ctx.Err()
	}
}
