package bus

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fleet"
)

const (
	heartbeat    = 2 * time.Second // between pings to servers that get no others
	lostAfter    = 6 * time.Second // without a sign of life of a server
	pingRetry    = time.Second     // for a pong
	pingInterval = 5 * time.Millisecond
	tickInterval = 500 * time.Millisecond

	// maxBytes bounds the messages that other servers have not handled yet.
	maxBytes    = 64 << 20
	messageCost = 256     // bytes of a message beside its data
	maxMessage  = 1 << 20 // also the default of a NATS server
)

// Handler receives what other servers send. Its methods are called one at a time, in the order of
// events.
type Handler interface {
	// Connected is called once, before all others. Subscriptions have no effect before.
	Connected()
	Joined(server uuid.UUID)
	// Receive receives the data of a message, which it may keep.
	Receive(server uuid.UUID, data []byte)
	// Lost says that a server has stopped or is out of reach. It can join again.
	Lost(server uuid.UUID)
	// Tick is called every half second.
	Tick(now time.Time)
}

// Config has the dependencies of a [Bus].
type Config struct {
	Secret []byte // the install's
	// Addr is the host:port at which other servers reach this one, and on which it listens. Without
	// a host, or a port, it is the machine's address in the network of the platform database, or a
	// free port.
	Addr    string
	NATSURL string // existing NATS servers, separated by commas; "": none
	Servers *fleet.Servers
	Handler Handler
	Log     *slog.Logger

	// Advertise returns the address that other servers get instead of the one listened on, for
	// tests with a proxy between the two; nil: the same.
	Advertise func(addr string) string
}

// Bus connects a server to the others. It is safe for concurrent use.
type Bus struct {
	Config
	id     uuid.UUID
	prefix string        // begins all subjects
	seal   *seal         // nil: none
	bytes  *fair.Pool    // memory of messages on their way
	wake   chan struct{} // the servers in the database may have changed
	work   chan struct{} // the queue has something, or a ping is due

	host func() string // this machine's address in the network of the platform database

	isActive atomic.Bool // another server is there
	counts   struct{ sent, received, dropped atomic.Int64 }

	mu    sync.Mutex
	peers map[uuid.UUID]*peer
	queue []item
	flow  flow
}

// peer is another server.
type peer struct {
	heardAt time.Time
	acked   uint64 // ping
}

// New returns a bus that is idle until [Bus.Run] is called. The notifications of c.Servers must not
// run yet.
func New(c Config) *Bus {
	b := &Bus{Config: c, id: c.Servers.ID, prefix: "socle." + installName(c.Secret), peers: map[uuid.UUID]*peer{},
		host: c.Servers.Host, wake: make(chan struct{}, 1), work: make(chan struct{}, 1),
		bytes: fair.New(fair.Config{Name: "cluster_messages", Capacity: maxBytes,
			PerAccount: maxBytes / 2, PerPart: maxBytes / 4, Reserve: maxBytes / 4})}
	if c.NATSURL != "" {
		b.seal = newSeal(c.Secret)
	} else {
		c.Servers.OnChange(func() { signal(b.wake) })
	}

	return b
}

// Pools returns the pools that accounts share, for metrics.
func (b *Bus) Pools() []*fair.Pool { return []*fair.Pool{b.bytes} }

// CheckAddr fails if the server can't listen on a configured address: it listens only once there is
// another server.
func CheckAddr(addr string) error {
	if addr == "" {
		return nil
	}

	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("SOCLE_CLUSTER_ADDR: %w", err)
	}

	return listener.Close()
}

// signal wakes the receiver of a channel with room for one signal.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Active reports whether another server is there.
func (b *Bus) Active() bool { return b.isActive.Load() }

// Publish sends data to the other servers that subscribe to a subject. It never blocks. share is
// who the bytes count to; it reports false if they have no room, and drops the message.
func (b *Bus) Publish(share fair.Key, subject string, data []byte) bool {
	return b.push(share, b.topic(subject), data)
}

// Send is [Bus.Publish] to one server.
func (b *Bus) Send(share fair.Key, server uuid.UUID, data []byte) bool {
	return b.push(share, b.direct(server), data)
}

func (b *Bus) push(share fair.Key, subject string, data []byte) bool {
	if !b.Active() {
		return true
	}

	lease := b.bytes.TryAcquire(share, int64(len(data))+messageCost)
	if lease == nil || len(data) > maxMessage-frameHead-sealSize {
		lease.Release()
		b.counts.dropped.Add(1)
		return false
	}

	b.counts.sent.Add(1)
	b.enqueue(item{subject: subject, data: encode(dataFrame, b.id, data), lease: lease})

	return true
}

// Subscribe subscribes to a subject, until cancel is called.
func (b *Bus) Subscribe(subject string) (cancel func()) {
	s := &subscription{subject: b.topic(subject)}
	b.enqueue(item{subscribe: s})
	return func() { b.enqueue(item{unsubscribe: s}) }
}

// Barrier returns a channel that is closed when each other server has handled everything that was
// sent before, and knows the subscriptions made before; or when it is lost.
func (b *Bus) Barrier() <-chan struct{} {
	done := make(chan struct{})
	if !b.Active() {
		close(done)
		return done
	}

	b.enqueue(item{barrier: done})
	return done
}

func (b *Bus) enqueue(i item) {
	b.mu.Lock()
	b.queue = append(b.queue, i)
	b.mu.Unlock()
	signal(b.work)
}

// Subjects: of all servers, of one, and of subscriptions.
func (b *Bus) all() string                    { return b.prefix + ".all" }
func (b *Bus) direct(server uuid.UUID) string { return b.prefix + ".to." + server.String() }
func (b *Bus) topic(subject string) string    { return b.prefix + ".on." + b.seal.subject(subject) }

// Stats is the state of a bus.
type Stats struct {
	Servers                 int   // other ones
	Sent, Received, Dropped int64 // messages since the start
}

// Stats returns the state.
func (b *Bus) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()

	return Stats{len(b.peers), b.counts.sent.Load(), b.counts.received.Load(), b.counts.dropped.Load()}
}

// Run connects to other servers as they appear, until ctx ends.
func (b *Bus) Run(ctx context.Context) error {
	if b.NATSURL != "" {
		return b.runClient(ctx)
	}

	return b.runRoutes(ctx)
}
