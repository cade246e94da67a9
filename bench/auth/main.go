// Command auth measures the sessions of end users against a limit: a bare server of net/http and
// pgx on the same machine, in the same run. Its SQL is handwritten and prepared: one statement per
// request that reads the user, increments the generation of the refresh token, or opens a session.
// It verifies no token and counts no attempt; it signs access tokens and computes hashes of
// passwords as Socle does.
//
// Socle is built and run as in production, except for rate limits and request logging. Clients,
// Socle and the limit are separate processes. The columns are those of bench/rest.
//
//	go run ./bench/auth [-seconds 2] [-rounds 7] [-only refresh] [-clients 16] [-socle bin/socle]
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/socle-dev/socle/bench/socle"
)

var (
	seconds = flag.Float64("seconds", 2, "length of one measurement")
	rounds  = flag.Int("rounds", 7, "measurements of each kind; the median is printed")
	only    = flag.String("only", "", "measure only operations whose name contains this")
	clients = flag.Int("clients", 16, "number of clients, each with a user of its own")
	program = flag.String("socle", "", "program to measure; empty: built from this tree")
	report  = flag.String("json", "", "file to which the ratios are written, for bench/check")
	limit   = flag.Bool("limit", false, "run the bare server; its parameters on standard input")
)

func main() {
	flag.Parse()

	if *limit {
		if err := serveLimit(os.Stdin, os.Stdout); err != nil {
			log.Fatal(err)
		}
		return
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

// operation is a measured operation: its request n to Socle, and its path in the bare server.
type operation struct {
	name    string
	request func(b *bench, n int) (*http.Request, error)
	path    string
	// sequential tells that a request needs the response to the previous one.
	sequential bool
}

var operations = []operation{
	{"get the user", (*bench).getUser, "/user/", false},
	{"refresh", (*bench).refresh, "/refresh/", true},
	{"log-in by password", (*bench).login, "/login/", false},
}

func run(ctx context.Context) error {
	dir, err := socle.TempDir("", "socle-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	b, err := startSocle(ctx, dir)
	if err != nil {
		return err
	}
	defer b.Stop()

	theirs, err := b.startLimit()
	if err != nil {
		return err
	}
	defer theirs.Stop()

	fmt.Printf("%d clients\n", *clients)
	socle.PrintHeader("operation", 20)

	var all socle.Report
	for _, o := range operations {
		if !strings.Contains(o.name, *only) {
			continue
		}

		c := socle.Comparison{Rounds: *rounds, Length: time.Duration(*seconds * float64(time.Second)),
			Clients: *clients, Postmaster: b.postmaster}
		p, err := c.Measure(
			socle.Target{Process: b.Process, ClosedLoop: o.sequential, Next: func(n int) (*http.Request, error) {
				return o.request(b, n)
			}},
			socle.Target{Process: theirs, ClosedLoop: o.sequential, Next: func(n int) (*http.Request, error) {
				return http.NewRequestWithContext(ctx, "GET", fmt.Sprint(theirs.URL, o.path, n%*clients), nil)
			}})
		if err != nil {
			return err
		}

		fmt.Printf("%-20s", o.name)

		p.Print()
		all.Ratios = append(all.Ratios, p.Ratios(o.name)...)
	}

	return all.Write(*report)
}
