package pg

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fair"
)

// Share makes a pool's connections places in a fair pool with the same size: callers wait there,
// not in pgxpool's queue, which is first come, first served. key returns a caller's key.
func Share(c *pgxpool.Config, places *fair.Pool, key func(context.Context) fair.Key) {
	c.ConnConfig.Tracer = &sharer{places: places, key: key}
}

// Shrink closes idle connections beyond a number, and returns how many are open. The places of the
// pool then keep it at that number, since it connects only if none is idle.
func Shrink(ctx context.Context, pool *pgxpool.Pool, connections int) (open int) {
	open = int(pool.Stat().TotalConns())
	if open <= connections {
		return open
	}

	for _, c := range pool.AcquireAllIdle(ctx) {
		if open > connections {
			open--
			_ = c.Conn().Close(ctx)
		}
		c.Release()
	}

	return open
}

// sharer admits callers to a pool. Tracer hooks surround each use of a connection, whichever pool
// method takes it.
type sharer struct {
	statementTracer
	places *fair.Pool
	key    func(context.Context) fair.Key
	leases sync.Map // *fair.Lease by *pgx.Conn
}

type leaseKey struct{}

// TraceAcquireStart waits for a place. The context that it returns has ended if there is none.
func (s *sharer) TraceAcquireStart(
	ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData,
) context.Context {
	lease, err := s.places.Acquire(ctx, s.key(ctx), 1)
	if err == nil {
		return context.WithValue(ctx, leaseKey{}, lease)
	}
	if ctx.Err() != nil {
		return ctx
	}

	endedCtx, cancel := context.WithDeadline(ctx, time.Unix(0, 0)) // as after a wait in vain
	cancel()

	return endedCtx
}

// TraceAcquireEnd returns the place if there is no connection.
func (s *sharer) TraceAcquireEnd(ctx context.Context, _ *pgxpool.Pool, data pgxpool.TraceAcquireEndData) {
	lease, ok := ctx.Value(leaseKey{}).(*fair.Lease)
	switch {
	case !ok:
	case data.Err != nil || data.Conn == nil:
		lease.Release()
	default:
		s.leases.Store(data.Conn, lease)
	}
}

// TraceRelease returns a connection's place.
func (s *sharer) TraceRelease(_ *pgxpool.Pool, data pgxpool.TraceReleaseData) { s.release(data.Conn) }

func (s *sharer) release(conn *pgx.Conn) {
	if lease, ok := s.leases.LoadAndDelete(conn); ok {
		lease.(*fair.Lease).Release()
	}
}

// Hijack takes a connection out of the pool, which then has room for another one.
func Hijack(c *pgxpool.Conn) *pgx.Conn {
	conn := c.Hijack()
	if s, ok := conn.Config().Tracer.(*sharer); ok {
		s.release(conn)
	}

	return conn
}

var (
	_ pgx.QueryTracer       = (*sharer)(nil)
	_ pgxpool.AcquireTracer = (*sharer)(nil)
	_ pgxpool.ReleaseTracer = (*sharer)(nil)
)
