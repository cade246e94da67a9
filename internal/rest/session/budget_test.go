package session

import "testing"

func TestBudget(t *testing.T) {
	t.Parallel()

	h := NewBudget(100)
	for _, step := range []struct {
		name string
		do   func() bool
		want bool
		left int
	}{
		{"share a quarter", func() bool { return h.tryShare(25, 0) }, true, 75},
		{"share more than a quarter of the rest", func() bool { return h.tryShare(19, 0) }, false, 75},
		{"share more than a quarter with own bytes", func() bool { return h.tryShare(5, 15) }, false, 75},
		{"take the rest", func() bool { return h.tryTake(75) }, true, 0},
		{"take from an empty budget", func() bool { return h.tryShare(1, 0) || h.tryTake(1) }, false, 0},
		{"release all", func() bool { h.release(100); return true }, true, 100},
		{"take more than the size", func() bool { return h.tryTake(200) }, true, -100},
		{"take from an overdrawn budget", func() bool { return h.tryTake(1) || h.tryShare(1, 0) }, false, -100},
		{"overdrawn is low", h.isLow, true, -100},
		{"force", func() bool { h.forceTake(10); return h.tryTake(1) }, false, -110},
		{"half is not low", func() bool { h.release(160); return h.isLow() }, false, 50},
	} {
		if got := step.do(); got != step.want || h.free != step.left {
			t.Errorf("%s: got %t and %d, want %t and %d", step.name, got, h.free, step.want, step.left)
		}
	}
}
