// Package cache is a bounded map in memory.
package cache

import (
	"sync"
	"time"
)

// Limits bound a cache. A limit of 0 is none.
type Limits struct {
	Entries int
	Weight  int64         // of all entries, in a unit of the caller's choice
	TTL     time.Duration // of an entry, from its [Cache.Put]

	Now func() time.Time // the clock of the TTL; nil means time.Now
}

// Cache maps keys to values. Beyond a limit it evicts arbitrary entries, so a hot entry may go; its
// next miss brings it back. A nil cache stays empty. It is safe for concurrent use.
type Cache[K comparable, V any] struct {
	limits Limits

	mu      sync.RWMutex
	entries map[K]entry[V]
	weight  int64
}

type entry[V any] struct {
	value  V
	weight int64
	putAt  time.Time
}

// New returns an empty cache.
func New[K comparable, V any](l Limits) *Cache[K, V] {
	if l.Now == nil {
		l.Now = time.Now
	}

	return &Cache[K, V]{limits: l, entries: map[K]entry[V]{}}
}

// Get returns the value of a key, unless its TTL has passed. An entry from the future, put before
// the system's clock was set back, counts as fresh.
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

	return e.value, true
}

// Put stores a value of weight 1.
func (c *Cache[K, V]) Put(key K, value V) { c.PutWeighted(key, value, 1) }

// PutWeighted stores a value. One that outweighs the whole cache is not stored.
func (c *Cache[K, V]) PutWeighted(key K, value V, weight int64) {
	if c == nil {
		return
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	c.remove(key)
	if c.limits.Weight > 0 && weight > c.limits.Weight {
		return
	}

	for other := range c.entries {
		if c.hasRoom(weight) {
			break
		}
		c.remove(other)
	}

	c.entries[key] = entry[V]{value, weight, c.limits.Now()}
	c.weight += weight
}

func (c *Cache[K, V]) hasRoom(weight int64) bool {
	return (c.limits.Entries == 0 || len(c.entries) < c.limits.Entries) &&
		(c.limits.Weight == 0 || c.weight+weight <= c.limits.Weight)
}

// Delete removes the entry of a key, if there is one.
func (c *Cache[K, V]) Delete(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.remove(key)
}

func (c *Cache[K, V]) remove(key K) {
	c.weight -= c.entries[key].weight
	delete(c.entries, key)
}

// Len returns the number of entries, outdated ones included.
func (c *Cache[K, V]) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()

	return len(c.entries)
}

// Weight returns the weight of all entries, outdated ones included.
func (c *Cache[K, V]) Weight() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()

	return c.weight
}
