package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/socle-dev/socle/bench/socle"
)

type figures struct {
	perSecond     float64
	p99           time.Duration
	own, postgres float64 // microseconds of processor time per request, of the server and of PostgreSQL
}

// target is a measured server and its request n.
type target struct {
	*socle.Process
	next func(n int) (*http.Request, error)
}

// pairs are alternating measurements of both servers.
type pairs struct{ ours, theirs []figures }

// measurePairs measures both servers in turn. The order alternates, because the work that one
// leaves to PostgreSQL falls to the other.
func measurePairs(ours, theirs target, clients int, postmaster string) (p pairs, err error) {
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()

	length := 500 * time.Millisecond // warm-up
	for round := range *rounds + 1 {
		var pair [2]figures
		for i := range pair {
			which := (round + i) % 2
			s := []target{ours, theirs}[which]
			if pair[which], err = s.measure(transport, clients, length, postmaster); err != nil {
				return p, err
			}
		}

		if round > 0 {
			p.ours, p.theirs = append(p.ours, pair[0]), append(p.theirs, pair[1])
		}

		length = time.Duration(*seconds * float64(time.Second))
	}

	return p, nil
}

// ratio returns the median and the quartiles of the ratio of a value, ours to theirs of each pair.
func (p pairs) ratio(value func(figures) float64) (median, low, high float64) {
	all := make([]float64, len(p.ours))
	for i := range all {
		all[i] = value(p.ours[i]) / value(p.theirs[i])
	}

	slices.Sort(all)
	return all[len(all)/2], all[len(all)/4], all[len(all)*3/4]
}

func median(all []figures, value func(figures) float64) float64 {
	values := make([]float64, len(all))
	for i := range all {
		values[i] = value(all[i])
	}

	slices.Sort(values)
	return values[len(values)/2]
}

// report returns the ratio of a value for a report.
func (p pairs) report(name string, value func(figures) float64, lessIsBetter bool) socle.Ratio {
	median, low, high := p.ratio(value)
	round := func(x float64) float64 { return math.Round(100*x) / 100 }

	return socle.Ratio{
		Name: name, Median: round(median), Low: round(low), High: round(high), LessIsBetter: lessIsBetter,
	}
}

// show formats a value of both servers and their ratio.
func (p pairs) show(value func(figures) float64) string {
	ratio, low, high := p.ratio(value)
	return fmt.Sprintf("%6.4g %6.4g %.2f (%.2f–%.2f)", median(p.ours, value), median(p.theirs, value),
		ratio, low, high)
}

func throughput(f figures) float64 { return f.perSecond }
func slowest(f figures) float64    { return float64(f.p99) / float64(time.Millisecond) }
func processor(f figures) float64  { return f.own }
func postgres(f figures) float64   { return f.postgres }

// measure sends requests from a number of clients for a time.
func (s target) measure(
	transport *http.Transport, clients int, length time.Duration, postmaster string,
) (figures, error) {
	times, errs := make([][]time.Duration, clients), make([]error, clients)
	var wg sync.WaitGroup
	postgresBefore, ownBefore := postgresTime(postmaster), s.processorTime()
	begun := time.Now()
	for c := range clients {
		wg.Go(func() {
			var buffer bytes.Buffer
			for n := c; time.Since(begun) < length && errs[c] == nil; n += clients {
				start := time.Now()
				errs[c] = send(transport, s.next, n, &buffer)
				times[c] = append(times[c], time.Since(start))
			}
		})
	}

	wg.Wait()
	took := time.Since(begun)
	ownAfter, postgresAfter := s.processorTime(), postgresTime(postmaster)
	all := slices.Concat(times...)
	slices.Sort(all)
	each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / float64(len(all)) }

	return figures{
			perSecond: float64(len(all)) / took.Seconds(),
			p99:       all[len(all)*99/100],
			own:       each(ownAfter - ownBefore),
			postgres:  each(postgresAfter - postgresBefore),
		},
		errors.Join(errs...)
}

// send sends a request and reads the response into the buffer.
func send(transport *http.Transport, next func(n int) (*http.Request, error), n int, buffer *bytes.Buffer) error {
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
