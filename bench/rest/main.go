// Command rest measures the rows API against the limit: a bare server on the same machine, in the same run, that sends
// SQL written for the very request, with role and claims set in the same round trip, over as many connections. What the contract obliges
// any server to is the same for both: the request that a client sends, with its body, and the settings that the database gets of it,
// headers and cookies among them, as constants. It prints,
// for each request and number of clients, the throughput, 99th percentile and processor time of both, and the median of the ratios of
// measurements made one right after the other, with the quarters around it: the fewer others use the machine, the closer they are.
//
//	go run ./bench/rest [-seconds 2] [-rounds 9] [-only insert]
//	go run ./bench/rest -long 100
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"socle/internal/config"
	"socle/internal/server"
	"socle/internal/tenant"
)

var (
	seconds  = flag.Float64("seconds", 2, "length of one measurement: what is noted of requests is written a second later, and should fall into it")
	rounds   = flag.Int("rounds", 9, "measurements of each kind, of which the median counts")
	only     = flag.String("only", "", "measure only requests whose name contains this")
	long     = flag.Int("long", 0, "measure the memory that answers of so many megabytes take, and nothing else")
	profiles = flag.String("pprof", "", "address for net/http/pprof")
)

// request is what is measured: what a client sends to the rows API, and the SQL that gives the same answer.
type request struct {
	name, method, sql string
	args              func(n int) []any // of the n-th request
	fill              func(n int) (path, body string)
}

