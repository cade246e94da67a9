package socle

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/socle-dev/socle/bench/report"
)

// Figures are the results of one measurement.
type Figures struct {
	PerSecond     float64
	P99           time.Duration
	HalfLoadP99   time.Duration // at half of the throughput of the first server, in an open loop
	Own, Postgres float64       // microseconds of processor time per request, of the server and of PostgreSQL
}

// Target is a measured server and its request n.
type Target struct {
	*Process
	Next func(n int) (*http.Request, error)
	// ClosedLoop omits the open loop: a request needs the response to the same client's previous
	// one, or the servers differ too much for a common rate.
	ClosedLoop bool
}

// Comparison describes the measurements of two servers.
type Comparison struct {
	Rounds     int // measurements of each server, after a warm-up
	Length     time.Duration
	Clients    int
	Postmaster string // process ID of PostgreSQL
}

// Pairs are alternating measurements of both servers.
type Pairs struct{ Ours, Theirs []Figures }

// Measure measures both servers in turn.
func (c Comparison) Measure(ours, theirs Target) (Pairs, error) {
	all, err := c.MeasureAll([]Target{ours, theirs})
	if err != nil {
		return Pairs{}, err
	}

	return Pairs{all[0], all[1]}, nil
}

// MeasureAll measures servers in turn, and returns the figures of each by round. The order rotates,
// because the work that one leaves to PostgreSQL falls to the next.
//
// Throughput and processor time are those of a closed loop: each client sends its next request
// after the response. Latency at half load is that of an open loop, which sends at a constant rate,
// half of the first server's throughput, without waiting for responses.
func (c Comparison) MeasureAll(targets []Target) ([][]Figures, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: max(c.Clients, maxOpen)}
	defer transport.CloseIdleConnections()

	all := make([][]Figures, len(targets))
	length := 500 * time.Millisecond // warm-up
	for round := range c.Rounds + 1 {
		figures := make([]Figures, len(targets))
		for i := range targets {
			which := (round + i) % len(targets)
			transport.CloseIdleConnections() // a server closes them after a few seconds

			var err error
			if figures[which], err = targets[which].measure(transport, c.Clients, length, c.Postmaster); err != nil {
				return nil, err
			}
		}

		length = c.Length
		if round == 0 {
			continue
		}

		for i := range targets {
			which := (round + i) % len(targets)
			if !targets[which].ClosedLoop {
				var err error
				if figures[which].HalfLoadP99, err = targets[which].measureOpen(transport, figures[0].PerSecond/2,
					length/2); err != nil {
					return nil, err
				}
			}

			all[which] = append(all[which], figures[which])
		}
	}

	return all, nil
}

// Ratio returns the median and the quartiles of the ratio of a value, ours to theirs of each pair.
func (p Pairs) Ratio(value func(Figures) float64) (median, low, high float64) {
	all := make([]float64, len(p.Ours))
	for i := range all {
		all[i] = value(p.Ours[i]) / value(p.Theirs[i])
	}

	slices.Sort(all)
	return all[len(all)/2], all[len(all)/4], all[len(all)*3/4]
}

func median(all []Figures, value func(Figures) float64) float64 {
	values := make([]float64, len(all))
	for i := range all {
		values[i] = value(all[i])
	}

	slices.Sort(values)
	return values[len(values)/2]
}

// PrintHeader prints the names of the columns of [Pairs.Print]. The first one has a width.
func PrintHeader(first string, width int) {
	fmt.Printf("%-*s", width, "")
	for _, group := range []string{"requests a second", "99th percentile, ms", "at half load, ms",
		"processor time, µs", "of PostgreSQL", "of both"} {
		fmt.Printf("  %-30s", group)
	}

	fmt.Printf("\n%-*s", width, first)
	for range 6 {
		fmt.Printf("  %6s %6s %-16s", "socle", "limit", "ratio")
	}

	fmt.Println()
}

// Print prints requests a second, the 99th percentiles, and the processor time of the server, of
// PostgreSQL and of both together, each for both servers with the ratio, and ends the line.
func (p Pairs) Print() {
	for _, value := range []func(Figures) float64{Throughput, Slowest, HalfLoad, Processor, Postgres, Together} {
		fmt.Printf("  %s", p.show(value))
	}

	fmt.Println()
}

// show formats a value of both servers and their ratio. It is empty if the value was not measured.
func (p Pairs) show(value func(Figures) float64) string {
	if value(p.Ours[0]) == 0 {
		return fmt.Sprintf("%-30s", "")
	}

	ratio, low, high := p.Ratio(value)
	return fmt.Sprintf("%6.4g %6.4g %.2f (%.2f–%.2f)", median(p.Ours, value), median(p.Theirs, value),
		ratio, low, high)
}

