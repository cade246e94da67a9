// Command rest measures the rows API against a limit: a bare server on the same machine, in the
// same run. It sends SQL handwritten for each request, with role and claims set in the same round
// trip, over the same number of connections. Both meet the obligations of the contract: the request
// with its body, and the settings for the database (headers and cookies among them), as constants.
// Socle is built and run as in production, except for rate limits and request logging. Clients,
// Socle and the limit are separate processes.
//
// For each request and number of clients it prints throughput, 99th percentile and processor time
// of both, with PostgreSQL's separately. It also prints the median and the quartiles of the ratios
// of consecutive measurements. They are closer together on an otherwise idle machine.
//
//	go run ./bench/rest [-seconds 2] [-rounds 9] [-only insert] [-clients 16,64] [-socle bin/socle]
//	go run ./bench/rest -long 100
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/socle-dev/socle/bench/socle"
)

var (
	seconds = flag.Float64("seconds", 2,
		"length of one measurement: what is noted of requests is written a second later, and should fall into it")
	rounds  = flag.Int("rounds", 9, "measurements of each kind; the median is printed")
	only    = flag.String("only", "", "measure only requests whose name contains this")
	counts  = flag.String("clients", "16,64", "numbers of clients")
	program = flag.String("socle", "", "program to measure; empty: built from this tree")
	long    = flag.Int("long", 0, "measure only the memory of responses of this size, in megabytes")
	bare    = flag.Bool("limit", false, "run the bare server; database parameters on standard input")
)

// request is a measured request: to the rows API, and as the SQL with the same response.
type request struct {
	name, method, sql string
	args              func(n int) []any // of request n
	fill              func(n int) (path, body string)
}

var requests = []request{
	{name: "one row by key",
		method: "GET",
		sql:    `select coalesce(json_agg(t), '[]')::text from (select * from public.items where id = $1) t`,
		args:   func(n int) []any { return []any{1 + n%1000} },
		fill:   func(n int) (string, string) { return fmt.Sprintf("/items?id=eq.%d", 1+n%1000), "" }},
	{name: "20 rows, filtered and ordered", method: "GET",
		sql:  `select coalesce(json_agg(t), '[]')::text from (select id, name, price from public.items where price > $1 order by price limit 20) t`,
		args: func(n int) []any { return []any{float64(n % 500)} },
		fill: func(n int) (string, string) {
			return fmt.Sprintf("/items?select=id,name,price&price=gt.%d&order=price&limit=20", n%500), ""
		}},
	{name: "20 rows with an embedded one", method: "GET",
		sql: `select coalesce(json_agg(t), '[]')::text from (select i.id, i.name, row_to_json(k) as kinds from public.items i
			left join lateral (select k.name from public.kinds k where k.id = i.kind_id) k on true where i.price > $1 order by i.price limit 20) t`,
		args: func(n int) []any { return []any{float64(n % 500)} },
		fill: func(n int) (string, string) {
			return fmt.Sprintf("/items?select=id,name,kinds(name)&price=gt.%d&order=price&limit=20", n%500), ""
		}},
	{name: "insert", method: "POST", sql: `insert into public.events (note) values ($1)`,
		args: func(n int) []any { return []any{fmt.Sprintf("event %d", n)} },
		fill: func(n int) (string, string) { return "/events", fmt.Sprintf(`{"note":"event %d"}`, n) }},
	{name: "update", method: "PATCH", sql: `update public.items set name = $2 where id = $1`,
		args: func(n int) []any { return []any{1 + n%1000, fmt.Sprintf("item %d", n)} },
		fill: func(n int) (string, string) {
			return fmt.Sprintf("/items?id=eq.%d", 1+n%1000), fmt.Sprintf(`{"name":"item %d"}`, n)
		}},
}

const schema = `
	create table public.kinds (id int primary key, name text not null);
	create table public.items (id int primary key, name text not null, price numeric not null, kind_id int not null references public.kinds, note text);
	create index on public.items (price);
	create table public.events (id bigint generated always as identity primary key, note text not null, at timestamptz not null default now());
	insert into public.kinds select n, 'kind ' || n from generate_series(1, 20) n;
	insert into public.items select n, 'item ' || n, n, 1 + n % 20, repeat('x', 50) from generate_series(1, 1000) n;
	create policy everything on public.items for all to anon using (true) with check (true);
	create policy everything on public.kinds for all to anon using (true) with check (true);
	create policy everything on public.events for all to anon using (true) with check (true);
	grant all on public.items, public.kinds, public.events to anon;`

func main() {
	flag.Parse()

	if *bare {
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

	if *long > 0 {
		return b.measureMemory(ctx)
	}

	limit, err := b.startLimit(ctx)
	if err != nil {
		return err
	}
	defer limit.Stop()

	fmt.Printf("%-40s  %-30s  %-30s  %-30s  %s\n", "", "requests a second", "99th percentile, ms", "processor time, µs",
		"of PostgreSQL")
	fmt.Printf("%-32s %7s", "request", "clients")

	for range 4 {
		fmt.Printf("  %6s %6s %-16s", "socle", "limit", "ratio")
	}

	fmt.Println()

	for i, r := range requests {
		if !strings.Contains(r.name, *only) {
			continue
		}

		for text := range strings.SplitSeq(*counts, ",") {
			clients, err := strconv.Atoi(text)
			if err != nil {
				return err
			}

			ours := socle.Target{Process: b.Process, Next: func(n int) (*http.Request, error) {
				return r.send(b.rows(), b.key, n)
			}}
			theirs := socle.Target{Process: limit, Next: func(n int) (*http.Request, error) {
				return r.send(fmt.Sprintf("%s/%d/%d", limit.URL, i, n), b.key, n)
			}}

			c := socle.Comparison{Rounds: *rounds, Length: time.Duration(*seconds * float64(time.Second)),
				Clients: clients, Postmaster: b.postmaster}
			p, err := c.Measure(ours, theirs)
			if err != nil {
				return err
			}

			fmt.Printf("%-32s %7d", r.name, clients)

			for _, value := range []func(socle.Figures) float64{
				socle.Throughput, socle.Slowest, socle.Processor, socle.Postgres,
			} {
				fmt.Printf("  %s", p.Show(value))
			}

			fmt.Println()
		}
	}

	return nil
}

func (r request) send(base, key string, n int) (*http.Request, error) {
	path, body := r.fill(n)
	q, err := http.NewRequest(r.method, base+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}

	q.Header.Set("apikey", key)

	if body != "" {
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Prefer", "return=minimal")
	}

	return q, nil
}
