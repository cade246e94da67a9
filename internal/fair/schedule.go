package fair

import (
	"cmp"
	"slices"
)

// All functions of this file need the lock of the pool.

// grant returns a lease if the key may have n units now, or nil.
func (p *Pool) grant(key Key, n int64) *Lease {
	if !p.admits(key, n) {
		return nil
	}

	a, s := p.entry(key)
	p.serial++
	a.held, a.served = a.held+n, p.serial
	s.held, s.served = s.held+n, p.serial
	p.free -= n
	p.peak = max(p.peak, p.config.Capacity-p.free)

	lease := &Lease{pool: p, key: key, n: n}
	if p.config.Revocable {
		lease.revoked = make(chan struct{})
		s.leases = append(s.leases, lease)
	}

	return lease
}

// admits reports whether the key may have n units now.
func (p *Pool) admits(key Key, n int64) bool {
	a := p.accounts[key.Account]
	if a == nil {
		return n <= p.free && n <= p.config.PerPart
	}

	if s := a.parts[key.Part]; s != nil && s.held+n > p.config.PerPart {
		return false
	}

	if a.held == 0 {
		return n <= p.free && n <= p.config.PerPart
	}

	// An account that holds little may take a part of the reserve, so that newcomers get more than
	// one unit.
	fits := n+p.config.Reserve <= p.free || 4*(a.held+n) <= p.free
	return fits && a.held+n <= p.config.PerAccount
}

// entry returns the account and the part of a key.
func (p *Pool) entry(key Key) (*account, *part) {
	a := p.accounts[key.Account]
	if a == nil {
		a = &account{name: key.Account, parts: map[string]*part{}}
		p.accounts[key.Account] = a
	}

	s := a.parts[key.Part]
	if s == nil {
		s = &part{name: key.Part}
		a.parts[key.Part] = s
	}

	return a, s
}

// forget removes the entries of a key that neither holds nor waits.
func (p *Pool) forget(key Key) {
	a := p.accounts[key.Account]
	if s := a.parts[key.Part]; s.held == 0 && len(s.queue) == 0 {
		delete(a.parts, key.Part)
	}

	if len(a.parts) == 0 {
		delete(p.accounts, key.Account)
	}
}

// drop removes a lease from what its key holds.
func (p *Pool) drop(l *Lease) {
	a, s := p.entry(l.key)
	a.held -= l.n
	s.held -= l.n
	if p.config.Revocable {
		s.leases = slices.DeleteFunc(s.leases, func(other *Lease) bool { return other == l })
	}

	p.forget(l.key)
}

// enqueue adds a waiter and revokes leases for it. It returns nil if the waiter can't be served
// ever, or if the waiting list is full and no other account waits more.
func (p *Pool) enqueue(key Key, n int64) *waiter {
	if n > min(p.config.PerPart, p.config.PerAccount) || p.config.Waiting == 0 {
		p.refused++
		return nil
	}

	w := &waiter{key: key, n: n, done: make(chan struct{})}
	a, s := p.entry(key)
	s.queue = append(s.queue, w)
	a.waiting++
	p.waiting.Add(1)

	if p.waiting.Load() > int64(p.config.Waiting) {
		refused := p.mostWaiting(key)
		p.refuse(refused)

		if refused == w {
			return nil
		}
	}

	if p.config.Revocable && !p.config.OnDemand {
		p.revokeFor(key, n)
	}

	return w
}

// mostWaiting returns the youngest waiter of the part that waits most, in the account that waits
// most. Between equals it is that of the key.
func (p *Pool) mostWaiting(key Key) *waiter {
	a := p.accounts[key.Account]
	for _, other := range p.accounts {
		if other.waiting > a.waiting {
			a = other
		}
	}

	s := a.parts[key.Part]
	if a.name != key.Account {
		s = nil
	}
	for _, other := range a.parts {
		if s == nil || len(other.queue) > len(s.queue) {
			s = other
		}
	}

	return s.queue[len(s.queue)-1]
}

