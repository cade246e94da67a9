package bus

import (
	"time"

	"github.com/google/uuid"
	nats "github.com/nats-io/nats.go"

	"github.com/socle-dev/socle/internal/fair"
)

// item is an order to the sender: a message, a subscription, its end, or a barrier.
type item struct {
	subject string
	data    []byte
	lease   *fair.Lease

	subscribe, unsubscribe *subscription
	barrier                chan struct{}
}

// subscription is a subscription of the sender.
type subscription struct {
	subject string
	nats    *nats.Subscription
}

// flow is what other servers have not answered yet.
type flow struct {
	number   uint64 // the last ping's
	pingedAt time.Time
	isDue    bool     // a ping is due, whatever was sent
	behind   flight   // sent since the last ping
	flights  []flight // by number
}

// flight is what a pong releases.
type flight struct {
	number   uint64
	leases   []*fair.Lease
	barriers []chan struct{}
}

func (f *flight) isEmpty() bool { return len(f.leases)+len(f.barriers) == 0 }

func (f *flight) land() {
	for _, l := range f.leases {
		l.Release()
	}
	for _, c := range f.barriers {
		close(c)
	}
}

// send sends what is in the queue, and a ping behind it.
func (b *Bus) send(t *transport) {
	b.mu.Lock()
	items := b.queue
	b.queue = nil
	b.mu.Unlock()

	var sent flight
	for _, i := range items {
		b.do(t, i)
		if i.lease != nil {
			sent.leases = append(sent.leases, i.lease)
		}
		if i.barrier != nil {
			sent.barriers = append(sent.barriers, i.barrier)
		}
	}

	if number, ok := b.nextPing(sent, time.Now()); ok {
		b.write(t, b.all(), encodeNumber(pingFrame, b.id, number))
	}
}

func (b *Bus) do(t *transport, i item) {
	switch {
	case i.subscribe != nil:
		i.subscribe.nats = t.subscribe(i.subscribe.subject)
	case i.unsubscribe != nil:
		if s := i.unsubscribe.nats; s != nil {
			_ = s.Unsubscribe() // fails if the connection is closed
		}
	case i.barrier == nil:
		b.write(t, i.subject, i.data)
	}
}

func (b *Bus) write(t *transport, subject string, data []byte) {
	if t.conn.Publish(subject, b.seal.close(data)) != nil { // not connected
		b.counts.dropped.Add(1)
	}
}

// nextPing adds what was sent, and returns the number of the ping that is to follow. One ping is
// in flight at a time, unless it is late.
func (b *Bus) nextPing(sent flight, now time.Time) (number uint64, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()

	f := &b.flow
	f.behind.leases = append(f.behind.leases, sent.leases...)
	f.behind.barriers = append(f.behind.barriers, sent.barriers...)
	if len(b.peers) == 0 {
		f.behind.land()
		f.behind = flight{}
	}

	if !f.isDue {
		if f.behind.isEmpty() || len(f.flights) > 0 {
			return 0, false
		}
		if wait := pingInterval - now.Sub(f.pingedAt); wait > 0 {
			time.AfterFunc(wait, func() { signal(b.work) })
			return 0, false
		}
	}

	f.isDue, f.pingedAt = false, now
	f.number++
	f.behind.number = f.number
	f.flights = append(f.flights, f.behind)
	f.behind = flight{}
	b.landLocked()

	return f.number, true
}

// landLocked releases what all servers have answered. The bus is locked.
func (b *Bus) landLocked() {
	f := &b.flow
	acked := f.number
	for _, p := range b.peers {
		acked = min(acked, p.acked)
	}

	for len(f.flights) > 0 && f.flights[0].number <= acked {
		f.flights[0].land()
		f.flights[0] = flight{}
		f.flights = f.flights[1:]
	}
	if len(f.flights) == 0 && !f.behind.isEmpty() {
		signal(b.work)
	}
}

// pong notes a server's answer.
func (b *Bus) pong(server uuid.UUID, number uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if p := b.peers[server]; p != nil && number <= b.flow.number {
		p.acked = max(p.acked, number)
		b.landLocked()
	}
}
