package rest

import (
	"context"
	"net/http"
	"time"

	"socle/internal/httpx"
)

// BodiesSize is how many bytes a process usually has for the bodies of requests under way.
const BodiesSize = 256 << 20

// uncountedBody is how many bytes a body may have that is not counted: nearly all are shorter.
const uncountedBody = 64 << 10

// bodyRoom is what the body of one request has of the budget.
type bodyRoom struct {
	budget *httpx.Budget
	owner  string        // who is charged
	wait   time.Duration // for room
	size   int64         // bytes that were taken
	taken  []func()      // each gives its part back
}

// take takes room for so many bytes more. It waits a while for others to give theirs back.
func (r *bodyRoom) take(ctx context.Context, n int64) error {
	none := fail(http.StatusServiceUnavailable, "53200", "too many bodies of requests are under way")
	if r.size+n > r.budget.Most() {
		return none
	}

	ctx, cancel := context.WithTimeout(ctx, r.wait)
	defer cancel()

	give, err := r.budget.Take(ctx, r.owner, n)
	if err != nil {
		return none
	}

	r.size += n
	r.taken = append(r.taken, give)

	return nil
}

// release gives back all that was taken.
func (r *bodyRoom) release() {
	for _, give := range r.taken {
		give()
	}
	r.size, r.taken = 0, nil
}
