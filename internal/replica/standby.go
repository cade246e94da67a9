package replica

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// standby is a server that answers reads.
type standby struct {
	config *pgx.ConnConfig
	woken  chan struct{} // a read waits for a look
	state  atomic.Pointer[state]
}

// state is what a look at a standby has found.
type state struct {
	Position           // replayed
	fresh    time.Time // it was equal to the primary then; zero: it is unknown, or gone
	alive    context.Context
}

var gone = &state{}

func newStandby(c *pgx.ConnConfig) *standby {
	b := &standby{config: c, woken: make(chan struct{}, 1)}
	b.state.Store(gone)

	return b
}

func (st *state) isFresh(now time.Time) bool {
	return !st.fresh.IsZero() && now.Sub(st.fresh) <= MaxLag
}

// hasReplayed reports whether a standby has all up to a position. What was lost by a failover is
// on an earlier timeline and is waited for in vain at most.
func (st *state) hasReplayed(p Position) bool { return st.Timeline >= p.Timeline && st.LSN >= p.LSN }

// follow looks at a standby until it is gone or ctx ends.
func (s *Set) follow(ctx context.Context, b *standby, conn *pgx.Conn) error {
	alive, end := context.WithCancel(ctx)
	defer func() {
		b.state.Store(gone)
		end()
		s.notify()
	}()

	for {
		position, err := lookAtStandby(ctx, conn)
		if err != nil {
			return err
		}

		b.state.Store(&state{position, s.freshness(position), alive})
		s.notify()

		interval := sampleInterval
		if s.waiting.Load() > 0 {
			interval = waitInterval
		}

		select {
		case <-ctx.Done():
			return nil
		case <-b.woken:
		case <-time.After(interval):
		}
	}
}

// notify wakes the reads that wait for a change of a standby.
func (s *Set) notify() {
	s.mu.Lock()
	defer s.mu.Unlock()

	close(s.changed)
	s.changed = make(chan struct{})
}

var errNoStandby = errors.New("the server is no standby")

// lookAtStandby returns how far a standby has replayed, on the timeline that it receives. It fails
// if the server has been promoted. Timeline 0 means that it receives nothing.
func lookAtStandby(ctx context.Context, conn *pgx.Conn) (Position, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()

	now, err := pg.One[struct {
		IsStandby bool
		LSN       int64
		Timeline  int64
	}](ctx, conn, `
		select pg_is_in_recovery() as is_standby, coalesce(pg_last_wal_replay_lsn() - '0/0', 0)::bigint as lsn,
			coalesce((select received_tli from pg_stat_wal_receiver where status = 'streaming'), 0)::bigint as timeline`)
	if err == nil && !now.IsStandby {
		err = errNoStandby
	}

	return Position{uint32(now.Timeline), uint64(now.LSN)}, err
}
