package gateway

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/socle-dev/socle/internal/cache"
	"github.com/socle-dev/socle/internal/fault"
)

const (
	lookupTTL     = 5 * time.Second // within which all servers notice a change
	maxLookups    = 10_000          // cached results per kind
	lookupTimeout = 10 * time.Second
)

// lookups reads values from the platform database by their keys, and caches them. It caches as well
// that there is none.
type lookups[K lookupKey, V any] struct {
	read    func(context.Context, K) (V, error) // fails with NotFound if there is none
	results *cache.Cache[K, result[V]]
	weigh   func(V) int64 // weight of a result; nil: 1
	flights singleflight.Group

	mu            sync.Mutex
	invalidations uint64
}

type lookupKey interface {
	comparable
	String() string
}

// result is a value or the NotFound that it does not exist.
type result[V any] struct {
	value     V
	err       error
	expiresAt time.Time
}

func newLookups[K lookupKey, V any](read func(context.Context, K) (V, error)) *lookups[K, V] {
	return &lookups[K, V]{read: read, results: cache.New[K, result[V]](cache.Limits{Entries: maxLookups})}
}

// newWeightedLookups is newLookups for values that vary in size.
func newWeightedLookups[K lookupKey, V any](
	read func(context.Context, K) (V, error), maxWeight int64, weigh func(V) int64,
) *lookups[K, V] {
	return &lookups[K, V]{read: read, weigh: weigh,
		results: cache.New[K, result[V]](cache.Limits{Entries: maxLookups, Weight: maxWeight})}
}

// find returns a key's value for a request that began at start.
func (l *lookups[K, V]) find(ctx context.Context, start time.Time, key K) (V, error) {
	if r, ok := l.cached(start, key); ok {
		return r.value, r.err
	}
	return l.load(ctx, key)
}

// cached returns a key's cached result, as long as it is fresh for a request that began at start.
func (l *lookups[K, V]) cached(start time.Time, key K) (r result[V], ok bool) {
	r, ok = l.results.Get(key)
	return r, ok && start.Before(r.expiresAt)
}

// load reads a value. Concurrent requests for one key share a query, so that a busy project takes
// one connection to the platform database when its result expires.
func (l *lookups[K, V]) load(ctx context.Context, key K) (V, error) {
	shared, err, _ := l.flights.Do(key.String(), func() (any, error) {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
		defer cancel()

		return l.refresh(bounded, key)
	})

	return shared.(V), err
}

// refresh reads a value and caches it.
func (l *lookups[K, V]) refresh(ctx context.Context, key K) (V, error) {
	now := time.Now()
	l.mu.Lock()
	invalidations := l.invalidations
	l.mu.Unlock()

	value, err := l.read(ctx, key)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return value, err
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	if l.invalidations == invalidations { // otherwise possibly stale
		weight := int64(1)
		if l.weigh != nil {
			weight += l.weigh(value)
		}

		l.results.PutWeighted(key, result[V]{value, err, now.Add(lookupTTL)}, weight)
	}

	return value, err
}

// invalidate drops a key's result, also one that is being read.
func (l *lookups[K, V]) invalidate(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.invalidations++
	l.results.Delete(key)
	l.flights.Forget(key.String())
}

func (l *lookups[K, V]) len() int { return l.results.Len() }