var requests = []request{
	{name: "one row by key", method: "GET", sql: `select coalesce(json_agg(t), '[]')::text from (select * from public.items where id = $1) t`,
		args: func(n int) []any { return []any{1 + n%1000} },
		fill: func(n int) (string, string) { return fmt.Sprintf("/items?id=eq.%d", 1+n%1000), "" }},
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
	if *profiles != "" {
		mux := http.NewServeMux()
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		go func() { log.Fatal(http.ListenAndServe(*profiles, mux)) }()
	}
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "socle-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c, err := config.Load([]string{"SOCLE_ADDR=127.0.0.1:0", "SOCLE_DATA_DIR=" + filepath.Join(dir, "data"), "SOCLE_RATE_LIMIT=off"}, nil)
	if err != nil {
		return err
	}
	s, err := server.Start(ctx, c, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- s.Run(ctx) }()
	defer func() { stop(); <-stopped }()

	project, key, err := prepare(s)
	if err != nil {
		return err
	}
	limit, err := startLimit(ctx, s, project)
	if err != nil {
		return err
	}
	base := s.URL + "/projects/" + project.String() + "/rest/v1"
	postmaster, err := findPostmaster(dir)
	if err != nil {
		return err
	}
	if *long > 0 {
		return measureMemory(ctx, s, project, base, key, postmaster)
	}
	fmt.Printf("%-40s  %-30s  %-30s  %s\n", "", "requests a second", "99th percentile, ms", "processor time, µs")
	fmt.Printf("%-32s %7s", "request", "clients")
	for range 3 {
		fmt.Printf("  %6s %6s %-16s", "socle", "limit", "ratio")
	}
	fmt.Println()
	for i, r := range requests {
		if !strings.Contains(r.name, *only) {
			continue
		}
		for _, clients := range []int{16, 64} {
			p, err := measurePairs(
				func(n int) (*http.Request, error) { return r.send(base, key, n) },
				func(n int) (*http.Request, error) { return r.send(fmt.Sprintf("%s/%d/%d", limit, i, n), key, n) }, clients, postmaster)
			if err != nil {
				return err
			}
			fmt.Printf("%-32s %7d", r.name, clients)
			for _, value := range []func(figures) float64{throughput, slowest, processor} {
				fmt.Printf("  %s", p.show(value))
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

// prepare makes a user, a project with tables and rows, and a publishable key.
func prepare(s *server.Server) (project uuid.UUID, key string, err error) {
	type reply struct {
		Content  struct{ UUID uuid.UUID }
		Metadata struct{ Token, Key string }
	}
	send := func(path, token, body string) (r reply, err error) {
		q, err := http.NewRequest("POST", s.URL+path, strings.NewReader(body))
		if err != nil {
			return r, err
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(q)
		if err != nil {
			return r, err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusCreated {
			text, _ := io.ReadAll(res.Body)
			return r, fmt.Errorf("%s: %s", path, text)
		}
		return r, json.NewDecoder(res.Body).Decode(&r)
	}
	user, err := send("/users", "", `{"username": "bench", "email": "bench@example.com", "password": "correct horse battery"}`)
	if err != nil {
		return project, "", err
	}
	made, err := send("/projects", user.Metadata.Token, `{"name": "bench"}`)
	if err != nil {
		return project, "", err
	}
	project = made.Content.UUID
	if _, err := s.Projects().Open(project).Owner().Exec(context.Background(), schema, pgx.QueryExecModeSimpleProtocol); err != nil {
		return project, "", err
	}
	k, err := send("/projects/"+project.String()+"/keys", user.Metadata.Token, `{"name": "bench", "kind": "publishable"}`)
	return project, k.Metadata.Key, err
}

// startLimit starts the bare server, and returns its address.
func startLimit(ctx context.Context, s *server.Server, project uuid.UUID) (string, error) {
	pool, err := barePool(ctx, s.Projects(), project)
	if err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	const settings = `select set_config('role', 'anon', true), set_config('request.jwt.claims', '{"role":"anon"}', true), set_config('request.method', $1, true),
		set_config('request.path', $2, true), set_config('request.headers', '{"host":"127.0.0.1:54321","user-agent":"Go-http-client/1.1","accept-encoding":"gzip"}', true),
		set_config('request.cookies', '{}', true), set_config('search_path', 'public', true)`
	mux := http.NewServeMux()
	mux.HandleFunc("/{request}/{n}/{table}", func(w http.ResponseWriter, q *http.Request) {
		var i, n int
		fmt.Sscan(q.PathValue("request"), &i)
		fmt.Sscan(q.PathValue("n"), &n)
		r := requests[i]
		_, _ = io.Copy(io.Discard, q.Body)
		batch := &pgx.Batch{}
		batch.Queue(settings, r.method, q.URL.Path)
		batch.Queue(r.sql, r.args(n)...)
		results := pool.SendBatch(q.Context(), batch)
		defer results.Close()
		if _, err := results.Exec(); err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		if r.method != "GET" {
			if _, err := results.Exec(); err != nil {
				http.Error(w, err.Error(), 500)
			}
			return
		}
		var body []byte
		if err := results.QueryRow().Scan(&body); err != nil {
			http.Error(w, err.Error(), 500)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	})
	go func() { _ = (&http.Server{Handler: mux}).Serve(listener) }()
	return "http://" + listener.Addr().String(), nil
}

// barePool connects as the rows API does, with nothing around it.
func barePool(ctx context.Context, r *tenant.Registry, project uuid.UUID) (*pgxpool.Pool, error) {
	theirs := r.Open(project).Request().Config()
	c, err := pgxpool.ParseConfig("")
	if err != nil {
		return nil, err
	}
	c.ConnConfig.Host, c.ConnConfig.Port, c.ConnConfig.Database = theirs.ConnConfig.Host, theirs.ConnConfig.Port, theirs.ConnConfig.Database
	c.ConnConfig.User, c.ConnConfig.Password = theirs.ConnConfig.User, theirs.ConnConfig.Password
	c.ConnConfig.TLSConfig, c.ConnConfig.Fallbacks = nil, nil
	c.ConnConfig.RuntimeParams["role"] = "anon" // statements are prepared outside of the requests' transactions
	c.MaxConns = theirs.MaxConns
	return pgxpool.NewWithConfig(ctx, c)
}

type figures struct {
	perSecond     float64
	p99           time.Duration
	own, postgres float64 // microseconds of processor time for a request
}

// pairs are measurements of both servers, made in turn.
type pairs struct{ ours, theirs []figures }

// measurePairs measures both in turn. Who is first changes, since what one leaves behind to be done falls to the other.
func measurePairs(a, b func(n int) (*http.Request, error), clients int, postmaster string) (p pairs, err error) {
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	length := 500 * time.Millisecond // to warm up
	for round := range *rounds + 1 {
		var pair [2]figures
		for i := range pair {
			which := (round + i) % 2
			next := []func(n int) (*http.Request, error){a, b}[which]
			if pair[which], err = measure(transport, next, clients, length, postmaster); err != nil {
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

// ratio returns the median of the ratios of a value, ours to theirs of each pair, and the quarters around it.
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

// show writes a value of both servers, and its ratio.
func (p pairs) show(value func(figures) float64) string {
	ratio, low, high := p.ratio(value)
	return fmt.Sprintf("%6.4g %6.4g %.2f (%.2f–%.2f)", median(p.ours, value), median(p.theirs, value), ratio, low, high)
}

func throughput(f figures) float64 { return f.perSecond }
func slowest(f figures) float64    { return float64(f.p99) / float64(time.Millisecond) }
func processor(f figures) float64  { return f.own + f.postgres }

// measure sends requests from so many clients for a time.
func measure(transport *http.Transport, next func(n int) (*http.Request, error), clients int, length time.Duration, postmaster string) (figures, error) {
	times, errs := make([][]time.Duration, clients), make([]error, clients)
	var wg sync.WaitGroup
	postgres, own := ofPostgres(postmaster), ofProcess()
	begun := time.Now()
	for c := range clients {
		wg.Go(func() {
			var buffer bytes.Buffer
			for n := c; time.Since(begun) < length && errs[c] == nil; n += clients {
				start := time.Now()
				errs[c] = send(transport, next, n, &buffer)
				times[c] = append(times[c], time.Since(start))
			}
		})
	}
	wg.Wait()
	took := time.Since(begun)
	ownAfter, postgresAfter := ofProcess(), ofPostgres(postmaster) // the looking itself is left out
	all := slices.Concat(times...)
	slices.Sort(all)
	each := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 / float64(len(all)) }
	return figures{perSecond: float64(len(all)) / took.Seconds(), p99: all[len(all)*99/100], own: each(ownAfter - own), postgres: each(postgresAfter - postgres)},
		errors.Join(errs...)
}

// send sends a request and reads the answer into the buffer.
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
