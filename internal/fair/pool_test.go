package fair

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// key returns a key of a one-letter account; "a1" is part 1 of account a.
func key(name string) Key { return Key{name[:1], name[1:]} }

// take takes places at once and fails the test if they are not free.
func take(t *testing.T, p *Pool, names ...string) []*Lease {
	t.Helper()

	leases := make([]*Lease, len(names))
	for i, name := range names {
		if leases[i] = p.TryAcquire(key(name), 1); leases[i] == nil {
			t.Fatalf("no place for %s, number %d of %v", name, i+1, names)
		}
	}

	return leases
}

// queue is a pool with callers that wait for a place.
type queue struct {
	*Pool
	t *testing.T

	mu     sync.Mutex
	served []string
	failed []string
	leases map[string][]*Lease
}

// wait starts callers that wait for a place, in this order.
func (q *queue) wait(ctx context.Context, names ...string) {
	q.t.Helper()

	if q.leases == nil {
		q.leases = map[string][]*Lease{}
	}

	for _, name := range names {
		go func() {
			lease, err := q.Acquire(ctx, key(name), 1)

			q.mu.Lock()
			defer q.mu.Unlock()

			if err != nil {
				q.failed = append(q.failed, name)
				return
			}

			q.served = append(q.served, name)
			q.leases[name] = append(q.leases[name], lease)
		}()
		synctest.Wait()
	}
}

// want compares the callers that were served, in this order, and those that failed, sorted.
func (q *queue) want(served, failed []string) {
	q.t.Helper()
	synctest.Wait()

	q.mu.Lock()
	defer q.mu.Unlock()

	sorted := slices.Sorted(slices.Values(q.failed))
	if !slices.Equal(q.served, served) || !slices.Equal(sorted, failed) {
		q.t.Errorf("served %v, failed %v, want %v, %v", q.served, sorted, served, failed)
	}
}

func TestReserve(t *testing.T) {
	t.Parallel()

	p := New(Config{Capacity: 8, Reserve: 3})
	take(t, p, "a1", "a1", "a2", "a2", "a3")

	if p.TryAcquire(key("a4"), 1) != nil {
		t.Error("an account took a place of the reserve")
	}

	take(t, p, "b", "c", "d") // each holds nothing

	if got := p.Stats(); got.InUse != 8 {
		t.Errorf("got %+v, want 8 in use", got)
	}
}

// TestTake: work that can't be refused may overdraw the pool, and others wait until it has ended.
func TestTake(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		q := &queue{Pool: New(Config{Capacity: 4, PerAccount: 2, Waiting: 4}), t: t}
		taken := q.Take(key("a"), 6)
		if got := q.Stats().InUse; got != 6 || q.Available(key("b")) != 0 {
			t.Errorf("got %d in use, %d available, want 6, 0", got, q.Available(key("b")))
		}

		q.wait(t.Context(), "b")
		q.want(nil, nil)
		taken.Release()
		q.want([]string{"b"}, nil)

		if got := q.Available(key("a")); got != 2 {
			t.Errorf("got %d available, want 2 per account", got)
		}
	})
}

func TestLimits(t *testing.T) {
	t.Parallel()

	p := New(Config{Capacity: 8, PerAccount: 4, PerPart: 2})
	leases := take(t, p, "a1", "a1", "a2", "a2")

	for _, name := range []string{"a1", "a3"} {
		if p.TryAcquire(key(name), 1) != nil {
			t.Errorf("%s took a place beyond a limit", name)
		}
	}

	leases[0].Release()
	leases[0].Release() // no effect

	take(t, p, "a3")
	if p.TryAcquire(key("a4"), 1) != nil {
		t.Error("a second release returned a place again")
	}

	if _, err := p.Acquire(t.Context(), key("b"), 3); !errors.Is(err, ErrBusy) {
		t.Errorf("Acquire beyond the limit of a part = %v, want ErrBusy at once", err)
	}
}

