package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
)

// TestMeasureUsed checks that databases are measured if they were used since the last measurement,
// are in use, or are full.
func TestMeasureUsed(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	made, err := i.create(t.Context(), i.healthy)
	if err != nil {
		t.Fatal(err)
	}

	l := i.failing // has not used the project
	p := l.Registry.Open(made.UUID)
	limit := func(most int64) {
		t.Helper()

		if err := l.Store.SetDatabaseQuota(t.Context(), p.UUID, most); err != nil {
			t.Fatal(err)
		}
	}

	full := func(since time.Time, want bool) {
		t.Helper()

		if err := l.MeasureActive(t.Context(), since); err != nil {
			t.Fatal(err)
		}

		if p.OverQuota() != want {
			t.Errorf("full: got %v, want %v", p.OverQuota(), want)
		}
	}

	limit(1)
	full(time.Time{}, false) // unused
	p.Owner()

	tomorrow := time.Now().Add(24 * time.Hour)
	full(tomorrow, false)
	full(time.Time{}, true)
	limit(1 << 30)
	full(tomorrow, false)
	limit(1)

	conn, err := p.Owner().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	full(tomorrow, true)
	conn.Release()

	if size, err := l.GetSize(t.Context(), p.UUID); err != nil || size.MaxDatabaseBytes != 1 ||
		size.DatabaseBytes < 1<<20 {
		t.Errorf("got %+v, %v", size, err)
	}
	if _, err := l.GetSize(t.Context(), uuid.New()); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v, want NotFound", err)
	}
}
