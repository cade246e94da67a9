package realtimeapi

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/realtime"
)

const (
	maxKnownLimits  = 10_000           // projects whose limits a server remembers
	limitsWait      = time.Second      // a request waits for the limits of its project
	limitsTimeout   = 10 * time.Second // reading them
	limitsRetry     = 10 * time.Second // after a failure
	limitBurst      = 5                // seconds of joins and messages that a socket may save up
	limitsReadError = "could not read the limits of a project's channels"
)

// limitsRead is a read of a project's limits.
type limitsRead struct {
	done chan struct{} // closed when the fields below are set

	limits  event.RealtimeLimits
	retryAt time.Time // zero: the read has not failed
}

// limits returns the limits of a project: the default ones while its database can't be read.
func (s *Server) limits(ctx context.Context, p project) event.RealtimeLimits {
	r := s.readLimits(ctx, p)
	if r == nil {
		return event.DefaultLimits
	}

	timer := time.NewTimer(limitsWait)
	defer timer.Stop()

	select {
	case <-r.done:
		return r.limits
	case <-timer.C:
	case <-ctx.Done():
	}

	return event.DefaultLimits
}

// readLimits returns a read of a project's limits, which may just begin; nil: the server stops.
func (s *Server) readLimits(ctx context.Context, p project) *limitsRead {
	s.mu.Lock()
	defer s.mu.Unlock()

	if r, ok := s.knownLimits.Get(p.id()); ok && !r.isDue(time.Now()) {
		return r
	}
	if s.closed {
		return nil
	}

	r := &limitsRead{done: make(chan struct{})}
	s.knownLimits.Put(p.id(), r)
	share := p.share(ctx)
	s.open.Go(func() {
		ctx, cancel := context.WithTimeout(httpx.WithShare(s.stopping, share), limitsTimeout)
		defer cancel()

		r.run(ctx, s, p)
	})

	return r
}

func (r *limitsRead) run(ctx context.Context, s *Server, p project) {
	defer close(r.done)

	limits, err := p.limits(ctx)
	if err != nil {
		if s.stopping.Err() == nil {
			s.Log.Warn(limitsReadError, "project", p.id(), "error", err)
		}
		limits, r.retryAt = event.DefaultLimits, time.Now().Add(limitsRetry)
	}
	r.limits = limits
}

// isDue reports whether the read has failed a while ago.
func (r *limitsRead) isDue(now time.Time) bool {
	select {
	case <-r.done:
		return !r.retryAt.IsZero() && now.After(r.retryAt)
	default:
		return false
	}
}

// UpdateLimits changes the limits of a project, see [event.UpdateLimits]. They hold for new sockets
// at once.
func (s *Server) UpdateLimits(
	ctx context.Context, platform pg.Querier, p *projectdb.Project, c event.LimitChange,
) (event.RealtimeLimits, error) {
	defer s.ForgetLimits(p.UUID)
	return event.UpdateLimits(ctx, platform, p, c)
}

// ForgetLimits has the limits of a project read again, because they changed. Open sockets get the
// new ones with the next check of their project.
func (s *Server) ForgetLimits(project uuid.UUID) { s.knownLimits.Delete(project) }

// ForgetAllLimits is [Server.ForgetLimits] for all projects.
func (s *Server) ForgetAllLimits() { s.knownLimits.Clear() }

// place returns the place of a socket or stream, or nil if the project or its account has too many.
func (s *Server) place(share fair.Key, limits event.RealtimeLimits) *fair.Lease {
	place := s.places.TryAcquire(share, 1)
	if _, held := s.places.Held(share); place != nil && held > int64(limits.Sockets) {
		place.Release()
		return nil
	}

	return place
}

// roomLimits returns the limits that package realtime keeps.
func roomLimits(l event.RealtimeLimits) realtime.Limits {
	return realtime.Limits{Members: l.Channels, DeliveriesPerSecond: l.DeliveriesPerSecond}
}

// limits returns the limits of the socket's project.
func (k *socket) limits() event.RealtimeLimits { return *k.tenant.limits.Load() }

// newBucket returns the bucket of a socket with a limit.
func newBucket(perSecond int) realtime.Bucket {
	return realtime.NewBucket(float64(perSecond), limitBurst*float64(perSecond))
}

// takeJoin reports whether the client may join now.
func (k *socket) takeJoin(now time.Time) bool {
	rate := float64(k.limits().JoinsPerSecond)
	k.joins.SetRate(now, rate, limitBurst*rate)

	return k.joins.Take(now, 1)
}

// reserveMessage returns the time until the client's message is handled.
func (k *socket) reserveMessage(now time.Time) time.Duration {
	rate := float64(k.limits().MessagesPerSecond)
	k.messages.SetRate(now, rate, limitBurst*rate)

	return k.messages.Reserve(now)
}
