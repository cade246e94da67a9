package migration

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
)

// Requests in service, running or waiting. Each holds the memory of its body for minutes.
const (
	maxRequests             = 8
	maxOrganizationRequests = 4
	maxProjectRequests      = 2 // one runs, one waits for it
	retryDelay              = 2 * time.Second
)

// slots counts the requests in service. It is safe for concurrent use.
type slots struct {
	mu    sync.Mutex
	total int
	of    map[uuid.UUID]int // by project, and by organization
}

// take takes a slot for a project of an organization, which release returns. It fails with TooMany
// if there is none.
func (s *slots) take(organization, project uuid.UUID) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.total == maxRequests || s.of[organization] == maxOrganizationRequests ||
		s.of[project] == maxProjectRequests {
		f := fault.New(fault.TooMany, "too many migrations run at the moment").WithCode("busy")
		f.RetryAfter = retryDelay

		return nil, f
	}

	if s.of == nil {
		s.of = map[uuid.UUID]int{}
	}

	s.total++
	s.of[organization]++
	s.of[project]++

	return sync.OnceFunc(func() { s.release(organization, project) }), nil
}

func (s *slots) release(organization, project uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.total--
	for _, id := range []uuid.UUID{organization, project} {
		if s.of[id]--; s.of[id] == 0 {
			delete(s.of, id)
		}
	}
}

// turns lets one comparison of an organization run at a time. It is safe for concurrent use. Its
// size is bounded by the requests in service.
type turns struct {
	mu sync.Mutex
	of map[uuid.UUID]*turn // by organization
}

type turn struct {
	token chan struct{} // full while one runs
	users int           // running and waiting
}

// await waits for the turn of an organization, which release ends.
func (t *turns) await(ctx context.Context, organization uuid.UUID) (release func(), err error) {
	t.mu.Lock()
	if t.of == nil {
		t.of = map[uuid.UUID]*turn{}
	}

	own := t.of[organization]
	if own == nil {
		own = &turn{token: make(chan struct{}, 1)}
		t.of[organization] = own
	}

	own.users++
	t.mu.Unlock()

	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()

		if own.users--; own.users == 0 {
			delete(t.of, organization)
		}
	}

	select {
	case own.token <- struct{}{}:
		return func() { <-own.token; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
