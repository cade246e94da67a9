// Package cache is a bounded map in memory.
package cache

import (
	"sync"
	"sync/atomic"
	"time"
)

// Limits bound a cache. A limit of 0 is none.
type Limits struct {
	Entries     int
	Weight      int64         // total weight, in a unit of the caller's choice
	EntryWeight int64         // maximum per entry
	TTL         time.Duration // age since [Cache.Put] at which an entry expires

	Now func() time.Time // clock for the TTL; nil means time.Now
}

// Cache maps keys to values. Beyond a limit it evicts entries that were not read since the last
// eviction, and others only if there are none. A nil cache stays empty. It is safe for concurrent
// use.
type Cache[K comparable, V any] struct {
	limits Limits

	mu      sync.RWMutex
	entries map[K]*entry[V]
	weight  int64
}

type entry[V any] struct {
	value  V
	weight int64
	putAt  time.Time
	recent atomic.Bool // read since the last eviction pass
}

// New returns an empty cache.
func New[K comparable, V any](l Limits) *Cache[K, V] {
	if l.Now == nil {
		l.Now = time.Now
	}

	return &Cache[K, V]{limits: l, entries: map[K]*entry[V]{}}
}

// Get returns the value for a key, unless its TTL has passed. An entry from the future, put before
// the system clock was set back, counts as fresh.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	if c == nil {
		return value, false
	}

	return c.GetYounger(key, c.limits.TTL)
}

// GetYounger is [Cache.Get] with another TTL, for a caller that needs a fresher value.
func (c *Cache[K, V]) GetYounger(key K, ttl time.Duration) (value V, ok bool) {
	if c == nil {
		return value, false
	}

	c.mu.RLock()
	defer c.mu.RUnlock()

	e, ok := c.entries[key]
	if !ok || (ttl > 0 && c.limits.Now().Sub(e.putAt) >= ttl) {
		return value, false
	}

	if !e.recent.Load() { // a store would take the cache line from other processors
		e.recent.Store(true)
	}

	return e.value, true
}

// Put stores a value with weight 1.
func (c *Cache[K, V]) Put(key K, value V) { c.PutWeighted(key, value, 1) }

// PutWeighted stores a value, unless it outweighs a limit by itself.
func (c *Cache[K, V]) PutWeighted(key K, value V, weight int64) {
	if c == nil {
		return
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	c.remove(key)
	if c.isTooHeavy(weight) {
		return
	}

	c.makeRoom(1, weight)
	c.entries[key] = &entry[V]{value: value, weight: weight, putAt: c.limits.Now()}
	c.weight += weight
}

// Weigh measures all values again, for values that grow, and evicts those beyond the limits.
func (c *Cache[K, V]) Weigh(measure func(V) int64) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.weight = 0
	for key, e := range c.entries {
		e.weight = measure(e.value)
		c.weight += e.weight

		if c.isTooHeavy(e.weight) {
			c.remove(key)
		}
	}

	c.makeRoom(0, 0)
}

func (c *Cache[K, V]) isTooHeavy(weight int64) bool {
	return (c.limits.Weight > 0 && weight > c.limits.Weight) ||
		(c.limits.EntryWeight > 0 && weight > c.limits.EntryWeight)
}

// makeRoom evicts entries until there is room for more, with the given total weight. The first pass
// spares entries that were read, and clears their marks.
func (c *Cache[K, V]) makeRoom(entries int, weight int64) {
	for !c.hasRoom(entries, weight) {
		for key, e := range c.entries {
			if c.hasRoom(entries, weight) {
				return
			}
			if !e.recent.Swap(false) {
				c.remove(key)
			}
		}
	}
}

func (c *Cache[K, V]) hasRoom(entries int, weight int64) bool {
	return (c.limits.Entries == 0 || len(c.entries)+entries <= c.limits.Entries) &&
		(c.limits.Weight == 0 || c.weight+weight <= c.limits.Weight)
}

// Delete removes a key's entry, if there is one.
func (c *Cache[K, V]) Delete(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.remove(key)
}

func (c *Cache[K, V]) remove(key K) {
	if e := c.entries[key]; e != nil {
		c.weight -= e.weight
		delete(c.entries, key)
	}
}

// Clear removes all entries and returns their values.
func (c *Cache[K, V]) Clear() []V {
	c.mu.Lock()
	defer c.mu.Unlock()

	values := make([]V, 0, len(c.entries))
	for key, e := range c.entries {
		values = append(values, e.value)
		c.remove(key)
	}

	return values
}

// Len returns the number of entries, outdated ones included.
func (c *Cache[K, V]) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()

	return len(c.entries)
}

// Weight returns the total weight, outdated entries included.
func (c *Cache[K, V]) Weight() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()

	return c.weight
}
