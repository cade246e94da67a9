package fair

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// ErrBusy reports that no capacity became free in time, or that the queue is full.
var ErrBusy = errors.New("fair: no capacity is free")

// Config configures a [Pool]. Capacity, PerAccount, PerPart and Reserve have one unit, which the
// caller chooses: workers or bytes, for example.
type Config struct {
	Name     string // in metrics
	Capacity int64

	PerAccount int64 // maximum per account; 0: Capacity less Reserve
	PerPart    int64 // maximum per part; 0: PerAccount
	Reserve    int64 // only for accounts that hold nothing

	Waiting int           // maximum number of waiting callers; 0: callers never wait
	Timeout time.Duration // limit for a waiting caller; 0: until its context ends

	// Revocable pools take leases back from the account that holds most, if an account that holds
	// less finds no capacity. Holders must watch [Lease.Revoked].
	Revocable bool
	OnDemand  bool // a revocable pool revokes leases only in [Pool.Revoke]
}

// Pool is a capacity that accounts share. It is safe for concurrent use.
type Pool struct {
	config Config

	waiting atomic.Int64 // written under mu

	mu          sync.Mutex
	free        int64
	revoking    int64  // units in revoked leases that are not released yet
	serial      uint64 // counts grants
	accounts    map[string]*account
	peak        int64
	refusals    int64
	revocations int64
}

// account is an account that holds or waits.
type account struct {
	name      string
	units     int64 // held, without revoked leases
	waiting   int
	lastGrant uint64 // serial
	parts     map[string]*part
}

// part is a part of an account that holds or waits.
type part struct {
	name      string
	units     int64
	lastGrant uint64
	queue     []*waiter // first come, first served
	leases    []*Lease  // oldest first; empty unless the pool is revocable
}

// waiter is a queued caller.
type waiter struct {
	key  Key
	n    int64
	done chan struct{} // closed with the outcome

	lease *Lease // nil: refused
}

// Lease is a share that its holder returns with [Lease.Release].
type Lease struct {
	pool       *Pool
	key        Key
	n          int64
	revocation chan struct{} // closed when revoked; nil if the pool is not revocable

	isReleased, isRevoked bool
}

// New returns a pool.
func New(c Config) *Pool {
	c = c.withDefaults()
	return &Pool{config: c, free: c.Capacity, accounts: map[string]*account{}}
}

// withDefaults fills in the maximums that are 0.
func (c Config) withDefaults() Config {
	if c.PerAccount == 0 {
		c.PerAccount = c.Capacity - c.Reserve
	}
	if c.PerPart == 0 {
		c.PerPart = c.PerAccount
	}

	return c
}

// Resize changes the four sizes to those of c. Accounts keep what they hold beyond them, unless the
// pool revokes leases by itself: then it does so until the rest fits.
func (p *Pool) Resize(c Config) {
	c = c.withDefaults()

	p.mu.Lock()
	defer p.mu.Unlock()

	p.free += c.Capacity - p.config.Capacity
	p.config.Capacity, p.config.Reserve = c.Capacity, c.Reserve
	p.config.PerAccount, p.config.PerPart = c.PerAccount, c.PerPart

	if p.config.Revocable && !p.config.OnDemand {
		p.shed(-p.free - p.revoking)
	}

	p.serve()
}

// Shed revokes leases of n units from the accounts that hold most, the oldest leases first.
func (p *Pool) Shed(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.shed(n)
}

// PerAccount returns the maximum that one account may hold.
func (p *Pool) PerAccount() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.config.PerAccount
}

// Acquire takes n units for a key, and waits for them. It fails with ErrBusy or with ctx's error.
func (p *Pool) Acquire(ctx context.Context, key Key, n int64) (*Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	p.mu.Lock()
	if lease := p.grant(key, n); lease != nil {
		p.mu.Unlock()
		return lease, nil
	}

	w := p.enqueue(key, n)
	p.mu.Unlock()

	if w == nil {
		return nil, ErrBusy
	}

	var timeout <-chan time.Time
	if p.config.Timeout > 0 {
		timer := time.NewTimer(p.config.Timeout)
		defer timer.Stop()

		timeout = timer.C
	}

	select {
	case <-w.done:
		if w.lease == nil {
			return nil, ErrBusy
		}

		return w.lease, nil
	case <-timeout:
		p.cancel(w)
		return nil, ErrBusy
	case <-ctx.Done():
		p.cancel(w)
		return nil, ctx.Err()
	}
}

// TryAcquire takes n units for a key if they are free. It returns nil if they are not.
func (p *Pool) TryAcquire(key Key, n int64) *Lease {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.grant(key, n)
}

// Take takes n units for a key at once, beyond every limit if need be: for work that can't be
// refused any more.
func (p *Pool) Take(key Key, n int64) *Lease {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.hold(key, n)
}

// Available returns the units that [Pool.TryAcquire] would grant a key.
func (p *Pool) Available(key Key) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()

	return max(p.available(key), 0)
}

// Revoke revokes leases for a waiter that needs n units, unless the revoked leases suffice for all
// waiters.
func (p *Pool) Revoke(key Key, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.revoking < n*p.waiting.Load() {
		p.revokeFor(key, n)
	}
}

// Contended reports whether a caller waits. It is cheap.
func (p *Pool) Contended() bool { return p.waiting.Load() > 0 }

// Release returns the units. Only the first call has an effect. A nil lease has nothing to return.
func (l *Lease) Release() {
	if l == nil {
		return
	}

	p := l.pool
	p.mu.Lock()
	defer p.mu.Unlock()

	if l.isReleased {
		return
	}

	l.isReleased = true
	p.free += l.n
	if l.isRevoked {
		p.revoking -= l.n
	} else {
		p.drop(l)
	}

	p.serve()
}

// Revoked is closed when the holder must end its work and release the lease, because another
// account needs it more.
func (l *Lease) Revoked() <-chan struct{} { return l.revocation }

// Context returns a context that also ends when the lease is revoked, with ErrBusy as its cause.
func (l *Lease) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	leaseCtx, cancel := context.WithCancelCause(ctx)
	end := make(chan struct{})
	go func() {
		select {
		case <-l.revocation:
			cancel(ErrBusy)
		case <-end:
		}
	}()

	return leaseCtx, sync.OnceFunc(func() { close(end); cancel(nil) })
}

// Held returns the units that an account and its part hold.
func (p *Pool) Held(key Key) (account, part int64) {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.held(key)
}

func (p *Pool) held(key Key) (account, part int64) {
	a := p.accounts[key.Account]
	if a == nil {
		return 0, 0
	}
	if s := a.parts[key.Part]; s != nil {
		part = s.units
	}

	return a.units, part
}

// Stats is a pool's state.
type Stats struct {
	Name     string
	Capacity int64
	InUse    int64
	Peak     int64 // highest InUse
	Waiting  int
	Refused  int64 // callers that waited in vain or could not wait, since the start
	Revoked  int64 // leases taken back, since the start
}

// Stats returns the pool's state.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()

	return Stats{Name: p.config.Name, Capacity: p.config.Capacity, InUse: p.config.Capacity - p.free,
		Peak: p.peak, Waiting: int(p.waiting.Load()), Refused: p.refusals, Revoked: p.revocations}
}
