package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A request is warm if one to the same API of its project ended at most maxWarmDistance requests
// before. It is cold if that was more than minColdDistance requests before, or never.
const (
	maxWarmDistance = 40
	minColdDistance = 400
)

// The APIs have different logins, and so different connections, to a project's database.
const (
	rowsAPI = iota
	platformAPI
	apis
)

// figures are the results of one measurement.
type figures struct {
	requests, failures int
	first              error // first failure
	took               time.Duration
	warm, cold         []time.Duration
	socle, postgres    time.Duration // processor time
}

// worker is one client with its results.
type worker struct {
	*bench
	figures
	transport http.RoundTripper
	random    *rand.Rand
}

// load runs clients for a time. Each request goes to a project chosen by draw.
func (b *bench) load(ctx context.Context, clients int, length time.Duration, draw func(*rand.Rand) int) figures {
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()

	var ended atomic.Int64
	last := make([][apis]atomic.Int64, len(b.projects)) // value of ended at the last request's end
	workers := make([]worker, clients)

	var wg sync.WaitGroup
	socle, postgres := b.processor()
	begun := time.Now()
	for i := range workers {
		w := &workers[i]
		*w = worker{bench: b, transport: transport, random: rand.New(rand.NewPCG(uint64(begun.UnixNano()), uint64(i)))}
		wg.Go(func() {
			for time.Since(begun) < length && ctx.Err() == nil {
				p := draw(w.random)
				q, api := w.next(b.projects[p])

				before := last[p][api].Load()
				distance := ended.Load() - before
				warm := before > 0 && distance <= maxWarmDistance
				cold := before == 0 || distance > minColdDistance
				w.ask(q, warm, cold)
				last[p][api].Store(ended.Add(1))
			}
		})
	}

	watched := make(chan struct{})
	go func() {
		defer close(watched)

		for time.Since(begun) < length && ctx.Err() == nil {
			_, _ = b.connections() // records the maximum
			time.Sleep(250 * time.Millisecond)
		}
	}()

	wg.Wait()
	took := time.Since(begun)
	<-watched

	return b.sum(workers, took, socle, postgres)
}

// sweep reads rows of each project once.
func (b *bench) sweep(ctx context.Context) figures {
	w := worker{
		bench:     b,
		transport: http.DefaultTransport,
		random:    rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)),
	}

	socle, postgres := b.processor()
	begun := time.Now()

	for _, p := range b.projects {
		if ctx.Err() == nil {
			w.ask(kinds[0].next(&w, p), false, true)
		}
	}

	return b.sum([]worker{w}, time.Since(begun), socle, postgres)
}

// sum combines the results of workers. socle and postgres are the processor times before the
// measurement.
func (b *bench) sum(workers []worker, took, socle, postgres time.Duration) figures {
	all := figures{took: took}
	all.socle, all.postgres = b.processor()
	all.socle, all.postgres = all.socle-socle, all.postgres-postgres

	for _, w := range workers {
		all.requests += w.requests
		all.failures += w.failures

		if all.first == nil {
			all.first = w.first
		}

		all.warm, all.cold = slices.Concat(all.warm, w.warm), slices.Concat(all.cold, w.cold)
	}

	return all
}

// ask sends a request and records its latency.
func (w *worker) ask(q *http.Request, warm, cold bool) {
	begun := time.Now()
	_, err := send(w.transport, q)
	took := time.Since(begun)
	w.requests++

	switch {
	case err != nil:
		w.failures++
		if w.first == nil {
			w.first = err
		}
	case warm:
		w.warm = append(w.warm, took)
	case cold:
		w.cold = append(w.cold, took)
	}
}

// kinds are the kinds of requests, each with its API and its share in percent.
var kinds = []struct {
	name  string
	api   int
	share int
	next  func(w *worker, p project) *http.Request
}{
	{"read", rowsAPI, 50, func(w *worker, p project) *http.Request {
		return w.rowsRequest("GET", "/items?select=id,note&limit=5", p, "")
	}},
	{"write", rowsAPI, 20, func(w *worker, p project) *http.Request {
		return w.rowsRequest("POST", "/items", p, `{"note": "a note"}`)
	}},
	{"tables", platformAPI, 10, func(w *worker, p project) *http.Request {
		return w.platformRequest("GET", "/tables", p.id, "")
	}},
	{"containers", platformAPI, 10, func(w *worker, p project) *http.Request {
		return w.platformRequest("GET", "/containers?limit=5", p.id, "")
	}},
	{"create", platformAPI, 10, func(w *worker, p project) *http.Request {
		return w.platformRequest("POST", "/containers", p.id,
			fmt.Sprintf(`{"name": "c%d", "max_file_size": 1000}`, w.random.Uint64()))
	}},
}

// next returns a request to a project, and its API.
func (w *worker) next(p project) (q *http.Request, api int) {
	n := w.random.IntN(100)
	for _, k := range kinds {
		if *only == k.name || *only == "" && n < k.share {
			return k.next(w, p), k.api
		}
		n -= k.share
	}

	panic("bench: no requests of kind " + *only)
}
