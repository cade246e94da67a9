// Command storage measures uploads, downloads and lists of an application's users by the API of
// Supabase Storage, under policies, and the same by the platform API. Both are compared with a
// limit: a bare server of net/http and pgx on the same machine, in the same run. It verifies no
// token and evaluates no policy. Of uploads it syncs file and folder and inserts a row, downloads
// are those of [http.FileServer], and a list is one handwritten statement.
//
// Socle is built and run as in production, except for rate limits and request logging. Clients,
// Socle and the limit are separate processes. The columns are those of bench/rest.
//
//	go run ./bench/storage [-seconds 2] [-rounds 7] [-only upload] [-clients 16] [-socle bin/socle]
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
	socle.PrintHeader("operation", 38)

	var all socle.Report
	for _, o := range operations {
		ratios, err := b.compare(o, theirs)
		if err != nil {
			return err
		}

		all.Ratios = append(all.Ratios, ratios...)
	}

	return all.Write(*report)
}

// compare measures an operation by both APIs.
func (b *bench) compare(o operation, theirs *socle.Process) (ratios []socle.Ratio, err error) {
	c := socle.Comparison{Rounds: *rounds, Length: time.Duration(*seconds * float64(time.Second)),
		Clients: *clients, Postmaster: b.postmaster}

	for _, way := range []struct {
		name    string
		request request
	}{{"storage API", o.storage}, {"platform API", o.platform}} {
		name := o.name + ", " + way.name
		if !strings.Contains(name, *only) {
			continue
		}

		p, err := c.Measure(
			socle.Target{Process: b.Process, Next: func(n int) (*http.Request, error) { return way.request(b, n) }},
			socle.Target{Process: theirs, Next: func(n int) (*http.Request, error) {
				return o.limit(b, theirs.URL, n)
			}})
		if err != nil {
			return nil, err
		}

		fmt.Printf("%-38s", name)

		p.Print()
		ratios = append(ratios, p.Ratios(name)...)
	}

	return ratios, nil
}
