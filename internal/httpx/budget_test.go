package httpx_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/socle-dev/socle/internal/httpx"
)

func TestBudget(t *testing.T) {
	t.Parallel()

	b := httpx.NewBudget(1000)
	canceled, cancel := context.WithCancel(t.Context())
	cancel() // fails at once instead of waiting

	release, err := b.Take(canceled, "a", 250)
	if err != nil {
		t.Fatal(err)
	}

	if _, err := b.Take(canceled, "a", 1); !errors.Is(err, httpx.ErrBusy) {
		t.Errorf("more than a quarter for one client: got %v, want ErrBusy", err)
	}
	if _, err := b.Take(canceled, "b", 188); !errors.Is(err, httpx.ErrBusy) {
		t.Errorf("more than a quarter of the rest: got %v, want ErrBusy", err)
	}

	if _, err := b.Take(canceled, "b", 187); err != nil {
		t.Errorf("a quarter of the rest: %v", err)
	}

	waited := make(chan error)
	go func() {
		_, err := b.Take(t.Context(), "a", 100)
		waited <- err
	}()

	release()
	if err := <-waited; err != nil {
		t.Errorf("after room was given back: %v", err)
	}

	if got := b.Peak(); got != 437 {
		t.Errorf("got peak %d, want 437", got)
	}
}

// TestBudgetIsKept: concurrent callers never exceed the budget, all of them succeed, and all bytes
// are released.
func TestBudgetIsKept(t *testing.T) {
	t.Parallel()

	b := httpx.NewBudget(1000)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			release, err := b.Take(t.Context(), fmt.Sprint(i%7), 50)
			if err != nil {
				t.Error(err)
				return
			}

			release()
		})
	}

	wg.Wait()

	if got := b.Peak(); got > 1000 {
		t.Errorf("got peak %d, want at most 1000", got)
	}

	if _, err := b.Take(t.Context(), "last", 250); err != nil {
		t.Error(err)
	}
}
