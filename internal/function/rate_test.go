package function

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestRate: a burst passes, and what follows waits as long as it takes at the rate.
func TestRate(t *testing.T) {
	t.Parallel()

	var r rate
	now := time.Unix(1_800_000_000, 0)
	if got := r.take(now, outwardBurst); got != 0 {
		t.Errorf("a burst: got %v", got)
	}
	if got := r.take(now, outwardRate); got != time.Second {
		t.Errorf("a second's bytes after the burst: got %v", got)
	}
	if got := r.take(now.Add(time.Second), 0); got != 0 {
		t.Errorf("a second later: got %v", got)
	}
	if got := r.take(now.Add(time.Hour), outwardBurst+outwardRate/2); got != time.Second/2 {
		t.Errorf("an hour later: got %v", got)
	}
}

// TestRatesSweep: rates that slow nothing down are forgotten, others are not.
func TestRatesSweep(t *testing.T) {
	t.Parallel()

	var all rates
	idle, busy := uuid.New(), uuid.New()
	all.of(idle)
	all.of(busy).take(time.Now(), outwardRate*200)

	all.sweep(time.Now().Add(2 * rateTTL))
	if all.all[idle] != nil || all.all[busy] == nil {
		t.Errorf("got %v", all.all)
	}
}