// TestOrder: whoever holds least is served first, and then whoever was served longest ago.
func TestOrder(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		capacity             int64
		held, waiting, order []string
	}{
		"least holder":     {3, []string{"a", "a", "b"}, []string{"a", "a", "b", "c"}, []string{"c", "a", "b", "a"}},
		"equal holders":    {1, []string{"a"}, []string{"a", "a", "a", "b", "b"}, []string{"b", "a", "b", "a", "a"}},
		"parts":            {1, []string{"a1"}, []string{"a1", "a1", "a2", "b"}, []string{"b", "a2", "a1", "a1"}},
		"two levels":       {2, []string{"a1", "a2"}, []string{"a3", "a4", "b1", "b1"}, []string{"b1", "a3", "b1", "a4"}},
		"first come first": {1, []string{"z"}, []string{"a", "a", "a"}, []string{"a", "a", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				q := &queue{Pool: New(Config{Capacity: c.capacity, Waiting: 10}), t: t}
				held := take(t, q.Pool, c.held...)
				q.wait(t.Context(), c.waiting...)

				for len(q.served) < len(c.order) {
					held[0].Release()
					held = held[1:]
					synctest.Wait()

					last := q.served[len(q.served)-1]
					held = append(held, q.leases[last][len(q.leases[last])-1])
				}

				q.want(c.order, nil)
			})
		})
	}
}

// TestWaitingList: a full list refuses the youngest caller of whoever waits most.
func TestWaitingList(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		q := &queue{Pool: New(Config{Capacity: 1, Waiting: 4}), t: t}
		held := take(t, q.Pool, "z")

		q.wait(t.Context(), "a1", "a1", "a1", "a2")
		q.want(nil, nil)
		q.wait(t.Context(), "a2") // in its account a1 waits more
		q.want(nil, []string{"a1"})
		q.wait(t.Context(), "a2") // as many: the newcomer itself
		q.want(nil, []string{"a1", "a2"})
		q.wait(t.Context(), "b", "c")
		synctest.Wait()

		if n := len(q.failed); n != 4 || slices.Contains(q.failed, "b") || slices.Contains(q.failed, "c") {
			t.Errorf("refused %v, want two more of account a", q.failed)
		}

		held[0].Release()
		synctest.Wait()
		q.leases[q.served[0]][0].Release()
		synctest.Wait()

		if slices.Sort(q.served); !slices.Contains(q.served, "b") && !slices.Contains(q.served, "c") {
			t.Errorf("served %v, want b or c among the first two", q.served)
		}
	})
}

// TestWaitEnds: the end of a context, or the timeout, ends a wait and leaves no trace.
func TestWaitEnds(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		q := &queue{Pool: New(Config{Capacity: 1, Waiting: 4, Timeout: time.Minute}), t: t}
		held := take(t, q.Pool, "a")

		ctx, cancel := context.WithCancel(t.Context())
		q.wait(ctx, "a", "b")
		cancel()
		q.want(nil, []string{"a", "b"})

		q.wait(t.Context(), "c")
		<-time.After(time.Minute)
		q.want(nil, []string{"a", "b", "c"})

		if got := q.Stats(); got.Waiting != 0 || got.Refused != 3 {
			t.Errorf("got %+v, want 3 refused, none waiting", got)
		}

		held[0].Release()
		if n := len(q.accounts); n != 0 {
			t.Errorf("%d accounts are left", n)
		}

		if _, err := q.Acquire(ctx, key("a"), 1); !errors.Is(err, context.Canceled) {
			t.Errorf("Acquire after the end of its context = %v", err)
		}
	})
}

