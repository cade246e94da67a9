// Command rest measures the rows API against a limit: a bare server on the same machine, in the
// same run. It sends SQL handwritten for each request, with role and claims set in the same round
// trip, over the same number of connections, and nothing else: settings for the request's headers,
// a check of the catalog or a reset of the session count as Socle's.
// Socle is built and run as in production, except for rate limits and request logging. Clients,
// Socle and the limit are separate processes.
//
// For each request and number of clients it prints throughput, 99th percentile and processor time
// of both, with PostgreSQL's separately. It also prints the median and the quartiles of the ratios
// of consecutive measurements. They are closer together on an otherwise idle machine.
//
//	go run ./bench/rest [-seconds 2] [-rounds 9] [-only insert] [-clients 16,64] [-socle bin/socle] [-json report]
//	go run ./bench/rest -rows 10000000 -clients 16,256
//	go run ./bench/rest -long 100
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/socle-dev/socle/bench/socle"
)

var (
	rows = flag.Int("rows", 1000, "rows of the table that is read and updated")
	long = flag.Int("long", 0, "measure only the memory of responses of this size, in megabytes")
)

// request is a measured request: to the rows API, and as the SQL with the same response.
type request struct {
	name, method, sql string
	returns           bool              // the response has rows
	bounds            socle.Bounds      // bounds of the ratios
	args              func(n int) []any // arguments of request n
	fill              func(n int) (path, body string)
	// ddl returns the statement of request n for a request to the platform API; nil means the rows
	// API. Its names end in a number that no other request has.
	ddl func(n int) string
}

// rowOf returns the key of a row for request n. Consecutive requests read distant rows.
func rowOf(n int) int { return 1 + n*7919%*rows }

// insertedRows is the number of rows of an insert of many.
const insertedRows = 500

var requests = []request{
	{name: "one row by key", method: "GET", returns: true, bounds: socle.Bounds{Postgres: 1.25},
		sql:  `select coalesce(json_agg(t), '[]')::text from (select * from public.items where id = $1) t`,
		args: func(n int) []any { return []any{rowOf(n)} },
		fill: func(n int) (string, string) { return fmt.Sprintf("/items?id=eq.%d", rowOf(n)), "" }},
	{name: "20 rows, filtered and ordered", method: "GET", returns: true,
		sql:  `select coalesce(json_agg(t), '[]')::text from (select id, name, price from public.items where price > $1 order by price limit 20) t`,
		args: func(n int) []any { return []any{float64(rowOf(n) / 2)} },
		fill: func(n int) (string, string) {
			return fmt.Sprintf("/items?select=id,name,price&price=gt.%d&order=price&limit=20", rowOf(n)/2), ""
		}},
	{name: "20 rows with an embedded one", method: "GET", returns: true,
		sql: `select coalesce(json_agg(t), '[]')::text from (select i.id, i.name, row_to_json(k) as kinds from public.items i
			left join lateral (select k.name from public.kinds k where k.id = i.kind_id) k on true where i.price > $1 order by i.price limit 20) t`,
		args: func(n int) []any { return []any{float64(rowOf(n) / 2)} },
		fill: func(n int) (string, string) {
			return fmt.Sprintf("/items?select=id,name,kinds(name)&price=gt.%d&order=price&limit=20", rowOf(n)/2), ""
		}},
	{name: "insert", method: "POST", sql: `insert into public.events (note) values ($1)`,
		args: func(n int) []any { return []any{fmt.Sprintf("event %d", n)} },
		fill: func(n int) (string, string) { return "/events", fmt.Sprintf(`{"note":"event %d"}`, n) }},
	{name: "insert, returned", method: "POST", returns: true, bounds: socle.Bounds{Postgres: 1.35},
		sql:  `with r as (insert into public.events (note) values ($1) returning *) select json_agg(r)::text from r`,
		args: func(n int) []any { return []any{fmt.Sprintf("event %d", n)} },
		fill: func(n int) (string, string) { return "/events", fmt.Sprintf(`{"note":"event %d"}`, n) }},
	{name: "insert of 500 rows", method: "POST",
		sql:  `insert into public.events (note) select note from json_to_recordset($1) as r (note text)`,
		args: func(n int) []any { return []any{events(n)} },
		fill: func(n int) (string, string) { return "/events", events(n) }},
	{name: "update", method: "PATCH", sql: `update public.items set name = $2 where id = $1`,
		args: func(n int) []any { return []any{rowOf(n), fmt.Sprintf("item %d", n)} },
		fill: func(n int) (string, string) {
			return fmt.Sprintf("/items?id=eq.%d", rowOf(n)), fmt.Sprintf(`{"name":"item %d"}`, n)
		}},
	{name: "create table", method: "POST",
		ddl: func(n int) string {
			return fmt.Sprintf(
				"create table public.bare_%d (id bigint generated always as identity primary key, name text not null)", n)
		},
		fill: func(n int) (string, string) {
			return "/tables", fmt.Sprintf(`{"name": "made_%d", "columns": [{"name": "id", "type": "bigserial",
				"primary": true}, {"name": "name", "type": "text", "notNull": true}]}`, n)
		}},
	{name: "add column", method: "POST",
		ddl: func(n int) string {
			return fmt.Sprintf("alter table public.wide_%d add bare_%d text", n%wideTables, n)
		},
		fill: func(n int) (string, string) {
			return fmt.Sprintf("/tables/wide_%d/columns", n%wideTables),
				fmt.Sprintf(`{"name": "made_%d", "type": "text"}`, n)
		}},
}

