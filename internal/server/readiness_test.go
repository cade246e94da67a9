package server

import (
	"context"
	"errors"
	"log/slog"
	"testing"
)

// TestReadinessFollowsRequests tests that a cached result does not outlive a request that
// contradicts it.
func TestReadinessFollowsRequests(t *testing.T) {
	t.Parallel()

	var r readiness
	var down error
	probes := map[string]probe{"database": func(context.Context) error { return down }}
	check := func(when string, want bool) {
		t.Helper()

		r.probedAt = r.probedAt.Add(-minProbeInterval)
		if _, fails := r.checkParts(probes, slog.New(slog.DiscardHandler)); fails != want {
			t.Errorf("%s: got failing %v, want %v", when, fails, want)
		}
	}

	check("at the start", false)
	down = errors.New("down")
	r.observe(200)
	r.observe(404)
	check("while requests succeed", false)
	r.observe(503)
	check("after a request failed", true)
	down = nil
	r.observe(500)
	check("while requests fail", true)
	r.observe(201)
	check("after a request succeeded", false)
}