// TestRevoke: a newcomer gets the oldest place of the largest part of the largest account.
func TestRevoke(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		q := &queue{Pool: New(Config{Capacity: 6, Waiting: 4, Revocable: true}), t: t}
		held := take(t, q.Pool, "a1", "a2", "a2", "a2", "b", "b")

		isRevoked := func(l *Lease) bool {
			select {
			case <-l.Revoked():
				return true
			default:
				return false
			}
		}

		q.wait(t.Context(), "c")
		for i, l := range held {
			if got, want := isRevoked(l), i == 1; got != want {
				t.Errorf("place %d: revoked %v, want %v", i, got, want)
			}
		}

		q.want(nil, nil) // until the holder has ended
		held[1].Release()
		q.want([]string{"c"}, nil)

		// All hold two: what a newcomer gets leaves nobody with less than it has.
		q.wait(t.Context(), "c")
		synctest.Wait()

		if !isRevoked(held[0]) && !isRevoked(held[2]) {
			t.Error("account a keeps three places while c asks for its second")
		}

		q.wait(t.Context(), "c")
		if n := q.Stats().Revoked; n != 2 {
			t.Errorf("%d places were revoked, want 2: c would hold more than the others", n)
		}
	})
}

// TestRevokeInAccount: at its limit, an account makes room for a part from its largest part.
func TestRevokeInAccount(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		q := &queue{Pool: New(Config{Capacity: 9, PerAccount: 3, Waiting: 4, Revocable: true}), t: t}
		held := take(t, q.Pool, "a1", "a1", "a1", "b", "b", "b")
		q.wait(t.Context(), "a2")

		<-held[0].Revoked()
		held[0].Release()
		q.want([]string{"a2"}, nil)

		ctx, cancel := q.leases["a2"][0].Context(t.Context())
		defer cancel()

		q.wait(t.Context(), "a3")
		<-held[1].Revoked()

		if ctx.Err() != nil {
			t.Error("the context of a lease ended that was not revoked")
		}
	})
}

// TestPoolInvariants runs random callers against a small pool.
func TestPoolInvariants(t *testing.T) {
	t.Parallel()

	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := Config{Capacity: 4 + r.Int64N(8), Waiting: r.IntN(6), Revocable: seed%2 == 0, Timeout: time.Second}
		c.Reserve = r.Int64N(c.Capacity / 2)
		c.PerAccount = 1 + r.Int64N(c.Capacity-c.Reserve)
		c.PerPart = 1 + r.Int64N(c.PerAccount)

		synctest.Test(t, func(t *testing.T) {
			p := New(c)
			for caller := range uint64(60) {
				go func() {
					r := rand.New(rand.NewPCG(seed, caller+2))
					<-time.After(time.Duration(r.Int64N(int64(time.Second))))

					k := Key{fmt.Sprint(r.IntN(4)), fmt.Sprint(r.IntN(3))}
					checkAvailable(t, p, k)
					lease, err := p.Acquire(t.Context(), k, 1+r.Int64N(2))
					check(t, p)
					if err != nil {
						return
					}

					select {
					case <-lease.Revoked(): // nil: never
					case <-time.After(time.Duration(r.Int64N(int64(time.Second)))):
					}

					lease.Release()
					check(t, p)
				}()
			}

			<-time.After(time.Minute)
			synctest.Wait() // orders the reads below after all callers

			if p.free != c.Capacity || p.waiting.Load() != 0 || len(p.accounts) != 0 {
				t.Errorf("seed %d: %d free of %d, %d waiting, %d accounts at the end", seed, p.free, c.Capacity,
					p.waiting.Load(), len(p.accounts))
			}
		})
	}
}

// checkAvailable checks that a key can take what is available, and no more.
func checkAvailable(t *testing.T, p *Pool, k Key) {
	n := p.Available(k)

	p.mu.Lock()
	defer p.mu.Unlock()

	if (n > 0 && !p.admits(k, n)) || p.admits(k, n+1) {
		t.Errorf("%+v: %d available for %+v, admitted %t, one more %t", p.config, n, k, p.admits(k, n), p.admits(k, n+1))
	}
}

