package fair

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// ErrBusy is the failure of [Pool.Acquire] if the capacity is not free in time, or if the waiting
// list has no room.
var ErrBusy = errors.New("fair: no capacity is free")

// Config configures a [Pool]. Capacity, PerAccount, PerPart and Reserve have one unit, which is the
// caller's choice: places, or bytes.
type Config struct {
	Name     string // in metrics
	Capacity int64

	PerAccount int64 // maximum of an account; 0: all but the reserve
	PerPart    int64 // maximum of a part; 0: that of its account
	Reserve    int64 // only for accounts that hold nothing

	Waiting int           // maximum number of waiting callers; 0: none waits
	Timeout time.Duration // limit for a waiting caller; 0: until its context ends

	// Revocable pools take leases back from the account that holds most, if an account that holds
	// less finds no capacity. The holder of a lease must watch [Lease.Revoked].
	Revocable bool
	OnDemand  bool // a revocable pool revokes leases only in [Pool.Revoke]
}

// Pool is a capacity that accounts share. It is safe for concurrent use.
type Pool struct {
	config Config

	waiting atomic.Int64 // written under mu

	mu       sync.Mutex
	free     int64
	revoking int64  // units of revoked leases that are not released yet
	serial   uint64 // number of the last grant
	accounts map[string]*account
	peak     int64
	refused  int64
	revoked  int64
}

// account is an account that holds or waits.
type account struct {
	name    string
	held    int64 // without revoked leases
	waiting int
	served  uint64 // serial of its last grant
	parts   map[string]*part
}

// part is a part of an account that holds or waits.
type part struct {
	name   string
	held   int64
	served uint64
	queue  []*waiter // first come, first served
	leases []*Lease  // leases of a revocable pool, oldest first
}

// waiter is a caller in the queue of its part.
type waiter struct {
	key  Key
	n    int64
	done chan struct{} // closed with the outcome

	lease *Lease // nil: refused
}

// Lease is a share of a pool until its release.
type Lease struct {
	pool    *Pool
	key     Key
	n       int64
	revoked chan struct{} // nil if the pool is not revocable

	released, isRevoked bool
}

// New returns a pool.
func New(c Config) *Pool {
	if c.PerAccount == 0 {
		c.PerAccount = c.Capacity - c.Reserve
	}
	if c.PerPart == 0 {
		c.PerPart = c.PerAccount
	}

	return &Pool{config: c, free: c.Capacity, accounts: map[string]*account{}}
}

// PerAccount returns the maximum that one account may hold.
func (p *Pool) PerAccount() int64 { return p.config.PerAccount }

// Acquire takes n units for a key, and waits for them. It fails with ErrBusy, or with the error of
// ctx.
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

// Revoke revokes leases for a waiter of n units, unless enough are revoked for all waiters.
func (p *Pool) Revoke(key Key, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.revoking < n*p.waiting.Load() {
		p.revokeFor(key, n)
	}
}

// Contended reports whether a caller waits. It is cheap.
func (p *Pool) Contended() bool { return p.waiting.Load() > 0 }

// Release returns the units. Only the first call has an effect; that of a nil lease has none.
func (l *Lease) Release() {
	if l == nil {
		return
	}

	p := l.pool
	p.mu.Lock()
	defer p.mu.Unlock()

	if l.released {
		return
	}

	l.released = true
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
func (l *Lease) Revoked() <-chan struct{} { return l.revoked }

// Context returns a context that also ends when the lease is revoked, with ErrBusy as its cause.
func (l *Lease) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	bounded, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		select {
		case <-l.revoked:
			cancel(ErrBusy)
		case <-ended:
		}
	}()

	return bounded, sync.OnceFunc(func() { close(ended); cancel(nil) })
}

// Held returns the units that an account and its part hold.
func (p *Pool) Held(key Key) (account, part int64) {
	p.mu.Lock()
	defer p.mu.Unlock()

	a := p.accounts[key.Account]
	if a == nil {
		return 0, 0
	}
	if s := a.parts[key.Part]; s != nil {
		part = s.held
	}

	return a.held, part
}

// Stats is the state of a pool.
type Stats struct {
	Name     string
	Capacity int64
	InUse    int64
	Peak     int64 // highest InUse
	Waiting  int
	Refused  int64 // callers that waited in vain or could not wait, since the start
	Revoked  int64 // leases taken back, since the start
}

// Stats returns the state of the pool.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()

	return Stats{Name: p.config.Name, Capacity: p.config.Capacity, InUse: p.config.Capacity - p.free,
		Peak: p.peak, Waiting: int(p.waiting.Load()), Refused: p.refused, Revoked: p.revoked}
}
