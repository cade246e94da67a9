package projectdb

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

func TestOvergrown(t *testing.T) {
	t.Parallel()

	p := &Project{}
	for n, step := range []struct {
		bytes, most     int64
		full, overgrown bool
	}{
		{10 * leeway, 20 * leeway, false, false},
		{30 * leeway, 20 * leeway, true, false}, // any growth between two measurements
		{31 * leeway, 20 * leeway, true, false},
		{31*leeway + 1, 20 * leeway, true, true},
		{25 * leeway, 20 * leeway, true, false},
		{27 * leeway, 20 * leeway, true, true}, // relative to the smallest size since it became full
		{19 * leeway, 20 * leeway, false, false},
		{23 * leeway, 20 * leeway, true, false},
		{23 * leeway, 30 * leeway, false, false},
	} {
		p.recordSize(step.bytes, step.most)
		if p.OverQuota() != step.full || p.FarOverQuota() != step.overgrown {
			t.Errorf("step %d: got %v, %v, want %v, %v", n, p.OverQuota(), p.FarOverQuota(), step.full, step.overgrown)
		}
	}
}

// TestWrites checks that a database without writes is not measured again, unless PostgreSQL has no
// count of writes.
func TestWrites(t *testing.T) {
	t.Parallel()

	p := &Project{}
	for n, step := range []struct {
		writes int64
		want   bool
	}{{5, true}, {5, false}, {6, true}, {6, false}, {2, true}, {0, true}, {0, true}} {
		if got := p.recordWrites(step.writes); got != step.want {
			t.Errorf("step %d: got %v, want %v", n, got, step.want)
		}
	}
}