// Throughput returns the requests a second.
func Throughput(f Figures) float64 { return f.PerSecond }

// Slowest returns the 99th percentile in milliseconds.
func Slowest(f Figures) float64 { return float64(f.P99) / float64(time.Millisecond) }

// HalfLoad returns the 99th percentile at half load in milliseconds.
func HalfLoad(f Figures) float64 { return float64(f.HalfLoadP99) / float64(time.Millisecond) }

// Processor returns the server's processor time per request in microseconds.
func Processor(f Figures) float64 { return f.Own }

// Postgres returns PostgreSQL's processor time per request in microseconds.
func Postgres(f Figures) float64 { return f.Postgres }

// Together returns the processor time of the server and PostgreSQL per request in microseconds.
func Together(f Figures) float64 { return f.Own + f.Postgres }

// Ratios returns the ratios of an operation for a report.
func (p Pairs) Ratios(operation string, b Bounds) []report.Ratio {
	ratio := func(name string, value func(Figures) float64, lessIsBetter bool, bound float64) report.Ratio {
		median, low, high := p.Ratio(value)
		round := func(x float64) float64 { return math.Round(100*x) / 100 }

		return report.Ratio{Name: operation + ", " + name, Median: round(median), Low: round(low), High: round(high),
			LessIsBetter: lessIsBetter, Bound: bound}
	}

	return []report.Ratio{ratio("requests a second", Throughput, false, b.Throughput),
		ratio("processor time of the server", Processor, true, 0),
		ratio("processor time of PostgreSQL", Postgres, true, b.Postgres),
		ratio("processor time of both", Together, true, b.Together)}
}

// measure sends requests from a number of clients for a time.
func (t Target) measure(
	transport *http.Transport, clients int, length time.Duration, postmaster string,
) (Figures, error) {
	times, errs := make([][]time.Duration, clients), make([]error, clients)
	var wg sync.WaitGroup
	postgresBefore, ownBefore := postgresTime(postmaster), t.processorTime()
	begun := time.Now()
	for c := range clients {
		wg.Go(func() {
			var buffer bytes.Buffer
			for n := c; time.Since(begun) < length && errs[c] == nil; n += clients {
				start := time.Now()
				errs[c] = exchange(transport, t.Next, n, &buffer)
				times[c] = append(times[c], time.Since(start))
			}
		})
	}

	wg.Wait()
	took := time.Since(begun)
	ownAfter, postgresAfter := t.processorTime(), postgresTime(postmaster)
	all := slices.Concat(times...)
	slices.Sort(all)
	each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / float64(len(all)) }

	return Figures{
			PerSecond: float64(len(all)) / took.Seconds(),
			P99:       all[len(all)*99/100],
			Own:       each(ownAfter - ownBefore),
			Postgres:  each(postgresAfter - postgresBefore),
		},
		errors.Join(errs...)
}

// maxOpen bounds the requests in flight of an open loop. Beyond it, requests wait to be sent; the
// wait counts as latency.
const maxOpen = 256

// measureOpen sends requests at a rate, and returns the 99th percentile of the times from when each
// was due until its response.
func (t Target) measureOpen(transport *http.Transport, rate float64, length time.Duration) (time.Duration, error) {
	total := max(1, int(rate*length.Seconds()))
	times, errs := make([]time.Duration, total), make([]error, total)
	buffers := sync.Pool{New: func() any { return new(bytes.Buffer) }}
	slots := make(chan struct{}, maxOpen)

	var wg sync.WaitGroup
	begun := time.Now()
	for n := range total {
		due := begun.Add(time.Duration(float64(n) / rate * float64(time.Second)))
		time.Sleep(time.Until(due))

		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()

			buffer := buffers.Get().(*bytes.Buffer)
			defer buffers.Put(buffer)

			errs[n] = exchange(transport, t.Next, n, buffer)
			times[n] = time.Since(due)
		})
	}

	wg.Wait()
	slices.Sort(times)

	return times[total*99/100], errors.Join(errs...)
}

// exchange sends a request and reads the response into the buffer.
func exchange(transport *http.Transport, next func(n int) (*http.Request, error), n int, buffer *bytes.Buffer) error {
	r, err := next(n)
	if err != nil {
		return err
	}

	res, err := transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()

	buffer.Reset()
	if _, err := buffer.ReadFrom(res.Body); err != nil {
		return err
	}

	if res.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s %s", r.Method, r.URL, res.Status, buffer)
	}

	return nil
}
