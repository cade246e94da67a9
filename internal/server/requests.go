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
	requestsEvery = time.Second      // how soon a request is in the database
	requestsMost  = 1 << 14          // that wait; at half of it they are written without waiting for their time
	requestsEach  = 100              // successful ones of a project that are kept of one second
	requestsTime  = 10 * time.Second // to write them
	requestsSaid  = time.Minute      // between two records of the log that some were dropped
	statusGone    = 499              // of a client that was gone before it was answered, as the rows API has it
)

// requestLog keeps the requests to projects in the platform database. It writes them behind the requests' backs, in batches: a request
// pays for a place in a list, and neither waits for the database nor fails with it. What there is no room for is dropped, and counted.
// Of many successful requests of a project a part is kept: ten thousand a second would fill a disk in days, and say no more than a hundred do. What failed
// is always kept.
type requestLog struct {
	store *platform.Store
	log   *slog.Logger
	full  chan struct{} // tells that half of the room is taken

	mu      sync.Mutex
	waiting []platform.Request
	kept    map[uuid.UUID]int // successful ones, by project, since the last tick
	dropped int
	said    time.Time
}

func newRequestLog(store *platform.Store, log *slog.Logger) *requestLog {
	return &requestLog{store: store, log: log, kept: map[uuid.UUID]int{}, full: make(chan struct{}, 1)}
}

// note takes a request, if it was one to a project.
func (l *requestLog) note(a httpx.Answered) {
	if a.Project == uuid.Nil || !l.keeps(a) {
		return
	}

	id, err := uuid.Parse(a.ID)
	if err != nil {
		return // there was no randomness to make one
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

// keeps reports whether a request to a project is kept.
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

// pattern returns a route without the method that it may begin with.
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

// run writes what was noted until ctx ends, and then what is left.
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

// write writes what waits, and has spare take what comes meanwhile. It returns the next spare.
func (l *requestLog) write(ctx context.Context, spare []platform.Request) []platform.Request {
	l.mu.Lock()
	batch := l.waiting
	if len(batch) > 0 {
		l.waiting = spare[:0]
	}

	l.mu.Unlock()

	if len(batch) == 0 {
		l.report(nil)
		return nil // nobody asks: the room is given back
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

// report says in the log how many requests were dropped since it last said so.
func (l *requestLog) report(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if now := time.Now(); l.dropped > 0 && now.Sub(l.said) > requestsSaid {
		l.log.Warn("requests to projects were not kept", "dropped", l.dropped, "error", err)
		l.dropped, l.said = 0, now
	}
}
