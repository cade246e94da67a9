package bus

import (
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fleet"
)

// silent is a handler without interest.
type silent struct{ lost []uuid.UUID }

func (*silent) Connected()                {}
func (*silent) Joined(uuid.UUID)          {}
func (*silent) Receive(uuid.UUID, []byte) {}
func (s *silent) Lost(server uuid.UUID)   { s.lost = append(s.lost, server) }
func (*silent) Tick(time.Time)            {}

// newBus returns a bus that does not run, and its handler.
func newBus() (*Bus, *silent) {
	h := &silent{}
	log := slog.New(slog.DiscardHandler)
	return New(Config{Secret: []byte("secret"), Handler: h, Log: log,
		NATSURL: "nats://unused", Servers: &fleet.Servers{ID: uuid.New()}}), h
}

// flush takes what is in the queue, as the sender does, and returns the number of the ping behind
// it, 0 without one.
func (b *Bus) flush() uint64 {
	var sent flight
	for _, i := range b.queue {
		if i.lease != nil {
			sent.leases = append(sent.leases, i.lease)
		}
		if i.barrier != nil {
			sent.barriers = append(sent.barriers, i.barrier)
		}
	}
	b.queue = nil
	number, _ := b.nextPing(sent, time.Now())

	return number
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestMemoryIsBounded has a server that does not answer, and an account that sends all it can.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		b, h := newBus()
		greedy, modest := fair.Key{Account: "a", Part: "1"}, fair.Key{Account: "b", Part: "1"}
		data := make([]byte, 1<<18)

		if !b.Publish(greedy, "x", data) || len(b.queue) > 0 || !isClosed(b.Barrier()) {
			t.Error("a server alone sends or waits")
		}

		slow := uuid.New()
		b.handle(encodeNumber(pingFrame, slow, 1), time.Now())
		sent := 0
		for b.Publish(greedy, "x", data) {
			sent++
		}
		if most := maxBytes / 4 >> 18; sent > most || sent < most-1 {
			t.Errorf("got %d messages of one project, want about %d", sent, most)
		}
		if !b.Publish(modest, "x", data) {
			t.Error("another account has no room")
		}

		barrier := b.Barrier()
		number := b.flush()
		if number == 0 || b.Publish(greedy, "x", data) || isClosed(barrier) {
			t.Errorf("got room before the answer to ping %d", number)
		}
		b.handle(encodeNumber(pongFrame, slow, number+1), time.Now()) // forged
		if isClosed(barrier) {
			t.Error("the answer to no ping counts")
		}
		b.handle(encodeNumber(pongFrame, slow, number), time.Now())
		if !isClosed(barrier) || b.bytes.Stats().InUse != 0 {
			t.Errorf("got %d bytes in use after the answer", b.bytes.Stats().InUse)
		}

		b.Publish(greedy, "x", data)
		barrier = b.Barrier()
		time.Sleep(pingInterval)
		b.flush()
		for range 20 {
			time.Sleep(tickInterval)
			b.tick(time.Now())
			b.flush()
		}
		if !isClosed(barrier) || b.bytes.Stats().InUse != 0 || b.Active() || len(h.lost) != 1 || h.lost[0] != slow {
			t.Errorf("got %d bytes in use, lost %v after the server was silent", b.bytes.Stats().InUse, h.lost)
		}
		if got := b.Stats(); got.Dropped != 2 || got.Servers != 0 {
			t.Errorf("got %+v, want 2 dropped messages", got)
		}
	})
}

// TestSlowestServerCounts checks that a barrier waits for all servers but those that came later.
func TestSlowestServerCounts(t *testing.T) {
	t.Parallel()

	b, _ := newBus()
	one, two, late := uuid.New(), uuid.New(), uuid.New()
	b.handle(encode(dataFrame, one, nil), time.Now())
	b.handle(encode(dataFrame, two, nil), time.Now())
	barrier := b.Barrier()
	number := b.flush()
	b.handle(encode(dataFrame, late, nil), time.Now())

	b.handle(encodeNumber(pongFrame, one, number), time.Now())
	if isClosed(barrier) {
		t.Error("the barrier does not wait for the second server")
	}
	b.handle(encode(byeFrame, two, nil), time.Now())
	if !isClosed(barrier) {
		t.Error("the barrier waits for a server that has left, or for a new one")
	}
}

// TestMalformedFrames: none has an effect.
func TestMalformedFrames(t *testing.T) {
	t.Parallel()

	b, _ := newBus()
	for _, frame := range [][]byte{nil, {dataFrame}, encode(pingFrame, uuid.New(), []byte{1}),
		encode(pongFrame, uuid.New(), nil), encode(dataFrame, b.id, nil)} {
		b.handle(frame, time.Now())
		if b.Active() {
			t.Fatalf("%v is a server", frame)
		}
	}

	b.handle(encode(99, uuid.New(), nil), time.Now()) // a later release
	if !b.Active() {
		t.Error("a server of a later release is none")
	}
}

// TestAddresses checks where a server listens, and what it registers.
func TestAddresses(t *testing.T) {
	t.Parallel()

	for addr, want := range map[string]string{
		"": "10.0.0.5 -1", "10.1.1.1:7000": "10.1.1.1 7000", ":7000": ":: 7000", "10.1.1.1:0": "10.1.1.1 -1",
	} {
		b, _ := newBus()
		b.Addr, b.host = addr, func() string { return "10.0.0.5" }
		o, err := b.options(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.Cluster.Host + " " + strconv.Itoa(o.Cluster.Port); got != want {
			t.Errorf("%q: got %s, want %s", addr, got, want)
		}

		o.Cluster.Port = 7000
		if got := b.addressOf(&transport{options: o}); addr == ":7000" && got != "10.0.0.5:7000" {
			t.Errorf("%q: registered as %s", addr, got)
		}
	}
}
