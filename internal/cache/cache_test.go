package cache

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestEntries(t *testing.T) {
	t.Parallel()

	c := New[int, string](Limits{Entries: 2})
	c.Put(1, "one")
	c.Put(1, "uno")
	c.Put(2, "two")

	if got, ok := c.Get(1); got != "uno" || !ok {
		t.Errorf("1: got %q, %v", got, ok)
	}

	c.Put(3, "three")
	if _, ok := c.Get(3); c.Len() != 2 || !ok {
		t.Errorf("got %d entries, the last one: %v", c.Len(), ok)
	}

	c.Delete(3)
	c.Delete(3)
	if _, ok := c.Get(3); c.Len() != 1 || c.Weight() != 1 || ok {
		t.Errorf("after Delete: got %d entries of weight %d, the deleted one: %v", c.Len(), c.Weight(), ok)
	}
}

func TestWeight(t *testing.T) {
	t.Parallel()

	c := New[string, int](Limits{Weight: 10})
	for key, weight := range map[string]int64{"a": 4, "b": 5, "c": 6, "d": 7} {
		c.PutWeighted(key, 0, weight)
		if _, ok := c.Get(key); !ok || c.Weight() > 10 {
			t.Errorf("%s: got %v, weight %d", key, ok, c.Weight())
		}
	}

	c = New[string, int](Limits{Weight: 10})
	c.PutWeighted("a", 1, 4)
	c.PutWeighted("b", 1, 4)
	c.PutWeighted("a", 2, 11)
	if _, ok := c.Get("a"); ok || c.Weight() != 4 {
		t.Errorf("too heavy: got %v, weight %d", ok, c.Weight())
	}
	if _, ok := c.Get("b"); !ok {
		t.Error("a value that is too heavy evicted another one")
	}
}

// TestUsedEntriesStay checks that entries in use survive any number of others.
func TestUsedEntriesStay(t *testing.T) {
	t.Parallel()

	c := New[int, int](Limits{Entries: 10})
	for i := range 100 {
		c.Put(i, i)
		for hot := range min(i+1, 3) {
			if _, ok := c.Get(hot); !ok {
				t.Fatalf("entry %d was evicted after %d", hot, i)
			}
		}
	}

	for i := range 100 {
		c.Get(i)
	}
	c.Put(100, 100)
	if c.Len() != 10 {
		t.Errorf("with all entries in use: got %d, want 10", c.Len())
	}
}

func TestWeigh(t *testing.T) {
	t.Parallel()

	c := New[string, *int64](Limits{Weight: 10, EntryWeight: 6})
	sizes := map[string]*int64{"a": new(int64(1)), "b": new(int64(1)), "c": new(int64(1)), "d": new(int64(1))}
	for key, size := range sizes {
		c.PutWeighted(key, size, *size)
	}
	c.Get("a")

	*sizes["a"], *sizes["b"], *sizes["c"], *sizes["d"] = 5, 4, 4, 7
	c.Weigh(func(size *int64) int64 { return *size })

	_, hasA := c.Get("a")
	if _, hasD := c.Get("d"); !hasA || hasD || c.Len() != 2 || c.Weight() != 9 {
		t.Errorf("got %d entries of weight %d, used one: %v, too heavy one: %v; want 2 of 9, true, false",
			c.Len(), c.Weight(), hasA, hasD)
	}

	if got := c.Clear(); len(got) != 2 || c.Len() != 0 || c.Weight() != 0 {
		t.Errorf("Clear: got %d values, %d entries of weight %d left", len(got), c.Len(), c.Weight())
	}
}

func TestTTL(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		c := New[int, int](Limits{TTL: time.Minute})
		c.Put(1, 1)

		time.Sleep(time.Minute - 1)
		if _, ok := c.Get(1); !ok {
			t.Error("outdated before its TTL")
		}
		if _, ok := c.GetYounger(1, time.Second); ok {
			t.Error("got a value older than asked for")
		}

		time.Sleep(time.Nanosecond)
		if _, ok := c.Get(1); ok {
			t.Error("fresh after its TTL")
		}

		c.Put(1, 2)
		if got, ok := c.Get(1); got != 2 || !ok {
			t.Errorf("put again: got %d, %v", got, ok)
		}
	})
}

// TestNil checks that a nil cache stays empty.
func TestNil(t *testing.T) {
	t.Parallel()

	var c *Cache[int, int]
	c.Put(1, 1)
	if _, ok := c.Get(1); ok {
		t.Error("a nil cache has an entry")
	}
}

func TestConcurrency(t *testing.T) {
	t.Parallel()

	c := New[int, int](Limits{Entries: 5, TTL: time.Hour})

	var tasks sync.WaitGroup
	for range 4 {
		tasks.Go(func() {
			for i := range 1000 {
				c.Put(i%10, i)
				c.Get(i % 7)
				c.Delete(i % 3)
			}
		})
	}
	tasks.Wait()

	if c.Len() > 5 || c.Weight() != int64(c.Len()) {
		t.Errorf("got %d entries of weight %d", c.Len(), c.Weight())
	}
}
