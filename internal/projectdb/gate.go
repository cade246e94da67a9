package projectdb

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/tick"
)

// gate blocks new uses of a project's connections while the database is being swapped.
type gate struct {
	mu      sync.Mutex
	opening chan struct{} // closed when the gate opens; nil if it is open
	waiting int
}

const (
	drainTimeout  = 4 * time.Second // for requests in flight; less than their timeout for a connection
	drainInterval = 5 * time.Millisecond
)

// attach makes a pool wait at the gate.
func (g *gate) attach(c *pgxpool.Config) {
	connect := c.BeforeConnect
	c.BeforeConnect = func(ctx context.Context, config *pgx.ConnConfig) error {
		if err := g.wait(ctx); err != nil {
			return err
		}
		return connect(ctx, config)
	}

	// A closed gate discards the pooled connection; the pool then dials a new one, which waits. So
	// does one whose slot is needed more elsewhere.
	c.PrepareConn = func(_ context.Context, conn *pgx.Conn) (bool, error) {
		return !g.isClosed() && !pgcluster.MustClose(conn), nil
	}
}

func (g *gate) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()

	return g.opening != nil
}

func (g *gate) wait(ctx context.Context) error {
	for {
		g.mu.Lock()

		opening := g.opening
		if opening == nil {
			g.mu.Unlock()
			return nil
		}

		g.waiting++
		g.mu.Unlock()

		var err error
		select {
		case <-opening:
		case <-ctx.Done():
			err = ctx.Err()
		}

		g.mu.Lock()
		g.waiting--
		g.mu.Unlock()

		if err != nil {
			return err
		}
	}
}

// close closes the gate until open is called.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()

	if g.opening == nil {
		g.opening = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()

	if g.opening != nil {
		close(g.opening)
		g.opening = nil
	}
}

// drain waits until no connection is in use, for at most drainTimeout. The gate must be closed.
func (p *Project) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()

	for range tick.Poll(ctx, drainInterval) {
		if p.connsInUse() <= 0 {
			return
		}
	}
}

// connsInUse counts this server's connections that are in use or being opened, without those
// waiting at the gate.
func (p *Project) connsInUse() int {
	p.gate.mu.Lock()
	n := -p.gate.waiting
	p.gate.mu.Unlock()

	p.mu.Lock()
	defer p.mu.Unlock()

	for _, pool := range p.pools {
		s := pool.Stat()
		n += int(s.AcquiredConns() + s.ConstructingConns())
	}

	return n
}
