// Command webhooks measures how many deliveries a second a fast endpoint on this machine gets, and
// how late they are. Server, writer and endpoint share this process.
//
//	go run ./bench/webhooks [-rows 20000] [-dead 0]
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/socle-dev/socle/bench/socle"
)

var (
	rows = flag.Int("rows", 20000, "number of rows")
	dead = flag.Int("dead", 0, "number of webhooks beside it whose endpoint never answers")
)

func main() {
	flag.Parse()

	if err := socle.Run(context.Background(), "", []string{"SOCLE_OUTBOUND_NETWORKS=127.0.0.0/8"},
		slog.New(slog.DiscardHandler), run); err != nil {
		log.Fatal(err)
	}
}

// endpoint counts events by their IDs.
type endpoint struct {
	mu     sync.Mutex
	seen   map[string]bool
	delays []time.Duration
	done   chan struct{}
	want   int
}

func (e *endpoint) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var event struct {
		ID   string
		Time time.Time
	}
	if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
		log.Print(err)
	}

	e.mu.Lock()
	defer e.mu.Unlock()

	if !e.seen[event.ID] {
		e.seen[event.ID] = true
		e.delays = append(e.delays, time.Since(event.Time))
		if len(e.seen) == e.want {
			close(e.done)
		}
	}
}

func run(ctx context.Context, s *socle.Socle) error {
	sql := func(text string) error {
		body, err := json.Marshal(map[string]any{"query": text, "read_only": false})
		if err == nil {
			_, err = s.Do("POST", "/sql", strings.NewReader(string(body)))
		}
		return err
	}
	if err := sql("create table followed (id bigint primary key, a text)"); err != nil {
		return err
	}

	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server notices the end of the connection
		<-r.Context().Done()
	}))
	defer silent.Close()
	create := func(name, url string) error {
		_, err := s.Do("POST", "/projects/"+s.Project.String()+"/webhooks", strings.NewReader(
			fmt.Sprintf(`{"name": %q, "endpoint": %q, "tables": [{"table": "followed"}]}`, name, url)))
		return err
	}
	for i := range *dead {
		if err := create(fmt.Sprint("dead ", i), silent.URL); err != nil {
			return err
		}
	}

	for _, load := range []struct {
		name            string
		rows, statement int
	}{{"single rows", 200, 1}, {"a backlog", *rows, *rows}} {
		e := &endpoint{seen: map[string]bool{}, done: make(chan struct{}), want: load.rows}
		server := httptest.NewServer(e)
		if err := create(load.name, server.URL); err != nil {
			return err
		}

		start := time.Now()
		for first := 0; first < load.rows; first += load.statement {
			if err := sql(fmt.Sprintf("insert into followed select %d + n, 'some text of a usual length' from generate_series(1, %d) n",
				start.UnixNano()/1000+int64(first), load.statement)); err != nil {
				return err
			}
		}

		select {
		case <-e.done:
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Minute):
			return fmt.Errorf("%s: %d of %d events arrived", load.name, len(e.seen), e.want)
		}

		slices.Sort(e.delays)
		fmt.Printf("%-12s %6d events, %6.0f/s, delay p50 %v, p99 %v\n", load.name, load.rows,
			float64(load.rows)/time.Since(start).Seconds(), e.delays[len(e.delays)/2].Round(time.Millisecond),
			e.delays[len(e.delays)*99/100].Round(time.Millisecond))
		server.Close()
	}

	return nil
}
