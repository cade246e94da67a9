// Command projects measures many active projects on one server: Socle with a private PostgreSQL,
// both with default settings, in a temporary folder. It creates projects with a table each, and has
// clients use all of them, distributed by a Zipf law and uniformly. Half of the requests read rows,
// the others write rows, list tables and containers, and create containers. It prints failures,
// throughput, latency of warm and cold requests, processor time of Socle and PostgreSQL, memory of
// Socle, connections to projects, the time to create the first and the last projects, and the time
// to start with all of them.
//
// A request is warm if one to the same API of its project ended at most 40 requests before, so that
// it most likely finds an idle connection. It is cold if that was more than 400 requests before. In
// the rounds with one client each project gets one request: first without a cached catalog, then
// after all idle connections were closed, and finally after a restart.
//
//	go run ./bench/projects [-projects 1000] [-seconds 20] [-clients 16,64] [-only read] [-socle bin/socle]
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/socle-dev/socle/bench/socle"
)

var (
	count   = flag.Int("projects", 1000, "number of projects")
	seconds = flag.Float64("seconds", 20, "length of each measurement")
	counts  = flag.String("clients", "16,64", "numbers of clients")
	only    = flag.String("only", "", "kind of requests: read, write, tables, containers, create; empty: a mixture")
	program = flag.String("socle", "", "program to measure; empty: built from this tree")
	parent  = flag.String("dir", "", "parent of the temporary folder; empty: the default")
)

// perOrganization is the number of projects that the bench creates in an organization, the default
// limit.
const perOrganization = 100

func main() {
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir, err := socle.TempDir(*parent, "socle-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	if *program == "" {
		if *program, err = socle.Build(ctx, dir); err != nil {
			return err
		}
	}

	b := &bench{dir: dir}
	if _, err := b.start(); err != nil {
		return err
	}
	defer func() { b.stop() }()

	if err := b.createProjects(ctx); err != nil {
		return err
	}

	fmt.Printf("%-34s %8s %8s %9s %9s %9s %9s %9s %7s %9s %9s %6s\n", "", "requests", "failures", "a second",
		"warm p50", "warm p99", "cold p50", "cold p99", "CPU ms", "of PG", "RSS, MiB", "load")

	b.show("1 client, first requests", b.sweep(ctx))

	for text := range strings.SplitSeq(*counts, ",") {
		clients, err := strconv.Atoi(text)
		if err != nil {
			return err
		}

		for _, law := range []string{"Zipf", "uniform"} {
			f := b.load(ctx, clients, time.Duration(*seconds*float64(time.Second)), b.draw(law))
			b.show(fmt.Sprintf("%d clients, %s", clients, law), f)
		}
	}

	return b.measureCold(ctx)
}

// draw returns a function that picks a project by a distribution. With Zipf the most used project
// gets about a seventh of the requests.
func (b *bench) draw(law string) func(*rand.Rand) int {
	if law == "uniform" {
		return func(r *rand.Rand) int { return r.IntN(len(b.projects)) }
	}

	sums, sum := make([]float64, len(b.projects)), 0.0
	for i := range sums {
		sum += 1 / float64(i+1)
		sums[i] = sum
	}

	return func(r *rand.Rand) int {
		i, _ := slices.BinarySearch(sums, r.Float64()*sum)
		return min(i, len(sums)-1)
	}
}

// measureCold sends one request to each project with one client: after all idle connections were
// closed, and after a measured restart, without cached catalogs.
func (b *bench) measureCold(ctx context.Context) error {
	if err := b.awaitNoConnections(ctx); err != nil {
		return err
	}

	b.show("1 client, connections closed", b.sweep(ctx))

	b.stop()

	took, err := b.start()
	if err != nil {
		return err
	}

	fmt.Printf("start with %d projects: %.2f s\n", len(b.projects), took.Seconds())
	b.show("1 client, after the start", b.sweep(ctx))

	return nil
}

// show prints a line of figures.
func (b *bench) show(name string, f figures) {
	rss, peak := b.memory()
	fmt.Printf("%-34s %8d %8d %9.0f %9s %9s %9s %9s %7.2f %9.2f %4d/%4d %6s\n", name, f.requests, f.failures,
		float64(f.requests)/f.took.Seconds(),
		milliseconds(f.warm, 50), milliseconds(f.warm, 99), milliseconds(f.cold, 50), milliseconds(f.cold, 99),
		f.perRequest(f.socle), f.perRequest(f.postgres), rss, peak, loadAverage())

	if f.failures > 0 {
		fmt.Printf("    the first failure: %v\n", f.first)
	}

	if n, err := b.connections(); err == nil {
		fmt.Printf("    connections to projects now: %d, at most: %d; that listen: %d\n", n.open,
			b.maxOpen.Load(), n.listening)
	}
}

// perRequest returns the milliseconds per request of a total.
func (f figures) perRequest(all time.Duration) float64 {
	return all.Seconds() * 1000 / float64(max(f.requests, 1))
}

func milliseconds(times []time.Duration, percentile int) string {
	if len(times) == 0 {
		return "-"
	}

	slices.Sort(times)
	return fmt.Sprintf("%.1f", float64(times[len(times)*percentile/100].Microseconds())/1000)
}

func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg") // exists on Linux only
	first, _, _ := strings.Cut(string(text), " ")

	return first
}
