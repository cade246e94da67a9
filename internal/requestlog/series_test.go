package requestlog

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/platform/platformtest"
)

// TestSeries counts requests at the edges of buckets and of the span.
func TestSeries(t *testing.T) {
	t.Parallel()

	i := platformtest.New(t)
	project, other := i.Project(), i.Project()
	now := time.Date(2026, 11, 27, 12, 30, 30, 0, time.UTC)
	minute := func(n int) time.Time { return now.Truncate(time.Minute).Add(time.Duration(n) * time.Minute) }

	var all []record
	add := func(p uuid.UUID, at time.Time, status int16, took time.Duration) {
		all = append(all, record{uuid: uuid.Must(uuid.NewV7()), project: p, at: at, status: status, took: took})
	}
	for n := range 100 {
		add(project, minute(0).Add(time.Duration(n)*time.Millisecond), 200, time.Duration(n+1)*time.Millisecond)
	}
	add(project, minute(-1), 404, time.Millisecond)
	add(project, minute(0).Add(-time.Microsecond), 503, time.Millisecond)
	add(project, minute(-59), 499, time.Millisecond)
	add(project, minute(-59).Add(-time.Microsecond), 500, time.Millisecond) // before the span
	add(other, minute(0), 500, time.Millisecond)
	if err := appendRecords(t.Context(), i.DB, all); err != nil {
		t.Fatal(err)
	}

	got, incomplete, err := NewCounter(i.DB).Series(t.Context(), fair.Key{}, project, Spans["hour"], now)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 60 || incomplete != nil || !got[0].At.Equal(minute(-59)) || !got[59].At.Equal(minute(0)) {
		t.Fatalf("got %d buckets, incomplete before %v: %+v", len(got), incomplete, got)
	}

	last, former, first, none := got[59], got[58], got[0], got[30]
	if last.Requests != 100 || *last.P50 != 50_000 || *last.P99 != 99_000 || last.ServerErrors != 0 {
		t.Errorf("got %+v in the last minute", last)
	}
	if former.Requests != 2 || former.ClientErrors != 1 || former.ServerErrors != 1 {
		t.Errorf("got %+v in the minute before", former)
	}
	if first.Requests != 1 || first.ClientErrors != 1 || none.Requests != 0 || none.P50 != nil {
		t.Errorf("got %+v in the first minute, %+v in an empty one", first, none)
	}

	bounded, incomplete, err := seriesOf(t.Context(), i.DB, project, Spans["hour"], now, 10)
	if err != nil {
		t.Fatal(err)
	}
	if bounded[59].Requests != 10 || incomplete == nil || !incomplete.Equal(minute(0).Add(90*time.Millisecond)) {
		t.Errorf("got %+v, incomplete before %v, of a series of ten requests", bounded[59], incomplete)
	}
}

// TestSeriesAreShared checks that one account counts the requests of one project at a time.
func TestSeriesAreShared(t *testing.T) {
	t.Parallel()

	i := platformtest.New(t)
	project := i.Project()
	c := newCounter(i.DB, time.Nanosecond)
	place := c.places.TryAcquire(fair.Key{Account: "a", Part: "one"}, 1)

	for account, busy := range map[string]bool{"a": true, "b": false} {
		_, _, err := c.Series(t.Context(), fair.Key{Account: account, Part: "two"}, project, Spans["hour"], time.Now())
		if fault.Is(err, fault.TooMany) != busy || (err != nil) != busy {
			t.Errorf("account %s: got %v, want a refusal: %t", account, err, busy)
		}
	}

	place.Release()
	_, _, err := c.Series(t.Context(), fair.Key{Account: "a", Part: "two"}, project, Spans["hour"], time.Now())
	if err != nil {
		t.Error(err)
	}
}