// refuse ends the wait of w without a lease.
func (p *Pool) refuse(w *waiter) {
	p.refused++
	p.dequeue(w)
	close(w.done)
}

// dequeue removes w from its queue.
func (p *Pool) dequeue(w *waiter) {
	a, s := p.entry(w.key)
	s.queue = slices.DeleteFunc(s.queue, func(other *waiter) bool { return other == w })
	a.waiting--
	p.waiting.Add(-1)
	p.forget(w.key)
}

// cancel ends the wait of a caller that is gone. A lease granted to it meanwhile is passed on.
func (p *Pool) cancel(w *waiter) {
	p.mu.Lock()

	select {
	case <-w.done:
		p.mu.Unlock()
		w.lease.Release()

		return
	default:
	}

	p.refused++
	p.dequeue(w)
	p.mu.Unlock()
}

// serve grants leases to waiters while it can: to the account that holds least first, in it to the
// part that holds least. Between equals, the one served longest ago comes first.
func (p *Pool) serve() {
	for p.waiting.Load() > 0 && p.free > 0 && p.serveNext() {
	}
}

// serveNext grants the next lease. It reports false if no waiter can have one.
func (p *Pool) serveNext() bool {
	accounts := make([]*account, 0, len(p.accounts))
	for _, a := range p.accounts {
		if a.waiting > 0 {
			accounts = append(accounts, a)
		}
	}

	slices.SortFunc(accounts, func(a, b *account) int {
		return cmp.Or(cmp.Compare(a.held, b.held), cmp.Compare(a.served, b.served), cmp.Compare(a.name, b.name))
	})

	for _, a := range accounts {
		for _, s := range a.waitingParts() {
			w := s.queue[0]
			if lease := p.grant(w.key, w.n); lease != nil {
				w.lease = lease
				p.dequeue(w)
				close(w.done)

				return true
			}
		}
	}

	return false
}

// waitingParts returns the parts with waiters in the order of service.
func (a *account) waitingParts() []*part {
	parts := make([]*part, 0, len(a.parts))
	for _, s := range a.parts {
		if len(s.queue) > 0 {
			parts = append(parts, s)
		}
	}

	slices.SortFunc(parts, func(a, b *part) int {
		return cmp.Or(cmp.Compare(a.held, b.held), cmp.Compare(a.served, b.served), cmp.Compare(a.name, b.name))
	})

	return parts
}

// revokeFor revokes leases until a waiter can have n units, as long as their holder keeps at least
// as much as the waiter would hold. Inside the waiter's own account, its part is the measure.
func (p *Pool) revokeFor(key Key, n int64) {
	own, ownPart := p.entry(key)
	defer p.forget(key)

	if ownPart.held+n > p.config.PerPart {
		return
	}

	missing := n - p.free
	if own.held > 0 {
		missing = max(missing+p.config.Reserve, own.held+n-p.config.PerAccount)
	}

	for missing > 0 {
		victim := own
		if own.held+n <= p.config.PerAccount {
			victim = p.largest(own)
		}

		s := victim.largestPart(ownPart)
		if len(s.leases) == 0 {
			return
		}

		lease := s.leases[0]
		kept, wanted := victim.held-lease.n, own.held+n
		if victim == own {
			kept, wanted = s.held-lease.n, ownPart.held+n
		}
		if kept < wanted {
			return
		}

		p.revoked++
		p.revoking += lease.n
		lease.isRevoked = true
		p.drop(lease)
		close(lease.revoked)
		missing -= lease.n
	}
}

// largest returns the account that holds most; between equals it is a.
func (p *Pool) largest(a *account) *account {
	for _, other := range p.accounts {
		if other.held > a.held {
			a = other
		}
	}

	return a
}

// largestPart returns the part that holds most; between equals it is s, if that is of a.
func (a *account) largestPart(s *part) *part {
	largest := a.parts[s.name]
	for _, other := range a.parts {
		if largest == nil || other.held > largest.held {
			largest = other
		}
	}

	return largest
}