// check checks the invariants of a pool.
func check(t *testing.T, p *Pool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	var held int64
	waiting := 0
	for name, a := range p.accounts {
		if a.units > max(p.config.PerAccount, p.config.PerPart) {
			t.Errorf("%+v: account %s holds %d", p.config, name, a.units)
		}

		held += a.units
		waiting += a.waiting

		for part, s := range a.parts {
			if len(s.queue) > 0 && p.admits(Key{name, part}, s.queue[0].n) {
				t.Errorf("%+v: %s of %s waits for free capacity", p.config, part, name)
			}
		}
	}

	if p.free < 0 || held > p.config.Capacity-p.free || int64(waiting) != p.waiting.Load() ||
		waiting > p.config.Waiting {
		t.Errorf("%+v: %d free, %d held, %d of %d waiting", p.config, p.free, held, waiting, p.waiting.Load())
	}
}

func TestStranger(t *testing.T) {
	t.Parallel()

	for address, want := range map[string]Key{
		"192.0.2.7":            {"network 192.0.2.7", ""},
		"::ffff:192.0.2.7":     {"network 192.0.2.7", ""},
		"2001:db8:1:2:3:4:5:6": {"network 2001:db8:1::/48", "2001:db8:1:2::/64"},
		"2001:db8:1:9:3:4:5:6": {"network 2001:db8:1::/48", "2001:db8:1:9::/64"},
		"fe80::1%eth0":         {"network fe80::/48", "fe80::/64"},
	} {
		if got := Stranger(netip.MustParseAddr(address)); got != want {
			t.Errorf("Stranger(%s) = %+v, want %+v", address, got, want)
		}
	}
}

// TestResize shrinks a pool below what is held, and lets it grow again.
func TestResize(t *testing.T) {
	t.Parallel()

	p := New(Config{Capacity: 8, Reserve: 2, Waiting: 4})
	var held []*Lease
	for range 6 {
		held = append(held, p.TryAcquire(Key{Account: "a"}, 1))
	}

	p.Resize(Config{Capacity: 4, Reserve: 1})
	if p.TryAcquire(Key{Account: "b"}, 1) != nil {
		t.Error("got a lease of a pool that holds more than it has")
	}
	if got := p.Stats(); got.InUse != 6 || got.Capacity != 4 || p.PerAccount() != 3 {
		t.Errorf("got %+v and %d per account, want 6 of 4 in use, 3 per account", got, p.PerAccount())
	}

	for _, lease := range held[:3] {
		lease.Release()
	}
	if lease := p.TryAcquire(Key{Account: "b"}, 1); lease == nil {
		t.Error("got no lease of the one that is free")
	}

	granted := make(chan error, 1)
	go func() {
		_, err := p.Acquire(t.Context(), Key{Account: "c"}, 2)
		granted <- err
	}()
	for p.Stats().Waiting == 0 {
		runtime.Gosched()
	}

	p.Resize(Config{Capacity: 8, Reserve: 1})
	if err := <-granted; err != nil {
		t.Errorf("got %v of a pool that has grown", err)
	}
}

// TestResizeRevokes shrinks pools that can take leases back: one by itself, one when it is told to.
func TestResizeRevokes(t *testing.T) {
	t.Parallel()

	for _, onDemand := range []bool{false, true} {
		p := New(Config{Capacity: 6, PerAccount: 6, Revocable: true, OnDemand: onDemand})
		first, second := p.TryAcquire(Key{Account: "large"}, 1), p.TryAcquire(Key{Account: "large"}, 1)
		small := p.TryAcquire(Key{Account: "small"}, 1)

		p.Resize(Config{Capacity: 2, PerAccount: 2})
		if got := isRevoked(first); got == onDemand {
			t.Errorf("on demand %t: got %t, revoked, of the oldest lease of the largest account", onDemand, got)
		}

		p.Shed(1)
		if isRevoked(second) == onDemand || !isRevoked(first) || isRevoked(small) {
			t.Errorf("on demand %t: Shed revokes another lease than the largest account's oldest", onDemand)
		}

		p.Shed(100) // more than there is
		if !isRevoked(small) {
			t.Errorf("on demand %t: a lease is left", onDemand)
		}
	}
}

func isRevoked(l *Lease) bool {
	select {
	case <-l.Revoked():
		return true
	default:
		return false
	}
}
