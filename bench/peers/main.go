// Command peers measures Socle beside PocketBase and Directus: the same requests of an
// application's users, each by the product's own API, in turns on one machine. Socle and Directus
// share a private PostgreSQL, PocketBase has its SQLite. None has rate limits or a log of requests.
//
// The first run takes some minutes: PocketBase is compiled from the Go module proxy, and Directus
// is installed from the npm registry.
//
// For each operation it prints requests a second, the 99th percentile in milliseconds, and the
// processor time per request in microseconds, that of PostgreSQL included. Figures are medians of
// the rounds.
//
//	go run ./bench/peers [-seconds 2] [-rounds 5] [-peers pocketbase,directus]
//		[-only upload] [-clients 16] [-socle bin/socle]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/socle-dev/socle/bench/socle"
)

var (
	seconds = flag.Float64("seconds", 2, "length of one measurement")
	rounds  = flag.Int("rounds", 5, "measurements of each kind; the median is printed")
	only    = flag.String("only", "", "measure only operations whose name contains this")
	clients = flag.Int("clients", 16, "number of clients")
	beside  = flag.String("peers", "pocketbase,directus", "products to measure beside Socle, separated by commas")
	program = flag.String("socle", "", "Socle to measure; empty: built from this tree")
)

const (
	email    = "user@example.com"
	password = "correct horse battery"
	rows     = 10_000 // rows of the table items
)

// operations are the measured operations.
var operations = []string{
	"one row by key", "20 rows, filtered and ordered", "insert a row", "upload of 10 KiB", "upload of 1 MiB",
	"download of 1 MiB", "log-in by password",
}

// peer is a product under measurement.
type peer struct {
	*socle.Process
	title   string // name, version and notable settings
	request func(operation string, n int) (*http.Request, error)
}

func main() {
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir, err := socle.TempDir("", "socle-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	ours, database, err := startSocle(ctx, dir)
	if err != nil {
		return err
	}
	defer ours.Stop()

	peers := []*peer{ours}
	for name := range strings.SplitSeq(*beside, ",") {
		var p *peer
		switch name {
		case "pocketbase":
			p, err = startPocketBase(ctx, dir)
		case "directus":
			p, err = startDirectus(ctx, dir, database)
		default:
			err = fmt.Errorf("no product named %q", name)
		}
		if err != nil {
			return err
		}
		defer p.Stop()

		peers = append(peers, p)
	}

	postmaster, err := socle.FindPostmaster(dir)
	if err != nil {
		return err
	}

	return compare(peers, postmaster)
}

// compare measures all operations and prints a table.
func compare(peers []*peer, postmaster string) error {
	fmt.Printf("%d clients, %d rows\n", *clients, rows)
	for _, p := range peers {
		fmt.Println(p.title)
	}

	fmt.Printf("\n%-31s", "")
	for _, p := range peers {
		name, _, _ := strings.Cut(p.title, " ")
		fmt.Printf("  %-26s", name)
	}
	fmt.Printf("\n%-31s", "operation")
	for range peers {
		fmt.Printf("  %8s %8s %8s", "per s", "p99", "CPU")
	}
	fmt.Println()

	c := socle.Comparison{Rounds: *rounds, Length: time.Duration(*seconds * float64(time.Second)), Clients: *clients,
		Postmaster: postmaster}
	for _, operation := range operations {
		if !strings.Contains(operation, *only) {
			continue
		}

		var targets []socle.Target
		for _, p := range peers {
			targets = append(targets, socle.Target{Process: p.Process, ClosedLoop: true,
				Next: func(n int) (*http.Request, error) { return p.request(operation, n) }})
		}

		figures, err := c.MeasureAll(targets)
		if err != nil {
			return err
		}

		fmt.Printf("%-31s", operation)
		for _, all := range figures {
			fmt.Printf("  %8.4g %8.4g %8.4g", median(all, socle.Throughput), median(all, socle.Slowest),
				median(all, func(f socle.Figures) float64 { return f.Own + f.Postgres }))
		}
		fmt.Println()
	}

	return nil
}

func median(all []socle.Figures, value func(socle.Figures) float64) float64 {
	values := make([]float64, len(all))
	for i, f := range all {
		values[i] = value(f)
	}

	slices.Sort(values)
	return values[len(values)/2]
}

// errOperation reports an operation that a product does not know.
func errOperation(operation string) error { return errors.New("no request for " + operation) }

// nameOf is the value of the column name of row n, counted from 1.
func nameOf(n int) string { return fmt.Sprint("item ", n) }

// priceFrom is the lower bound of prices in request n for 20 rows.
func priceFrom(n int) int { return n * 7 % (rows - 100) }
