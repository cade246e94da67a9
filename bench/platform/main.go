// Command platform measures operations of the platform API against a limit: a bare server of
// net/http and pgx on the same machine, in the same run, with the same number of connections and
// the same durability. Its SQL is handwritten for each request: the caller's session, the
// statement, and the audit entry in the transaction of a change. It validates nothing. Of uploads
// it syncs file and folder and inserts a row, downloads are those of [http.FileServer], and
// log-ins are the hash alone. With -bare it leaves out session and audit entry too.
//
// Socle is built and run as in production, except for rate limits and request logging. Clients,
// Socle and the limit are separate processes. The columns are those of bench/rest.
//
//	go run ./bench/platform [-seconds 2] [-rounds 7] [-only upload] [-clients 16] [-bare] [-socle bin/socle]
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
	clients = flag.Int("clients", 16, "number of clients")
	program = flag.String("socle", "", "program to measure; empty: built from this tree")
	bare    = flag.Bool("bare", false, "the limit executes the statement alone, without session and audit entry")
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
	socle.PrintHeader("operation", 24)

	var all socle.Report
	for _, o := range operations {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !strings.Contains(o.name, *only) {
			continue
		}

		c := socle.Comparison{Rounds: *rounds, Length: time.Duration(*seconds * float64(time.Second)),
			Clients: *clients, Postmaster: b.postmaster}
		p, err := c.Measure(
			socle.Target{Process: b.Process, Next: func(n int) (*http.Request, error) { return b.request(o, n) }},
			socle.Target{Process: theirs, Next: func(n int) (*http.Request, error) {
				return b.limitRequest(theirs, o, n)
			}})
		if err != nil {
			return err
		}

		fmt.Printf("%-24s", o.name)

		p.Print()
		all.Ratios = append(all.Ratios, p.Ratios(o.name)...)
	}

	return all.Write(*report)
}
