package migration

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
)

// Requests in service, running or waiting. Each holds the memory of its body for minutes.
const (
	maxRequests        = 8
	maxProjectRequests = 2 // one runs, one waits for it
	retryDelay         = 2 * time.Second
)

// slots counts the requests in service. It is safe for concurrent use.
type slots struct {
	mu       sync.Mutex
	total    int
	projects map[uuid.UUID]int
}

// take takes a slot for a project, which release returns. It fails with TooMany if there is none.
func (s *slots) take(project uuid.UUID) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.total == maxRequests || s.projects[project] == maxProjectRequests {
		f := fault.New(fault.TooMany, "too many migrations run at the moment").WithCode("busy")
		f.RetryAfter = retryDelay

		return nil, f
	}

	if s.projects == nil {
		s.projects = map[uuid.UUID]int{}
	}

	s.total++
	s.projects[project]++

	return sync.OnceFunc(func() { s.release(project) }), nil
}

func (s *slots) release(project uuid.UUID) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.total--
	if s.projects[project]--; s.projects[project] == 0 {
		delete(s.projects, project)
	}
}
