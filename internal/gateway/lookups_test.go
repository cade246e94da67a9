package gateway

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
)

// TestWeightedLookups checks that large values do not fill the memory.
func TestWeightedLookups(t *testing.T) {
	t.Parallel()

	reads := 0
	l := newWeightedLookups(func(context.Context, uuid.UUID) ([]byte, error) {
		reads++
		return make([]byte, 40), nil
	}, 100, func(value []byte) int64 { return int64(len(value)) })

	for range 5 {
		if _, err := l.find(t.Context(), time.Now(), uuid.New()); err != nil {
			t.Fatal(err)
		}
	}
	if reads != 5 || l.len() != 2 {
		t.Errorf("%d reads, %d results are cached, want 5 and 2", reads, l.len())
	}
}

// TestLookups checks how long results are cached, and that those that are read are shared.
func TestLookups(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		reads := 0
		var failure error
		l := newLookups(func(context.Context, uuid.UUID) (int, error) {
			time.Sleep(time.Second) // on the simulated clock
			reads++
			return reads, failure
		})

		key := uuid.New()
		want := func(step string, value int, err error) {
			t.Helper()

			got, failed := l.find(t.Context(), time.Now(), key)
			if got != value || !errors.Is(failed, err) {
				t.Errorf("%s: got %d, %v, want %d, %v", step, got, failed, value, err)
			}
		}

		var tasks sync.WaitGroup
		for range 3 {
			tasks.Go(func() { want("at once", 1, nil) })
		}
		tasks.Wait()

		time.Sleep(lookupTTL - time.Second - 1)
		want("fresh", 1, nil)
		time.Sleep(time.Nanosecond)
		want("outdated", 2, nil)

		failure = fault.Missing()
		l.invalidate(key)
		want("invalidated", 3, failure)
		want("missing", 3, failure)

		failure = errors.New("no connection")
		l.invalidate(key)
		want("failed", 4, failure)
		want("failed again", 5, failure)

		failure = nil
		tasks.Go(func() { want("invalidated during the read", 6, nil) })
		time.Sleep(time.Millisecond)
		l.invalidate(key)
		tasks.Wait()
		want("after it", 7, nil)
		if l.len() != 1 {
			t.Errorf("%d results are cached, want 1", l.len())
		}
	})
}
