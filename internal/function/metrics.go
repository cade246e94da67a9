package function

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

const (
	tallyInterval = 10 * time.Second
	maxMetricAge  = 7 * 24 * time.Hour
)

// durationBounds are the upper bounds of the intervals in which calls are counted, in milliseconds.
// The last interval has no bound.
var durationBounds = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 150_000}

// Metrics is what a function did in a time.
type Metrics struct {
	Function           string  `json:"function"`
	Calls              int64   `json:"calls"`
	Errors             int64   `json:"errors" doc:"Calls without an answer, or with a status of 500 or above."`
	ColdStarts         int64   `json:"coldStarts" doc:"Processes that were started."`
	CPUMilliseconds    int64   `json:"cpuMilliseconds" doc:"Processor time of all processes."`
	MedianMilliseconds float64 `json:"medianMilliseconds" doc:"Time to the answer of half of the calls, estimated."`
	P99Milliseconds    float64 `json:"p99Milliseconds" doc:"Time to the answer of 99 % of the calls, estimated."`
}

// ListMetrics returns what each function of a project did since a time, by name.
func ListMetrics(ctx context.Context, p *projectdb.Project, since time.Time) ([]Metrics, error) {
	type sums struct {
		Name                      string
		Calls, Errors, ColdStarts int64
		CPUMicroseconds           int64 `db:"cpu_microseconds"`
		Durations                 []int64
	}
	all, err := pg.All[sums](ctx, p.Trusted(), `
		select m.function_name as name, sum(calls)::bigint as calls, sum(errors)::bigint as errors,
			sum(cold_starts)::bigint as cold_starts, sum(cpu_microseconds)::bigint as cpu_microseconds, (
				select array_agg(d.n order by d.i) from (
					select e.i, sum(e.n)::bigint as n
					from socle.edge_function_metrics o, unnest(o.durations) with ordinality e (n, i)
					where o.function_name = m.function_name and o.hour >= date_trunc('hour', @since::timestamptz)
					group by e.i) d) as durations
		from socle.edge_function_metrics m where m.hour >= date_trunc('hour', @since::timestamptz)
		group by m.function_name order by m.function_name`, pgx.StrictNamedArgs{"since": since})

	metrics := make([]Metrics, len(all))
	for i, s := range all {
		metrics[i] = Metrics{Function: s.Name, Calls: s.Calls, Errors: s.Errors, ColdStarts: s.ColdStarts,
			CPUMilliseconds: s.CPUMicroseconds / 1000, MedianMilliseconds: quantile(s.Durations, 0.5),
			P99Milliseconds: quantile(s.Durations, 0.99)}
	}

	return metrics, err
}

// quantile returns an estimate of a quantile in milliseconds: within its interval, counts are taken
// to be spread evenly. A call beyond the last bound counts as that bound.
func quantile(counts []int64, q float64) float64 {
	var total int64
	for _, n := range counts {
		total += n
	}

	rank, below, low := q*float64(total), 0.0, 0.0
	for i, bound := range durationBounds {
		if i >= len(counts) {
			break
		}
		n := float64(counts[i])
		if n > 0 && below+n >= rank {
			return low + (bound-low)*(rank-below)/n
		}
		below, low = below+n, bound
	}

	if total == 0 {
		return 0
	}
	return low
}

// Stats counts what functions of all projects did on this server since its start.
type Stats struct {
	Processes, Blank          int // now
	Calls, Errors, ColdStarts int64
	CPU                       time.Duration
}

// Stats returns the counts.
func (s *Service) Stats() Stats {
	s.mu.Lock()
	processes, blank := len(s.all), len(s.blank)
	s.mu.Unlock()

	s.tallies.mu.Lock()
	defer s.tallies.mu.Unlock()

	t := s.tallies.total
	return Stats{Processes: processes, Blank: blank, Calls: t.calls, Errors: t.errors, ColdStarts: t.coldStarts,
		CPU: t.cpu}
}

// tally counts what a function did.
type tally struct {
	calls, errors, coldStarts int64
	cpu                       time.Duration
	durations                 []int64
}

func (t *tally) add(o tally) {
	t.calls, t.errors, t.coldStarts, t.cpu = t.calls+o.calls, t.errors+o.errors, t.coldStarts+o.coldStarts, t.cpu+o.cpu
	if t.durations == nil {
		t.durations = make([]int64, len(durationBounds)+1)
	}
	for i, n := range o.durations {
		t.durations[i] += n
	}
}

// tallies are the counts that are not stored yet. Their number is that of functions in use, which
// package function bounds by their processes.
type tallies struct {
	mu      sync.Mutex
	total   tally
	pending map[uuid.UUID]*projectTallies
}

type projectTallies struct {
	project   *projectdb.Project
	functions map[string]*tally
}

// add counts something of a function.
func (t *tallies) add(p *projectdb.Project, name string, o tally) {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.total.add(o)
	of := t.pending[p.UUID]
	if of == nil {
		if t.pending == nil {
			t.pending = map[uuid.UUID]*projectTallies{}
		}
		of = &projectTallies{project: p, functions: map[string]*tally{}}
		t.pending[p.UUID] = of
	}
	if of.functions[name] == nil {
		of.functions[name] = &tally{}
	}
	of.functions[name].add(o)
}

// call counts a call and the time to its answer.
func (t *tallies) call(p *projectdb.Project, name string, isError bool, took time.Duration) {
	o := tally{calls: 1, durations: make([]int64, len(durationBounds)+1)}
	if isError {
		o.errors = 1
	}
	i, _ := slices.BinarySearch(durationBounds, float64(took)/float64(time.Millisecond))
	o.durations[i] = 1

	t.add(p, name, o)
}

// flush stores the counts.
func (t *tallies) flush(ctx context.Context, log *slog.Logger) {
	t.mu.Lock()
	pending := t.pending
	t.pending = nil
	t.mu.Unlock()

	for id, of := range pending {
		if err := of.store(ctx); err != nil {
			log.Warn("counts of edge functions lost", "project", id, "error", err)
		}
	}
}

func (of *projectTallies) store(ctx context.Context) error {
	if of.project.OverQuota() {
		return errors.New("the database exceeds its quota")
	}

	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()

	for _, name := range slices.Sorted(maps.Keys(of.functions)) { // the same order on all servers
		t := of.functions[name]
		_, err := pg.Exec(ctx, of.project.Trusted(), `
			insert into socle.edge_function_metrics as m
				(function_name, hour, calls, errors, cold_starts, cpu_microseconds, durations)
			select @name, date_trunc('hour', now()), @calls, @errors, @starts, @cpu, @durations::bigint[]
			where exists (select from socle.edge_functions where name = @name)
			on conflict (function_name, hour) do update set calls = m.calls + excluded.calls,
				errors = m.errors + excluded.errors, cold_starts = m.cold_starts + excluded.cold_starts,
				cpu_microseconds = m.cpu_microseconds + excluded.cpu_microseconds, durations = (
					select array_agg(coalesce(a, 0) + coalesce(b, 0) order by i)
					from unnest(m.durations, excluded.durations) with ordinality u (a, b, i))`,
			pgx.StrictNamedArgs{"name": name, "calls": t.calls, "errors": t.errors, "starts": t.coldStarts,
				"cpu": t.cpu.Microseconds(), "durations": t.durations})
		if err != nil {
			return err
		}
	}

	return nil
}
