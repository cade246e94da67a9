package rest

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
)

// BodiesSize is how many bytes a process usually has for the bodies of requests under way.
const BodiesSize = 256 << 20

// uncountedBody is how many bytes a body may have that is not counted: nearly all are shorter.
const uncountedBody = 64 << 10

// Bodies bounds the memory of the bodies of requests under way. Servers of one process share it. Each of them gets a quarter
// of it at most, so that the requests of one project leave room for those of others. It is safe for concurrent use.
type Bodies struct {
	all   *semaphore.Weighted
	share int64 // bytes
}

// NewBodies returns one of so many bytes.
func NewBodies(size int64) *Bodies {
	return &Bodies{all: semaphore.NewWeighted(size), share: size / 4}
}

// bodyRoom is what one request has of a server's share.
type bodyRoom struct {
	own   *semaphore.Weighted // the server's
	all   *Bodies
	wait  time.Duration // for room
	taken int64
}

// take takes room for so many bytes more. It waits a while for others to give theirs back.
func (r *bodyRoom) take(ctx context.Context, n int64) error {
	if r.taken+n > r.all.share {
		return noBodyRoom()
	}
	ctx, cancel := context.WithTimeout(ctx, r.wait)
	defer cancel()
	if r.own.Acquire(ctx, n) != nil {
		return noBodyRoom()
	}
	if r.all.all.Acquire(ctx, n) != nil {
		r.own.Release(n)
		return noBodyRoom()
	}

	r.taken += n
	return nil
}

// release gives back all that was taken.
func (r *bodyRoom) release() {
	if r.taken == 0 {
		return
	}
	r.own.Release(r.taken)
	r.all.all.Release(r.taken)
	r.taken = 0
}

// noBodyRoom is the failure to take a body in. Nothing was changed.
func noBodyRoom() error {
	return fail(http.StatusServiceUnavailable, "53200", "too many bodies of requests are under way")
}
