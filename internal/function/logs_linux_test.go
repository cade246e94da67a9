//go:build amd64 || arm64

package function

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/function/runtime"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// countLines returns the number of lines in a project's log.
func countLines(t *testing.T, p *projectdb.Project) int64 {
	t.Helper()

	n, err := pg.Value[int64](t.Context(), p.Trusted(), `select count(*) from socle.edge_function_log`)
	if err != nil {
		t.Fatal(err)
	}

	return n
}

// TestTrim: a log beyond its size loses its older half, also if its lines are long.
func TestTrim(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	if _, err := pg.Exec(t.Context(), p.Trusted(), `
		insert into socle.edge_function_log (at, function_name, stream, message)
		select now(), 'f', 'stdout', (select string_agg(md5(i::text || j::text), '') from generate_series(1, 300) j)
		from generate_series(1, 100) i`, pgx.StrictNamedArgs{}); err != nil {
		t.Fatal(err)
	}

	if err := trim(t.Context(), p, 2<<20); err != nil || countLines(t, p) != 100 {
		t.Errorf("below the size: got %d lines, %v", countLines(t, p), err)
	}
	if err := trim(t.Context(), p, 700_000); err != nil || countLines(t, p) != 50 {
		t.Errorf("above the size: got %d lines, %v", countLines(t, p), err)
	}
	if err := trim(t.Context(), p, 700_000); err != nil || countLines(t, p) != 50 {
		t.Errorf("again: got %d lines, %v", countLines(t, p), err)
	}
}

// TestSweep: lines and counts of more than a week ago are removed.
func TestSweep(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	if _, err := pg.Exec(t.Context(), p.Trusted(), `
		insert into socle.edge_function_log (at, function_name, stream, message)
		select now() - d * interval '1 day', 'f', 'stdout', 'line' from generate_series(0, 9) d`,
		pgx.StrictNamedArgs{}); err != nil {
		t.Fatal(err)
	}
	if _, err := pg.Exec(t.Context(), p.Trusted(), `
		insert into socle.edge_function_metrics (function_name, hour, calls, errors, cold_starts, cpu_microseconds, durations)
		select 'f', now() - d * interval '1 day', 1, 0, 0, 0, '{1}' from generate_series(0, 9) d`,
		pgx.StrictNamedArgs{}); err != nil {
		t.Fatal(err)
	}

	if err := Subject().Sweep(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if got := countLines(t, p); got != 7 {
		t.Errorf("got %d lines, want 7", got)
	}

	metrics, err := ListMetrics(t.Context(), p, time.Now().Add(-30*24*time.Hour))
	if err != nil || len(metrics) != 1 || metrics[0].Calls != 7 {
		t.Errorf("got %+v, %v", metrics, err)
	}
}

// TestPendingBound: the lines that wait have a bound for each project.
func TestPendingBound(t *testing.T) {
	t.Parallel()

	var l logs
	p := projectdbtest.New(t)
	line := runtime.Line{Stream: runtime.Stdout, Text: strings.Repeat("x", runtime.MaxLine)}
	for range 1000 {
		l.add(p, "f", line)
	}
	if got := l.pending[p.UUID]; got.bytes > maxPendingOf || got.lost == 0 {
		t.Errorf("got %d bytes, %d lost", got.bytes, got.lost)
	}

	l.flush(t.Context(), slog.New(slog.DiscardHandler))
	if got := countLines(t, p); got == 0 || got > 110 {
		t.Errorf("got %d lines", got)
	}
}

// TestMetrics: calls are counted with their durations, errors and starts.
func TestMetrics(t *testing.T) {
	t.Parallel()

	s, p := newService(t), projectdbtest.New(t)
	deploy(t, s, p, "counted", `
		Deno.serve((r) => new Response("x", { status: new URL(r.url).searchParams.has("fail") ? 500 : 200 }));`)
	for _, query := range []string{"", "", "fail"} {
		if _, err := call(t.Context(), s, p, "counted", query); err != nil {
			t.Fatal(err)
		}
	}

	for range 2 { // what is stored twice adds up
		s.tallies.flush(t.Context(), slog.New(slog.DiscardHandler))
		if _, err := call(t.Context(), s, p, "counted", ""); err != nil {
			t.Fatal(err)
		}
	}
	s.tallies.flush(t.Context(), slog.New(slog.DiscardHandler))

	metrics, err := ListMetrics(t.Context(), p, time.Now().Add(-time.Minute))
	if err != nil || len(metrics) != 1 {
		t.Fatalf("got %+v, %v", metrics, err)
	}
	m := metrics[0]
	if m.Function != "counted" || m.Calls != 5 || m.Errors != 1 || m.ColdStarts != 1 || m.MedianMilliseconds <= 0 ||
		m.P99Milliseconds < m.MedianMilliseconds {
		t.Errorf("got %+v", m)
	}
	if total := s.Stats(); total.Calls != 5 || total.Errors != 1 || total.Processes != 1 {
		t.Errorf("got %+v", total)
	}
}

// TestLimitsOfProject: the limits of a project hold for its next process.
func TestLimitsOfProject(t *testing.T) {
	t.Parallel()

	s, p := newService(t), projectdbtest.New(t)
	deploy(t, s, p, "first", `Deno.serve(() => new Response("first"));`)
	deploy(t, s, p, "second", `Deno.serve(() => new Response("second"));`)
	want(t, s, p, "first", "first")

	one, milliseconds, memory := 1, 100, 128
	limits, err := s.UpdateLimits(t.Context(), p, LimitChange{Processes: &one, Concurrency: &one,
		CPUMilliseconds: &milliseconds, MemoryMB: &memory})
	if err != nil || limits.Processes != 1 || limits.WallSeconds != defaultLimits.WallSeconds {
		t.Fatalf("got %+v, %v", limits, err)
	}

	busy, err := s.Acquire(t.Context(), p, "first")
	if err != nil {
		t.Fatal(err)
	}
	if busy.worker.budget.left > maxRequests*100*time.Millisecond {
		t.Errorf("got a budget of %v", busy.worker.budget.left)
	}
	for _, name := range []string{"first", "second"} { // beyond concurrency, and beyond processes
		if _, err := s.Acquire(t.Context(), p, name); err != ErrBusy {
			t.Errorf("%s: got %v, want %v", name, err, ErrBusy)
		}
	}

	busy.Release()
	want(t, s, p, "second", "second") // instead of the idle one
}
