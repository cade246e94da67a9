// Command events measures what following a table costs its writers, and how soon followers learn
// of a change. Requests of the rows API insert into two equal tables in turn, one of them followed.
// The followers are streams of Server-Sent Events. Server and clients share this process.
//
//	go run ./bench/events [-streams 100] [-rounds 5] [-seconds 2]
package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/socle-dev/socle/bench/socle"
)

var (
	streams = flag.Int("streams", 100, "number of followers")
	rounds  = flag.Int("rounds", 5, "number of rounds")
	seconds = flag.Float64("seconds", 2, "time per table and round")
)

func main() {
	flag.Parse()

	if err := socle.Run(context.Background(), "", nil, slog.New(slog.DiscardHandler), run); err != nil {
		log.Fatal(err)
	}
}

// tables are equal: one of them is followed.
var tables = []string{"plain", "followed"}

func run(ctx context.Context, s *socle.Socle) error {
	var sql strings.Builder
	for _, t := range tables {
		fmt.Fprintf(&sql, `create table %[1]s (id bigint generated always as identity primary key, a text, b text, c int,
			d numeric, e timestamptz default now()); alter table %[1]s disable row level security;`, t)
	}
	sql.WriteString("alter publication supabase_realtime add table followed")
	statement := fmt.Sprintf(`{"query": %q, "read_only": false}`, sql.String())
	if _, err := s.Do("POST", "/sql", strings.NewReader(statement)); err != nil {
		return err
	}

	secret, err := socle.Send[struct{}](s, "POST", "/projects/"+s.Project.String()+"/keys",
		strings.NewReader(`{"name": "bench", "kind": "secret"}`))
	if err != nil {
		return err
	}

	b := bench{root: s.URL + "/projects/" + s.Project.String(), key: secret.Metadata.Key}
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = 64

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := b.follow(ctx, *streams); err != nil {
		return err
	}
	if err := b.delays(); err != nil {
		return err
	}
	for _, load := range []struct {
		name          string
		clients, rows int
	}{{"1 row, 1 client", 1, 1}, {"1 row, 8 clients", 8, 1}, {"1,000 rows, 1 client", 1, 1000}} {
		if err := b.compare(load.name, load.clients, load.rows); err != nil {
			return err
		}
	}

	return nil
}

// bench is a project with followers.
type bench struct {
	root, key string
	seen      sync.Map     // times of the first rows, by their marks
	received  atomic.Int64 // by all followers
	late      chan time.Duration
}

// follow opens streams.
func (b *bench) follow(ctx context.Context, n int) error {
	b.late = make(chan time.Duration, 1<<20)
	var ready sync.WaitGroup
	for range n {
		q, err := http.NewRequestWithContext(ctx, "GET", b.root+"/realtime/v1/changes?table=followed", nil)
		if err != nil {
			return err
		}
		q.Header.Set("Apikey", b.key)
		res, err := http.DefaultClient.Do(q)
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("follow: %s", res.Status)
		}

		ready.Add(1)
		go func() {
			defer res.Body.Close()
			lines := bufio.NewScanner(res.Body)
			lines.Buffer(nil, 4<<20)
			for lines.Scan() {
				b.read(lines.Text(), ready.Done)
			}
		}()
	}
	ready.Wait()

	return nil
}

// read reads a line of a stream.
func (b *bench) read(line string, subscribed func()) {
	if line == "event: subscribed" {
		subscribed()
	}
	if !strings.HasPrefix(line, "data: ") {
		return
	}

	b.received.Add(1)
	if _, mark, ok := strings.Cut(line, `"a":"mark `); ok {
		number, _, _ := strings.Cut(mark, `"`)
		if at, ok := b.seen.Load(number); ok {
			b.late <- time.Since(at.(time.Time))
		}
	}
}

// insert inserts rows with one request.
func (b *bench) insert(table, text string, rows int) error {
	row := fmt.Sprintf(`{"a": %q, "b": "some more text of a usual length for a column", "c": 7, "d": 12.50}`, text)
	body := "[" + strings.TrimSuffix(strings.Repeat(row+",", rows), ",") + "]"
	q, err := http.NewRequest("POST", b.root+"/rest/v1/"+table, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	q.Header.Set("Apikey", b.key)
	q.Header.Set("Content-Type", "application/json")

	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusCreated {
		return fmt.Errorf("insert into %s: %s", table, res.Status)
	}

	return nil
}

// compare prints how many requests a second both tables take.
func (b *bench) compare(name string, clients, rows int) error {
	var ratios []float64
	var plain, followed []float64
	for round := range *rounds {
		var rates [2]float64
		for i := range tables {
			table := (i + round) % 2
			rate, err := b.load(tables[table], clients, rows)
			if err != nil {
				return err
			}
			rates[table] = rate
		}
		plain, followed = append(plain, rates[0]), append(followed, rates[1])
		ratios = append(ratios, rates[0]/rates[1])
	}

	fmt.Printf("%-22s %6.0f/s plain, %6.0f/s followed by %d: %.2f (%.2f to %.2f)\n", name, median(plain), median(followed),
		*streams, median(ratios), slices.Min(ratios), slices.Max(ratios))

	return nil
}

// load inserts for a while and returns the requests a second.
func (b *bench) load(table string, clients, rows int) (float64, error) {
	var n atomic.Int64
	var failure atomic.Pointer[error]
	var all sync.WaitGroup
	start := time.Now()
	end := start.Add(time.Duration(*seconds * float64(time.Second)))
	for range clients {
		all.Go(func() {
			for time.Now().Before(end) {
				if err := b.insert(table, "x", rows); err != nil {
					failure.Store(&err)
					return
				}
				n.Add(1)
			}
		})
	}
	all.Wait()

	if err := failure.Load(); err != nil {
		return 0, *err
	}

	return float64(n.Load()) / time.Since(start).Seconds(), nil
}

// delays prints the time from a request's beginning to its change in the streams.
func (b *bench) delays() error {
	for range 10 { // opens connections, and reads the catalog
		if err := b.insert("followed", "warm", 1); err != nil {
			return err
		}
	}

	const changes = 100
	for i := range changes {
		mark := strconv.Itoa(i)
		b.seen.Store(mark, time.Now())
		if err := b.insert("followed", "mark "+mark, 1); err != nil {
			return err
		}
		time.Sleep(30 * time.Millisecond)
	}

	var all []time.Duration
	for range changes * *streams {
		select {
		case d := <-b.late:
			all = append(all, d)
		case <-time.After(10 * time.Second):
			return fmt.Errorf("got %d changes, want %d", len(all), changes**streams)
		}
	}
	slices.Sort(all)
	fmt.Printf("from the request to %d streams: p50 %v, p99 %v\n", *streams,
		all[len(all)/2].Round(100*time.Microsecond), all[len(all)*99/100].Round(100*time.Microsecond))

	return nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
