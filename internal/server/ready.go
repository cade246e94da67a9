package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

const (
	probeTimeout = 3 * time.Second // timeout of all probes together
	probeTTL     = time.Second     // TTL of the result: the endpoint is public
)

// readiness caches the result of the last probes.
type readiness struct {
	mu       sync.Mutex
	probedAt time.Time
	parts    map[string]string
	fails    bool
}

// ready answers whether the server can serve requests, by component. The reasons are in the log.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	parts, fails := s.readiness.check(s)
	status := http.StatusOK
	if fails {
		status = http.StatusServiceUnavailable
	}

	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, status, parts)
}

// check returns the state of each component. It runs one set of probes at a time and at most one
// per second, regardless of the number of callers.
func (r *readiness) check(s *Server) (parts map[string]string, fails bool) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if time.Since(r.probedAt) < probeTTL {
		return r.parts, r.fails
	}

	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()

	probes := s.probes()
	results := make(chan func(), len(probes))
	parts = map[string]string{}
	for name, probe := range probes {
		go func() {
			err := probe(ctx)
			results <- func() {
				parts[name] = "ok"
				if err != nil {
					s.log.Warn("not ready", "part", name, "error", err)
					parts[name], fails = "failing", true
				}
			}
		}()
	}

	for range probes {
		(<-results)()
	}

	r.probedAt, r.parts, r.fails = time.Now(), parts, fails
	return parts, fails
}

// probes returns a probe for each dependency of requests.
func (s *Server) probes() map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
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
