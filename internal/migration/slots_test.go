package migration

import (
	"context"
	"testing"

	"github.com/socle-dev/socle/internal/fair"
)

// TestRequestPool: a project has two requests in service, an account four, and others find places.
func TestRequestPool(t *testing.T) {
	t.Parallel()

	p := newRequestPool()
	take := func(account, project string) bool {
		return p.TryAcquire(fair.Key{Account: account, Part: project}, 1) != nil
	}

	for i, c := range []struct {
		account, project string
		want             bool
	}{
		{"a", "1", true}, {"a", "1", true}, {"a", "1", false}, {"a", "2", true}, {"a", "3", true}, {"a", "4", false},
		{"b", "5", true}, {"b", "6", true}, {"c", "7", true}, {"d", "8", true}, {"e", "9", false},
	} {
		if got := take(c.account, c.project); got != c.want {
			t.Errorf("request %d, of %s: admitted %v, want %v", i, c.account, got, c.want)
		}
	}
}

// TestScratchPool: one comparison of an account runs at a time, and those of others beside it.
func TestScratchPool(t *testing.T) {
	t.Parallel()

	p := newScratchPool()
	first, err := p.Acquire(t.Context(), fair.Key{Account: "a", Part: "1"}, 1)
	if err != nil {
		t.Fatal(err)
	}

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Acquire(gone, fair.Key{Account: "a", Part: "2"}, 1); err == nil {
		t.Error("a second comparison of the account runs")
	}

	other, err := p.Acquire(t.Context(), fair.Key{Account: "b"}, 1)
	if err != nil {
		t.Fatal(err)
	}

	first.Release()
	other.Release()
}
