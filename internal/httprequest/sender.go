// Package httprequest sends the HTTP requests that SQL of projects has left: by the functions of
// schema net, and by the trigger of database webhooks. It owns the requests and their outcomes.
//
// A request is sent at most once. A server takes it, which deletes it, before it connects; a server
// that is killed then leaves neither a request nor an outcome.
package httprequest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/outbox"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

const (
	// placeTimeout bounds the wait for a place. A project that gets none is asked again.
	placeTimeout = 250 * time.Millisecond
	// storeTimeout bounds the write of an outcome.
	storeTimeout = 10 * time.Second
)

var errStopped = errors.New("the server has stopped")

// Sender sends requests. It is safe for concurrent use.
type Sender struct {
	client *outbound.Client
	log    *slog.Logger

	ctx  context.Context // ends the requests in flight
	stop context.CancelCauseFunc
	done sync.WaitGroup
}

// NewSender returns a sender. Its requests neither wait for those of client nor delay them: 64 at a
// time, 32 of an account, 16 of a project. Close ends them.
func NewSender(client *outbound.Client, log *slog.Logger) *Sender {
	s := &Sender{client: client.Within(outbound.MaxResponse, "sql_requests"), log: log}
	s.ctx, s.stop = context.WithCancelCause(context.Background())

	return s
}

// Pools returns the pools that accounts share, for metrics.
func (s *Sender) Pools() []*fair.Pool { return s.client.Pools() }

// Close ends the requests in flight. Their outcome says so.
func (s *Sender) Close() {
	s.stop(errStopped)
	s.done.Wait()
}

// Kind returns the work that the outbox finds.
func (s *Sender) Kind() outbox.Kind {
	return outbox.Kind{Name: "requests", Pending: "exists (select from socle.http_requests)", Run: s.Run}
}

// Run takes as many requests of a project as may be in flight, and returns while they are. The
// places come first: a request that is taken is sent at once.
func (s *Sender) Run(ctx context.Context, p *projectdb.Project) error {
	places := s.reserve(ctx, p.Key(ctx))
	requests, err := take(ctx, p, len(places))

	for i, place := range places {
		if i >= len(requests) {
			place.Release()
			continue
		}

		s.done.Go(func() {
			if err := s.send(p, place, requests[i]); err != nil && !errors.Is(err, projectdb.ErrClosed) {
				s.log.Warn("send a request by SQL", "project", p.UUID, "error", err)
			}
		})
	}

	return err
}

// reserve returns places for requests, as far as there are any. It waits for the first one, so that
// a project that has none gets one from those that have many.
func (s *Sender) reserve(ctx context.Context, tenant fair.Key) []*outbound.Place {
	first := s.client.TryAcquire(tenant)
	if first == nil {
		ctx, cancel := context.WithTimeout(ctx, placeTimeout)
		defer cancel()

		var err error
		if first, err = s.client.Acquire(ctx, tenant); err != nil {
			return nil
		}
	}

	places := []*outbound.Place{first}
	for {
		place := s.client.TryAcquire(tenant)
		if place == nil {
			return places
		}
		places = append(places, place)
	}
}

// take deletes the oldest n requests, and returns them. Other servers take others.
func take(ctx context.Context, p *projectdb.Project, n int) ([]request, error) {
	if n == 0 {
		return nil, nil
	}

	return pg.All[request](ctx, p.Trusted(), `
		with oldest as (
			select id from socle.http_requests order by id for update skip locked limit $1
		)
		delete from socle.http_requests r using oldest o where r.id = o.id
		returning r.id, r.method, r.url, r.params, r.headers, coalesce(r.body, '') as body, r.timeout_milliseconds`, n)
}

// send sends a request in a place, and stores its outcome.
func (s *Sender) send(p *projectdb.Project, place *outbound.Place, r request) (err error) {
	defer fault.Recover(&err)

	ctx, cancel := context.WithTimeout(s.ctx, r.timeout())
	defer cancel()

	o := exchange(ctx, place, r)

	storing, cancelStore := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancelStore()

	return store(storing, p, r.ID, o)
}

// exchange sends a request in a place, and returns what became of it.
func exchange(ctx context.Context, place *outbound.Place, r request) outcome {
	h, refusal := r.http(ctx)
	if refusal != "" {
		place.Release()
		return outcome{ErrorMessage: refusal}
	}

	res, err := place.Do(ctx, h)
	return outcomeOf(r, res, err)
}
