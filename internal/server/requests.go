package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"socle/internal/httpx"
	"socle/internal/platform"
)

const (
	requestsEvery = time.Second      // interval of writes to the database
	requestsMost  = 1 << 14          // length of the queue; half of it triggers a write at once
	requestsEach  = 100              // successful requests kept per project and second
	requestsTime  = 10 * time.Second // timeout of a write
	requestsSaid  = time.Minute      // minimum interval of warnings about dropped requests
	statusGone    = 499              // client disconnected before the response, as in the rows API
)

// requestLog writes the requests to projects to the platform database, in the background and in
// batches. A request only appends to a queue: it neither waits for the database nor fails with it.
// When the queue is full, requests are dropped and counted.
//
// Of many successful requests to a project it keeps a sample: ten thousand per second would fill a
// disk in days and tell no more than a hundred. It keeps all failed requests.
type requestLog struct {
	store *platform.Store
	log   *slog.Logger
	full  chan struct{} // signals that the queue is half full

	mu      sync.Mutex
	waiting []platform.Request
	kept    map[uuid.UUID]int // successful requests by project, since the last tick
	dropped int
	said    time.Time
}

func newRequestLog(store *platform.Store, log *slog.Logger) *requestLog {
	return &requestLog{store: store, log: log, kept: map[uuid.UUID]int{}, full: make(chan struct{}, 1)}
}

// note queues a request to a project. It ignores other requests.
func (l *requestLog) note(a httpx.Answered) {
	if a.Project == uuid.Nil || !l.keeps(a) {
		return
	}

	id, err := uuid.Parse(a.ID)
	if err != nil {
		return // no request ID for lack of randomness
	}

	r := platform.Request{UUID: id, Project: a.Project, At: a.Start, Method: a.Method,
		Route: pattern(a.Route), Status: int16(a.Status),
		Duration: a.Took.Microseconds(), Caller: "anonymous"}

	if a.Client.IsValid() {
		client := a.Client.String()
		r.Client = &client
	}

	if a.Status == 0 {
		r.Status = statusGone
	}

	switch {
	case a.User != uuid.Nil:
		r.Caller, r.UserUUID = "user", &a.User
	case a.Key != uuid.Nil:
		r.Caller, r.KeyUUID = "key", &a.Key
	case a.Token:
		r.Caller = "token"
	}

	l.mu.Lock()

	if len(l.waiting) < requestsMost {
		l.waiting = append(l.waiting, r)
	} else {
		l.dropped++
	}

	half := len(l.waiting) == requestsMost/2
	l.mu.Unlock()

	if half {
		select {
		case l.full <- struct{}{}:
		default:
		}
	}
}

// keeps reports whether a request to a project is within the sample.
func (l *requestLog) keeps(a httpx.Answered) bool {
	if a.Status == 0 || a.Status >= 400 {
		return true
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	if l.kept[a.Project] >= requestsEach {
		return false
	}

	l.kept[a.Project]++
	return true
}

// pattern returns a route without its optional method.
func pattern(route string) string {
	for i := range len(route) {
		switch route[i] {
		case ' ':
			return route[i+1:]
		case '/':
			return route
		}
	}

	return route
}

// run writes queued requests until ctx ends, then the rest.
func (l *requestLog) run(ctx context.Context) error {
	tick := time.NewTicker(requestsEvery)
	defer tick.Stop()

	var spare []platform.Request
	for {
		select {
		case <-ctx.Done():
			l.write(context.WithoutCancel(ctx), nil)
			l.said = time.Time{}
			l.report(nil)

			return nil
		case <-tick.C:
			l.mu.Lock()
			clear(l.kept)
			l.mu.Unlock()
		case <-l.full:
		}

		spare = l.write(ctx, spare)
	}
}

// write writes the queued requests and makes spare the queue. It returns the slice for the next
// call, nil if there was nothing to write.
func (l *requestLog) write(ctx context.Context, spare []platform.Request) []platform.Request {
	l.mu.Lock()
	batch := l.waiting
	if len(batch) > 0 {
		l.waiting = spare[:0]
	}

	l.mu.Unlock()

	if len(batch) == 0 {
		l.report(nil)
		return nil // idle: free the memory of the queue
	}

	ctx, cancel := context.WithTimeout(ctx, requestsTime)
	defer cancel()

	err := l.store.AddRequests(ctx, batch)
	if err != nil {
		l.mu.Lock()
		l.dropped += len(batch)
		l.mu.Unlock()
	}

	l.report(err)
	clear(batch)

	return batch
}

// report logs the number of dropped requests, at most once per requestsSaid.
func (l *requestLog) report(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if now := time.Now(); l.dropped > 0 && now.Sub(l.said) > requestsSaid {
		l.log.Warn("requests to projects were not kept", "dropped", l.dropped, "error", err)
		l.dropped, l.said = 0, now
	}
}
