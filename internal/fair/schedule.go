package fair

import (
	"cmp"
	"slices"
)

// reserveShare is the share of the free units, as a divisor, up to which an account may use the
// reserve.
const reserveShare = 4

// Callers of the functions in this file hold p.mu, except those of cancel.

// grant returns a lease if the key may have n units now, or nil.
func (p *Pool) grant(key Key, n int64) *Lease {
	if !p.admits(key, n) {
		return nil
	}

	return p.hold(key, n)
}

// hold returns a lease of n units for a key.
func (p *Pool) hold(key Key, n int64) *Lease {
	a, s := p.entry(key)
	p.serial++
	a.units, a.lastGrant = a.units+n, p.serial
	s.units, s.lastGrant = s.units+n, p.serial
	p.free -= n
	p.peak = max(p.peak, p.config.Capacity-p.free)

	lease := &Lease{pool: p, key: key, n: n}
	if p.config.Revocable {
		lease.revocation = make(chan struct{})
		s.leases = append(s.leases, lease)
	}

	return lease
}

// admits reports whether the key may have n units now.
func (p *Pool) admits(key Key, n int64) bool { return n <= p.available(key) }

// available returns the units that the key may have now. It is negative if none are left.
func (p *Pool) available(key Key) int64 {
	account, part := p.held(key)
	n := min(p.free, p.config.PerPart-part)
	if account == 0 {
		return n
	}

	// An account that holds little may use some reserve, so that newcomers get more than one unit.
	beyond := max(p.free-p.config.Reserve, p.free/reserveShare-account)
	return min(n, beyond, p.config.PerAccount-account)
}

// entry returns the entries for a key and creates them if needed.
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

// forget removes a key's entries if it neither holds nor waits.
func (p *Pool) forget(key Key) {
	a := p.accounts[key.Account]
	if s := a.parts[key.Part]; s.units == 0 && len(s.queue) == 0 {
		delete(a.parts, key.Part)
	}

	if len(a.parts) == 0 {
		delete(p.accounts, key.Account)
	}
}

// drop deducts a lease from the units that its key holds.
func (p *Pool) drop(l *Lease) {
	a, s := p.entry(l.key)
	a.units -= l.n
	s.units -= l.n
	if p.config.Revocable {
		s.leases = slices.DeleteFunc(s.leases, func(other *Lease) bool { return other == l })
	}

	p.forget(l.key)
}

// enqueue adds a waiter and revokes leases for it. It returns nil if n exceeds a limit, or if the
// queue is full and no other account waits more.
func (p *Pool) enqueue(key Key, n int64) *waiter {
	if n > min(p.config.PerPart, p.config.PerAccount) || p.config.Waiting == 0 {
		p.refusals++
		return nil
	}

	w := &waiter{key: key, n: n, done: make(chan struct{})}
	a, s := p.entry(key)
	s.queue = append(s.queue, w)
	a.waiting++
	p.waiting.Add(1)

	if p.waiting.Load() > int64(p.config.Waiting) {
		victim := p.mostWaiting(key)
		p.refuse(victim)

		if victim == w {
			return nil
		}
	}

	if p.config.Revocable && !p.config.OnDemand {
		p.revokeFor(key, n)
	}

	return w
}

// mostWaiting returns the youngest waiter in the part that waits most, within the account that
// waits most. The key wins ties.
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

// refuse ends w's wait without a lease.
func (p *Pool) refuse(w *waiter) {
	p.refusals++
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

// cancel ends the wait of a caller that gave up. It releases a lease granted meanwhile.
func (p *Pool) cancel(w *waiter) {
	p.mu.Lock()

	select {
	case <-w.done:
		p.mu.Unlock()
		w.lease.Release()

		return
	default:
	}

	p.refusals++
	p.dequeue(w)
	p.mu.Unlock()
}

// serve grants leases while it can: first to the account that holds least, and within it to the
// part that holds least. The oldest last grant wins ties.
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
		return cmp.Or(cmp.Compare(a.units, b.units), cmp.Compare(a.lastGrant, b.lastGrant), cmp.Compare(a.name, b.name))
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

// waitingParts returns the parts with waiters, the next to serve first.
func (a *account) waitingParts() []*part {
	parts := make([]*part, 0, len(a.parts))
	for _, s := range a.parts {
		if len(s.queue) > 0 {
			parts = append(parts, s)
		}
	}

	slices.SortFunc(parts, func(a, b *part) int {
		return cmp.Or(cmp.Compare(a.units, b.units), cmp.Compare(a.lastGrant, b.lastGrant), cmp.Compare(a.name, b.name))
	})

	return parts
}

// revokeFor revokes leases until a waiter can have n units, as long as each holder keeps at least
// as many units as the waiter would hold. It compares accounts, or parts within the waiter's
// account.
func (p *Pool) revokeFor(key Key, n int64) {
	claimant, claimantPart := p.entry(key)
	defer p.forget(key)

	if claimantPart.units+n > p.config.PerPart {
		return
	}

	missing := n - p.free
	if claimant.units > 0 {
		missing = max(missing+p.config.Reserve, claimant.units+n-p.config.PerAccount)
	}

	for missing > 0 {
		victim := claimant
		if claimant.units+n <= p.config.PerAccount {
			victim = p.largest(claimant)
		}

		s := victim.largestPart(claimantPart)
		if len(s.leases) == 0 {
			return
		}

		lease := s.leases[0]
		holderUnits, claimantUnits := victim.units-lease.n, claimant.units+n
		if victim == claimant {
			holderUnits, claimantUnits = s.units-lease.n, claimantPart.units+n
		}
		if holderUnits < claimantUnits {
			return
		}

		p.revoke(lease)
		missing -= lease.n
	}
}

// shed revokes leases of n units from the accounts that hold most.
func (p *Pool) shed(n int64) {
	for n > 0 {
		victim := p.largest(&account{})
		s := victim.largestPart(&part{})
		if s == nil || len(s.leases) == 0 {
			return
		}

		n -= s.leases[0].n
		p.revoke(s.leases[0])
	}
}

// revoke takes a lease back. Its units are free when the holder releases it.
func (p *Pool) revoke(l *Lease) {
	p.revocations++
	p.revoking += l.n
	l.isRevoked = true
	p.drop(l)
	close(l.revocation)
}

// largest returns the account that holds most. a wins ties.
func (p *Pool) largest(a *account) *account {
	for _, other := range p.accounts {
		if other.units > a.units {
			a = other
		}
	}

	return a
}

// largestPart returns the part that holds most. s wins ties if it belongs to a.
func (a *account) largestPart(s *part) *part {
	largest := a.parts[s.name]
	for _, other := range a.parts {
		if largest == nil || other.units > largest.units {
			largest = other
		}
	}

	return largest
}
