package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/platform"
)

const (
	requestLogInterval  = time.Second      // interval of writes to the database
	maxQueuedRequests   = 1 << 14          // length of the queue; half of it triggers a write at once
	maxLoggedSuccesses  = 100              // successful requests kept per project and second
	requestLogTimeout   = 10 * time.Second // timeout of a write
	dropWarningInterval = time.Minute      // minimum interval of warnings about dropped requests
)

// requestLog writes the requests to projects to the platform database, in the background and in
// batches. A request only appends to a queue: it neither waits for the database nor fails with it.
// When the queue is full, requests are dropped and counted.
//
// Of many successful requests to a project it keeps a sample: ten thousand per second would fill a
// disk in days and tell no more than a hundred. It keeps all failed requests.
type requestLog struct {
	store    *platform.Store
	log      *slog.Logger
	halfFull chan struct{} // signals that the queue is half full

	mu        sync.Mutex
	queue     []platform.Request
	successes map[uuid.UUID]int // successful requests by project, since the last tick
	dropped   int
	warnedAt  time.Time
}

func newRequestLog(store *platform.Store, log *slog.Logger) *requestLog {
	return &requestLog{store: store, log: log, successes: map[uuid.UUID]int{}, halfFull: make(chan struct{}, 1)}
}

// add queues a request to a project. It ignores other requests.
func (l *requestLog) add(a httpx.Finished) {
	if a.Project == uuid.Nil || !l.sample(a) {
		return
	}

	id, err := uuid.Parse(a.ID)
	if err != nil {
		return // no request ID for lack of randomness
	}

	r := platform.Request{UUID: id, Project: a.Project, At: a.Start, Method: a.Method,
		Route: stripMethod(a.Route), Status: int16(a.Status),
		Duration: a.Took.Microseconds(), Caller: "anonymous"}

	if a.Client.IsValid() {
		client := a.Client.String()
		r.Client = &client
	}

	if a.Status == 0 {
		r.Status = httpx.StatusClientClosedRequest
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

	if len(l.queue) < maxQueuedRequests {
		l.queue = append(l.queue, r)
	} else {
		l.dropped++
	}

	half := len(l.queue) == maxQueuedRequests/2
	l.mu.Unlock()

	if half {
		select {
		case l.halfFull <- struct{}{}:
		default:
		}
	}
}

// sample reports whether a request to a project is within the sample.
func (l *requestLog) sample(a httpx.Finished) bool {
	if a.Status == 0 || a.Status >= 400 {
		return true
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	if l.successes[a.Project] >= maxLoggedSuccesses {
		return false
	}

	l.successes[a.Project]++
	return true
}

// stripMethod returns a route without its optional method.
func stripMethod(route string) string {
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
	tick := time.NewTicker(requestLogInterval)
	defer tick.Stop()

	var spare []platform.Request
	for {
		select {
		case <-ctx.Done():
			l.write(context.WithoutCancel(ctx), nil)
			l.warnedAt = time.Time{}
			l.warnDropped(nil)

			return nil
		case <-tick.C:
			l.mu.Lock()
			clear(l.successes)
			l.mu.Unlock()
		case <-l.halfFull:
		}

		spare = l.write(ctx, spare)
	}
}

// write writes the queued requests and makes spare the queue. It returns the slice for the next
// call, nil if there was nothing to write.
func (l *requestLog) write(ctx context.Context, spare []platform.Request) []platform.Request {
	l.mu.Lock()
	batch := l.queue
	if len(batch) > 0 {
		l.queue = spare[:0]
	}

	l.mu.Unlock()

	if len(batch) == 0 {
		l.warnDropped(nil)
		return nil // idle: free the memory of the queue
	}

	ctx, cancel := context.WithTimeout(ctx, requestLogTimeout)
	defer cancel()

	err := l.store.AddRequests(ctx, batch)
	if err != nil {
		l.mu.Lock()
		l.dropped += len(batch)
		l.mu.Unlock()
	}

	l.warnDropped(err)
	clear(batch)

	return batch
}

// warnDropped logs the number of dropped requests, at most once per dropWarningInterval.
func (l *requestLog) warnDropped(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if now := time.Now(); l.dropped > 0 && now.Sub(l.warnedAt) > dropWarningInterval {
		l.log.Warn("requests to projects were not kept", "dropped", l.dropped, "error", err)
		l.dropped, l.warnedAt = 0, now
	}
}
