package session

import (
	"context"
	"errors"
	"testing"

	"github.com/socle-dev/socle/internal/fair"
)

// TestBudget checks what one account can take of a budget of its own.
func TestBudget(t *testing.T) {
	t.Parallel()

	b := NewBudget(100)
	over, cancel := context.WithCancel(t.Context())
	cancel()

	share := func(n, held int) bool { return b.tryShare(fair.Key{}, n, held) != nil }
	var last *fair.Lease
	take := func(n int) bool {
		lease, err := b.take(t.Context(), fair.Key{}, n)
		last = lease

		return err == nil
	}

	for _, step := range []struct {
		name string
		do   func() bool
		want bool
		used int
	}{
		{"share a quarter", func() bool { return share(25, 0) }, true, 25},
		{"share more than a quarter of the rest", func() bool { return share(19, 0) }, false, 25},
		{"share more than a quarter with own bytes", func() bool { return share(5, 15) }, false, 25},
		{"take the rest", func() bool { return take(75) }, true, 100},
		{"share of an empty budget", func() bool { return share(1, 0) }, false, 100},
		{"an empty budget is low", func() bool { return b.isLow(noOwner) }, true, 100},
		{"take until the deadline", func() bool {
			_, err := b.take(over, fair.Key{}, 1)
			return errors.Is(err, context.Canceled)
		}, true, 100},
		{"force", func() bool { b.forceTake(fair.Key{}, 10); return share(1, 0) }, false, 110},
		{"release", func() bool { b.release(last); return b.isLow(noOwner) }, false, 35},
		{"take more than the size", func() bool { return take(65) && !share(1, 0) }, true, 100},
	} {
		if got := step.do(); got != step.want || b.InUse() != step.used {
			t.Errorf("%s: got %t and %d, want %t and %d", step.name, got, b.InUse(), step.want, step.used)
		}
	}

	whole := NewBudget(100)
	if lease, err := whole.take(t.Context(), fair.Key{}, 200); lease == nil || err != nil || whole.InUse() != 100 {
		t.Errorf("take more than the size: got %v, %d in use, want all 100", err, whole.InUse())
	}
}

func noOwner() fair.Key { return fair.Key{} }

// TestSharedBudget checks that an account with many projects and clients leaves half of the budget,
// and that what is free goes to the account that holds least.
func TestSharedBudget(t *testing.T) {
	t.Parallel()

	b := NewSharedBudget(1 << 20)
	const response = 20 << 10

	held, err := b.take(t.Context(), fair.Key{Account: "greedy", Part: "0"}, 1<<18)
	if err != nil {
		t.Fatal(err)
	}

	for project := range 10 {
		key := fair.Key{Account: "greedy", Part: string(rune('0' + project))}
		for range 100 {
			b.tryShare(key, response, 0)
			b.pool.TryAcquire(key, response)
		}
	}

	if n := b.InUse(); n > 1<<19 {
		t.Errorf("one account took %d bytes, want half of the budget at most", n)
	}

	other := func() fair.Key { return fair.Key{Account: "other", Part: "0"} }
	if b.isLow(other) || b.tryShare(other(), response, 0) == nil {
		t.Errorf("no room for the response of another account beside %d bytes", b.InUse())
	}

	served := make(chan error)
	go func() {
		lease, err := b.take(t.Context(), fair.Key{Account: "greedy", Part: "0"}, 1<<18)
		b.release(lease)
		served <- err
	}()

	onFree := b.onRelease()
	b.release(held)
	<-onFree

	if err := <-served; err != nil {
		t.Errorf("a response that waited: got %v", err)
	}
}
