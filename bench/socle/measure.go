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
)

// Figures are the results of one measurement.
type Figures struct {
	PerSecond     float64
	P99           time.Duration
	Own, Postgres float64 // microseconds of processor time per request, of the server and of PostgreSQL
}

// Target is a measured server and its request n.
type Target struct {
	*Process
	Next func(n int) (*http.Request, error)
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

// Measure measures both servers in turn. The order alternates, because the work that one leaves to
// PostgreSQL falls to the other.
func (c Comparison) Measure(ours, theirs Target) (p Pairs, err error) {
	transport := &http.Transport{MaxIdleConnsPerHost: c.Clients}
	defer transport.CloseIdleConnections()

	length := 500 * time.Millisecond // warm-up
	for round := range c.Rounds + 1 {
		var pair [2]Figures
		for i := range pair {
			which := (round + i) % 2
			t := []Target{ours, theirs}[which]
			if pair[which], err = t.measure(transport, c.Clients, length, c.Postmaster); err != nil {
				return p, err
			}
		}

		if round > 0 {
			p.Ours, p.Theirs = append(p.Ours, pair[0]), append(p.Theirs, pair[1])
		}

		length = c.Length
	}

	return p, nil
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

// PrintColumns prints the names of the columns of [Pairs.Print] and ends the line.
func PrintColumns() {
	for range 4 {
		fmt.Printf("  %6s %6s %-16s", "socle", "limit", "ratio")
	}

	fmt.Println()
}

// Print prints requests a second, the 99th percentile, and the processor time of both and of
// PostgreSQL, each of both servers with the ratio, and ends the line.
func (p Pairs) Print() {
	for _, value := range []func(Figures) float64{Throughput, Slowest, Processor, Postgres} {
		fmt.Printf("  %s", p.show(value))
	}

	fmt.Println()
}

// show formats a value of both servers and their ratio.
func (p Pairs) show(value func(Figures) float64) string {
	ratio, low, high := p.Ratio(value)
	return fmt.Sprintf("%6.4g %6.4g %.2f (%.2f–%.2f)", median(p.Ours, value), median(p.Theirs, value),
		ratio, low, high)
}

// Throughput returns the requests a second.
func Throughput(f Figures) float64 { return f.PerSecond }

// Slowest returns the 99th percentile in milliseconds.
func Slowest(f Figures) float64 { return float64(f.P99) / float64(time.Millisecond) }

// Processor returns the server's processor time per request in microseconds.
func Processor(f Figures) float64 { return f.Own }

// Postgres returns PostgreSQL's processor time per request in microseconds.
func Postgres(f Figures) float64 { return f.Postgres }

// Report returns the ratio of a value for a report.
func (p Pairs) Report(name string, value func(Figures) float64, lessIsBetter bool) Ratio {
	median, low, high := p.Ratio(value)
	round := func(x float64) float64 { return math.Round(100*x) / 100 }

	return Ratio{Name: name, Median: round(median), Low: round(low), High: round(high), LessIsBetter: lessIsBetter}
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
