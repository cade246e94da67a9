// Package replica knows the standbys that answer reads: how far each has replayed the primary's
// WAL, which of them is fresh enough for a read, and the position of a write that a later read must
// see. Package projectdb has the connections to them.
//
// # Freshness
//
// A standby says how far it has replayed, not how old that is: on an idle primary the time of its
// last transaction grows, and a standby without a WAL receiver takes itself for complete. So each
// server samples the primary's position once a second. A standby is as fresh as the newest sample
// that it has replayed. No clock of another machine is compared.
//
// # Timelines
//
// After a failover, a standby can have replayed WAL that the new primary lacks. A standby therefore
// counts only while it receives the primary's timeline, and never for a write on a later one.
package replica

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	// MaxLag is how long ago a standby may have been equal to the primary, as this server has
	// sampled it. Reads pass over an older one.
	MaxLag = 10 * time.Second

	// waitTimeout bounds a read's wait for a standby to replay a write. The primary answers then.
	waitTimeout = 500 * time.Millisecond

	sampleInterval = time.Second          // between looks at a server
	waitInterval   = 5 * time.Millisecond // the same while reads wait for a standby
	lookTimeout    = 3 * time.Second      // for a look; the server counts as gone then
	retryDelay     = time.Second          // after a lost connection
	answerTimeout  = time.Second          // for the primary's position, for which a response waits
	maxSamples     = 2 * int(MaxLag/sampleInterval)
)

// Set is the standbys of a cluster. It is safe for concurrent use.
type Set struct {
	primary  *pgx.ConnConfig
	standbys []*standby
	log      *slog.Logger

	next    atomic.Uint32 // the standby that the next read tries first
	waiting atomic.Int32  // reads that wait for a standby
	asks    chan chan<- answer

	mu      sync.Mutex
	samples []sample      // the primary's, oldest first
	changed chan struct{} // closed at the next change of a standby
}

// sample is the primary's position at a time.
type sample struct {
	Position
	at time.Time
}

// answer is the primary's position, or why it is unknown.
type answer struct {
	Position
	err error
}

// New returns the set of standbys, each with the configuration of connections to it. It does not
// connect.
func New(primary *pgx.ConnConfig, standbys []*pgx.ConnConfig, log *slog.Logger) *Set {
	s := &Set{primary: primary, log: log, asks: make(chan chan<- answer), changed: make(chan struct{})}
	for _, c := range standbys {
		s.standbys = append(s.standbys, newStandby(c))
	}

	return s
}

// Run looks at the servers until ctx ends.
func (s *Set) Run(ctx context.Context) error {
	var all sync.WaitGroup
	all.Go(func() { s.keep(ctx, s.primary, s.followPrimary) })

	for _, b := range s.standbys {
		all.Go(func() {
			s.keep(ctx, b.config, func(ctx context.Context, conn *pgx.Conn) error { return s.follow(ctx, b, conn) })
		})
	}

	all.Wait()
	return nil
}

// keep runs f on a connection of its own until ctx ends, and again after it has failed.
func (s *Set) keep(ctx context.Context, config *pgx.ConnConfig, f func(context.Context, *pgx.Conn) error) {
	config = config.Copy()
	config.RuntimeParams["application_name"] = "socle replicas"

	for ctx.Err() == nil {
		err := withConn(ctx, config, f)
		if ctx.Err() != nil {
			return
		}

		s.log.Warn("watching a server of reads failed, retrying", "host", config.Host, "port", config.Port,
			"error", err)

		_ = tick.Pause(ctx, retryDelay)
	}
}

func withConn(ctx context.Context, config *pgx.ConnConfig, f func(context.Context, *pgx.Conn) error) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return pg.Fault(err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
		defer cancel()

		_ = conn.Close(closing)
	}()

	return f(ctx, conn)
}

