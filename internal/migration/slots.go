package migration

import (
	"context"
	"time"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/projectdb"
)

// Requests in service, running or waiting. Each holds its body in memory for minutes.
const (
	maxRequests        = 8
	maxAccountRequests = 4
	maxProjectRequests = 2 // one runs, one waits for it
	retryDelay         = 2 * time.Second
)

func newRequestPool() *fair.Pool {
	return fair.New(fair.Config{Name: "migration_requests", Capacity: maxRequests, PerAccount: maxAccountRequests,
		PerPart: maxProjectRequests, Reserve: maxRequests / 4})
}

// newScratchPool returns the pool for scratch copies: an account has one at a time.
func newScratchPool() *fair.Pool {
	return fair.New(fair.Config{Name: "scratch_copies", Capacity: maxDiffs, PerAccount: 1, Waiting: maxRequests})
}

// admit takes a place for a request to a project, which release returns. It fails with TooMany if
// there is none.
func (s *Service) admit(ctx context.Context, p *projectdb.Project) (release func(), err error) {
	lease := s.requests.TryAcquire(p.Key(ctx), 1)
	if lease == nil {
		f := fault.New(fault.TooMany, "too many migrations run at the moment").WithCode("busy")
		f.RetryAfter = retryDelay

		return nil, f
	}

	return lease.Release, nil
}
