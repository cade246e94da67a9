package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/socle-dev/socle/internal/tick"
)

const (
	probeTimeout = 3 * time.Second // timeout of all probes together
	probeTTL     = time.Second     // cache TTL: the endpoint is public
	// minProbeInterval is the TTL for a result that later requests to projects contradict.
	minProbeInterval = 100 * time.Millisecond
)

// readiness caches the last probes' result.
type readiness struct {
	draining atomic.Bool // see [Server.Drain]

	state   atomic.Int32 // stateReady or stateFailing; 0 before the first probes
	isStale atomic.Bool  // a request since the last probes had another outcome

	mu       sync.Mutex
	probedAt time.Time
	parts    map[string]string
	fails    bool
}

const (
	stateReady   = 1
	stateFailing = 2
)

// probe checks a dependency that requests need.
type probe func(context.Context) error

// observe takes the status of a request to a project, so that the answer does not stay ready while
// requests fail, nor failing while they succeed.
func (r *readiness) observe(status int) {
	state := r.state.Load()
	if (state == stateReady && status >= 500) || (state == stateFailing && status >= 200 && status < 400) {
		r.isStale.Store(true)
	}
}

// ready answers a balancer whether to send requests here, or with full=1 a person whether requests
// can succeed, by component. Servers share their database: if it is away, a balancer must not turn
// away from all of them, since each says more than the balancer could.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	parts, fails := map[string]string{"server": "ok"}, false
	switch {
	case s.readiness.draining.Load():
		parts["server"], fails = "draining", true
	case r.URL.Query().Get("full") == "1":
		parts, fails = s.readiness.checkParts(s.probes(), s.log)
	}

	status := http.StatusOK
	if fails {
		status = http.StatusServiceUnavailable
	}

	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, status, parts)
}

// Drain makes balancers send requests to other servers: for the given time, or until ctx ends, the
// server says that it is not ready, closes each client's connection after its request, and goes on
// to serve.
func (s *Server) Drain(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}

	s.log.Info("draining", "duration", d)
	s.readiness.draining.Store(true)
	s.http.SetKeepAlivesEnabled(false)

	_ = tick.Pause(ctx, d)
}

// checkParts returns each component's state. It runs one set of probes at a time and at most one
// per second, or ten if requests contradict the result, however many callers there are.
func (r *readiness) checkParts(probes map[string]probe, log *slog.Logger) (parts map[string]string, fails bool) {
	r.mu.Lock()
	defer r.mu.Unlock()

	age := time.Since(r.probedAt)
	if age < minProbeInterval || (age < probeTTL && !r.isStale.Load()) {
		return r.parts, r.fails
	}

	r.isStale.Store(false)

	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()

	results := make(chan func(), len(probes))
	parts = map[string]string{}
	for name, probe := range probes {
		go func() {
			err := probe(ctx)
			results <- func() {
				parts[name] = "ok"
				if err != nil {
					log.Warn("not ready", "part", name, "error", err)
					parts[name], fails = "failing", true
				}
			}
		}()
	}

	for range probes {
		(<-results)()
	}

	r.probedAt, r.parts, r.fails = time.Now(), parts, fails
	r.state.Store(map[bool]int32{false: stateReady, true: stateFailing}[fails])

	return parts, fails
}

// probes returns a probe for each dependency that requests need.
func (s *Server) probes() map[string]probe {
	return map[string]probe{
		"database": s.database.Store.Ping,
		"projects": s.registry.Probe,
		"storage":  s.blobs.Check,
		"jobs": func(context.Context) error {
			if !s.services.Queue.Alive() {
				return errors.New("this server has lost its connection to the job queue")
			}
			return nil
		},
	}
}