// followPrimary samples the primary's position, and answers those who ask for it. One look answers
// all who asked before it began.
func (s *Set) followPrimary(ctx context.Context, conn *pgx.Conn) error {
	interval := time.NewTicker(sampleInterval)
	defer interval.Stop()

	for due := true; ; {
		var asked []chan<- answer
		if !due {
			select {
			case <-ctx.Done():
				return nil
			case <-interval.C:
				due = true
			case to := <-s.asks:
				asked = append(asked, to)
			}
		}
		asked = s.collect(asked)

		at := time.Now()
		position, err := lookAtPrimary(ctx, conn)
		for _, to := range asked {
			to <- answer{position, err} // it has room
		}
		if err != nil {
			return err
		}

		if due {
			s.addSample(sample{position, at})
			due = false
		}
	}
}

// collect adds the pending requests for the position, without waiting for more.
func (s *Set) collect(asked []chan<- answer) []chan<- answer {
	for {
		select {
		case to := <-s.asks:
			asked = append(asked, to)
		default:
			return asked
		}
	}
}

func (s *Set) addSample(n sample) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if len(s.samples) == maxSamples {
		s.samples = append(s.samples[:0], s.samples[1:]...)
	}
	s.samples = append(s.samples, n)
}

// freshness returns the time as of which a standby equals the primary, and zero if that is unknown
// or too long ago.
func (s *Set) freshness(p Position) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()

	for i := len(s.samples) - 1; i >= 0; i-- {
		if n := s.samples[i]; n.Timeline == p.Timeline && n.LSN <= p.LSN {
			return n.at
		}
	}

	return time.Time{}
}

// Position returns the primary's position. A standby that has replayed it has all that was
// committed before the call.
func (s *Set) Position(ctx context.Context) (Position, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()

	to := make(chan answer, 1)
	select {
	case s.asks <- to:
	case <-ctx.Done():
		return Position{}, ctx.Err()
	}

	select {
	case a := <-to:
		return a.Position, a.err
	case <-ctx.Done():
		return Position{}, ctx.Err()
	}
}

// Choice is a standby for a read.
type Choice struct {
	Standby int             // as in the arguments of [New]
	Alive   context.Context // ends when the standby is gone
}

// Choose returns a standby that is fresh, and has replayed a position unless that is zero. Reads
// take turns. It waits for a standby for half a second at most, and reports false if there is none.
func (s *Set) Choose(ctx context.Context, after Position) (Choice, bool) {
	if c, ok := s.find(after); ok || after == (Position{}) {
		return c, ok
	}

	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()

	s.waiting.Add(1)
	defer s.waiting.Add(-1)

	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()

		if c, ok := s.find(after); ok {
			return c, true
		}
		if !s.wake(after) {
			return Choice{}, false
		}

		select {
		case <-changed:
		case <-ctx.Done():
			return Choice{}, false
		}
	}
}

// find returns the next standby in turn that is fresh and has replayed a position.
func (s *Set) find(after Position) (Choice, bool) {
	now, first := time.Now(), int(s.next.Add(1))
	for i := range s.standbys {
		n := (first + i) % len(s.standbys)
		if st := s.standbys[n].state.Load(); st.isFresh(now) && st.hasReplayed(after) {
			return Choice{n, st.alive}, true
		}
	}

	return Choice{}, false
}

// wake makes the fresh standbys on a position's timeline be looked at at once. It reports false if
// there is none.
func (s *Set) wake(after Position) bool {
	now, found := time.Now(), false
	for _, b := range s.standbys {
		if st := b.state.Load(); st.isFresh(now) && st.Timeline >= after.Timeline {
			found = true
			select {
			case b.woken <- struct{}{}:
			default:
			}
		}
	}

	return found
}

// Lag returns how long ago a standby was equal to the primary. It reports false if the standby is
// gone or not known to be fresh.
func (s *Set) Lag(n int) (time.Duration, bool) {
	now := time.Now()
	st := s.standbys[n].state.Load()

	return now.Sub(st.fresh), st.isFresh(now)
}