// wideTables is the number of tables that columns are added to. A table has 1,600 columns at most.
const wideTables = 64

// events returns many rows as JSON.
func events(n int) string {
	var b strings.Builder
	for i := range insertedRows {
		fmt.Fprintf(&b, `,{"note":"event %d of %d"}`, i, n)
	}

	return "[" + b.String()[1:] + "]"
}

const schema = `
	create table public.kinds (id int primary key, name text not null);
	create table public.items (id int primary key, name text not null, price numeric not null, kind_id int not null references public.kinds, note text);
	create table public.events (id bigint generated always as identity primary key, note text not null, at timestamptz not null default now());
	insert into public.kinds select n, 'kind ' || n from generate_series(1, 20) n;
	insert into public.items select n, 'item ' || n, n, 1 + n %% 20, repeat('x', 50) from generate_series(1, %d) n;
	create index on public.items (price);
	analyze public.items;
	create policy everything on public.items for all to anon using (true) with check (true);
	create policy everything on public.kinds for all to anon using (true) with check (true);
	create policy everything on public.events for all to anon using (true) with check (true);
	grant all on public.items, public.kinds, public.events to anon;
	do $$ begin for n in 0..%d loop execute format('create table public.wide_%%s ()', n); end loop; end $$`

func main() {
	socle.Benchmark[parameters]{Head: "request", Width: 32, Rounds: 9, Clients: "16,64", SetUp: setUp,
		Limit: newLimit}.Main()
}

// setUp returns the requests, and the parameters of the bare server.
func setUp(ctx context.Context, i *socle.Instance) ([]socle.Operation, parameters, error) {
	b := &bench{Instance: i}
	if err := b.setUp(ctx); err != nil {
		return nil, parameters{}, err
	}

	if *long > 0 {
		return nil, parameters{}, b.measureMemory(ctx)
	}

	var all []socle.Operation
	for i, r := range requests {
		all = append(all, socle.Operation{
			Name:    r.name,
			Bounds:  r.bounds,
			Request: func(n int) (*http.Request, error) { return b.send(r, n) },
			Limit: func(url string, n int) (*http.Request, error) {
				return b.sendTo(fmt.Sprintf("%s/%d/%d", url, i, r.number(n)), r, n)
			},
		})
	}

	return all, parameters{socle.DatabaseOf(b.project.Request()), socle.DatabaseOf(b.project.Owner()), *rows}, nil
}

var lastNumber atomic.Int64

// number returns the number of request n in names. Names can be given to a table or column only
// once.
func (r request) number(n int) int {
	if r.ddl == nil {
		return n
	}
	return int(lastNumber.Add(1))
}

// send returns request n to Socle.
func (b *bench) send(r request, n int) (*http.Request, error) {
	if r.ddl != nil {
		return b.sendTo(b.URL, r, r.number(n))
	}
	return b.sendTo(b.rows(), r, n)
}

func (b *bench) sendTo(base string, r request, n int) (*http.Request, error) {
	path, body := r.fill(n)
	q, err := http.NewRequest(r.method, base+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}

	if r.ddl != nil {
		q.Header.Set("Authorization", "Bearer "+b.token)
		q.Header.Set("X-Project", b.id.String())
	} else {
		q.Header.Set("apikey", b.key)
	}

	if body != "" {
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Prefer", "return="+map[bool]string{false: "minimal", true: "representation"}[r.returns])
	}

	return q, nil
}
