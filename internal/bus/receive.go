package bus

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/google/uuid"
)

// receive handles what arrives, until ctx ends.
func (b *Bus) receive(ctx context.Context, t *transport) {
	b.Handler.Connected()

	ticker := time.NewTicker(tickInterval)
	defer ticker.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case m := <-t.inbox:
			b.handle(b.seal.open(m.Data), time.Now())
		case now := <-ticker.C:
			b.tick(now)
		}
	}
}

func (b *Bus) handle(frame []byte, now time.Time) {
	kind, sender, body, ok := decode(frame)
	if !ok || sender == b.id {
		return
	}
	if kind == byeFrame {
		b.drop(sender, "another server left")
		return
	}

	b.hear(sender, now)
	switch kind {
	case dataFrame:
		b.counts.received.Add(1)
		b.Handler.Receive(sender, body)
	case pingFrame:
		number := binary.BigEndian.Uint64(body)
		b.enqueue(item{subject: b.direct(sender), data: encodeNumber(pongFrame, b.id, number)})
	case pongFrame:
		b.pong(sender, binary.BigEndian.Uint64(body))
	}
}

// hear notes a sign of life. A new server learns of this one at once.
func (b *Bus) hear(server uuid.UUID, now time.Time) {
	b.mu.Lock()
	p := b.peers[server]
	isNew := p == nil
	if isNew {
		p = &peer{acked: b.flow.number}
		b.peers[server] = p
		b.flow.isDue = true
	}
	p.heardAt = now
	b.isActive.Store(true)
	b.mu.Unlock()

	if isNew {
		b.Log.Info("another server joined", "server", server)
		signal(b.work)
		b.Handler.Joined(server)
	}
}

// drop forgets a server. The log has the reason.
func (b *Bus) drop(server uuid.UUID, reason string) {
	b.mu.Lock()
	_, isKnown := b.peers[server]
	delete(b.peers, server)
	b.isActive.Store(len(b.peers) > 0)
	b.landLocked()
	b.mu.Unlock()

	if isKnown {
		b.Log.Info(reason, "server", server)
		b.Handler.Lost(server)
		signal(b.wake)
	}
}

// tick sends heartbeats, and drops the servers that have sent none.
func (b *Bus) tick(now time.Time) {
	var lost []uuid.UUID
	b.mu.Lock()
	for server, p := range b.peers {
		if now.Sub(p.heardAt) > lostAfter {
			lost = append(lost, server)
		}
	}

	wait := heartbeat
	if len(b.flow.flights) > 0 {
		wait = pingRetry
	}
	if now.Sub(b.flow.pingedAt) >= wait {
		b.flow.isDue = true
	}
	isDue := b.flow.isDue
	b.mu.Unlock()

	for _, server := range lost {
		b.drop(server, "another server is out of reach")
	}
	if isDue {
		signal(b.work)
	}

	b.Handler.Tick(now)
}
