package tenant

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// reclaimEvery is how soon a connection is asked for again when one that was given up went to somebody else.
const reclaimEvery = 50 * time.Millisecond

// budget bounds the connections that are open to the project databases of a server, all pools together.
// It counts where a connection is really opened and closed, on the wire.
type budget struct {
	slots   chan struct{}
	reclaim func() // has a connection that nobody uses closed, if there is one
	waiting atomic.Int32
}

func newBudget(connections int, reclaim func()) *budget {
	return &budget{slots: make(chan struct{}, connections), reclaim: reclaim}
}

// beforeConnect makes a connection that is about to be opened take a slot. Cancelling a statement
// dials once more over the same configuration; that needs no slot and must not wait for one.
func (b *budget) beforeConnect(_ context.Context, c *pgx.ConnConfig) error {
	dial := c.DialFunc
	var holds atomic.Bool
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if holds.Load() {
			return dial(ctx, network, address)
		}
		if err := b.take(ctx); err != nil {
			return nil, err
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			<-b.slots
			return nil, err
		}
		holds.Store(true)
		return &slot{Conn: conn, release: sync.OnceFunc(func() {
			holds.Store(false)
			<-b.slots
		})}, nil
	}
	return nil
}

func (b *budget) take(ctx context.Context) error {
	select {
	case b.slots <- struct{}{}:
		return nil
	default:
	}
	b.waiting.Add(1)
	defer b.waiting.Add(-1)
	for {
		b.reclaim()
		select {
		case b.slots <- struct{}{}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(reclaimEvery):
		}
	}
}

// slot is a connection that gives its place in the budget back when it closes.
type slot struct {
	net.Conn
	release func()
}

func (s *slot) Close() error {
	defer s.release()
	return s.Conn.Close()
}
