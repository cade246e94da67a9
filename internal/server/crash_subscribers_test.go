package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/socle-dev/socle/internal/pgtest"
)

// subscriber follows the table notes with a cursor, and connects again whenever it is cut off. It
// counts how often it was told of each row.
type subscriber struct {
	t      *testing.T
	url    func() string // the project's, at a server that may be up
	key    string
	follow func(s *subscriber, ctx context.Context) error

	mu     sync.Mutex
	cursor string
	rows   map[int]int
}

// run follows until ctx ends.
func (s *subscriber) run(ctx context.Context) {
	for ctx.Err() == nil {
		_ = s.follow(s, ctx) // the server was killed

		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// take records a change and the cursor after it. A row of 0 is only a cursor.
func (s *subscriber) take(row int, cursor string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if row > 0 {
		s.rows[row]++
	}
	if cursor != "" {
		s.cursor = cursor
	}
}

func (s *subscriber) position() string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.cursor
}

// told returns the number of rows that the subscriber was told of.
func (s *subscriber) told() int {
	s.mu.Lock()
	defer s.mu.Unlock()

	return len(s.rows)
}

// difference describes the rows that the subscriber was not told of exactly once, "" without any.
func (s *subscriber) difference(rows []int) string {
	s.mu.Lock()
	defer s.mu.Unlock()

	var missing, twice, unknown []int
	for _, row := range rows {
		switch n := s.rows[row]; {
		case n == 0:
			missing = append(missing, row)
		case n > 1:
			twice = append(twice, row)
		}
	}
	for row := range s.rows {
		if _, ok := slices.BinarySearch(rows, row); !ok {
			unknown = append(unknown, row)
		}
	}
	if len(missing)+len(twice)+len(unknown) == 0 {
		return ""
	}

	return fmt.Sprintf("of %d rows missing %v, told twice %v, told of and not committed %v", len(rows), missing, twice,
		unknown)
}

// followStream follows by Server-Sent Events.
func followStream(s *subscriber, ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, "GET", s.url()+"/realtime/v1/changes?table=notes", nil)
	if err != nil {
		return err
	}
	r.Header.Set("Apikey", s.key)
	if at := s.position(); at != "" {
		r.Header.Set("Last-Event-ID", at)
	}

	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", res.Status)
	}

	var e streamEvent
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = value
		case "":
			if e.kind == "resync" {
				s.t.Errorf("a stream is told to read again after %q", s.position())
			}
			var change struct {
				Data struct{ Record struct{ ID int } }
			}
			if e.kind == "INSERT" {
				if err := json.Unmarshal([]byte(e.data), &change); err != nil {
					s.t.Error(err)
				}
			}
			s.take(change.Data.Record.ID, e.id)
			e = streamEvent{}
		}
	}

	return lines.Err()
}

// followChannel follows by a channel of a WebSocket.
func followChannel(s *subscriber, ctx context.Context) error {
	conn, _, err := websocket.Dial(ctx, s.url()+"/realtime/v1/websocket?vsn=2.0.0&apikey="+s.key, nil)
	if err != nil {
		return err
	}
	defer conn.CloseNow()
	conn.SetReadLimit(1 << 20)

	join := fmt.Sprintf(`["1","1","realtime:x","phx_join",{"config":{"postgres_changes":[{"event":"INSERT","schema":"public",`+
		`"table":"notes"}],"resume":%q}}]`, s.position())
	if err := conn.Write(ctx, websocket.MessageText, []byte(join)); err != nil {
		return err
	}

	for {
		_, text, err := conn.Read(ctx)
		if err != nil {
			return err
		}

		var message []json.RawMessage
		var payload struct {
			Data   struct{ Record struct{ ID int } }
			Cursor string
			Reason string
		}
		if json.Unmarshal(text, &message) != nil || len(message) != 5 || json.Unmarshal(message[4], &payload) != nil {
			s.t.Errorf("got %s", text)
			continue
		}
		if payload.Reason == "resync" {
			s.t.Errorf("a channel is told to read again after %q", s.position())
		}
		s.take(payload.Data.Record.ID, payload.Cursor)
	}
}

// killRounds are rounds of writers and subscribers, after each of which all subscribers must know
// all rows.
type killRounds struct {
	t           *testing.T
	secret      string
	subscribers []*subscriber
	next        atomic.Int64 // last row
}

// newKillRounds creates the table and starts subscribers, each with the address that url returns.
// There are 200 in a soak.
func newKillRounds(t *testing.T, c client, url func(i int) func() string) *killRounds {
	t.Helper()

	c.want(t, 200, "POST", "/sql", `{"query": "create table public.notes (id int primary key, text text); `+
		`alter table public.notes disable row level security; alter publication supabase_realtime add table public.notes; `+
		`create function public.all_notes() returns json language sql stable as `+
		`$$select coalesce(json_agg(id order by id), '[]') from public.notes$$", "read_only": false}`)
	_, metadata := c.made(t, "/projects/"+c.project+"/keys", `{"name": "server", "kind": "secret"}`)

	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() {
		stop()
		running.Wait()
	})

	subscribers := 10
	if crashesOr(t, 0) > 0 {
		subscribers = 200
	}
	k := &killRounds{t: t, secret: metadata["key"]}
	for i := range subscribers {
		s := &subscriber{t: t, url: url(i), key: k.secret, follow: followStream, rows: map[int]int{}}
		if i%2 == 1 {
			s.follow = followChannel
		}
		k.subscribers = append(k.subscribers, s)
		running.Go(func() { s.run(ctx) })
	}
	eventually(t, "all subscribers follow", func() bool {
		return !slices.ContainsFunc(k.subscribers, func(s *subscriber) bool { return s.position() == "" })
	})

	return k
}

// insert inserts some rows through the rows API, and reports whether that was acknowledged.
func (k *killRounds) insert(ctx context.Context, url string, rows int) bool {
	last := int(k.next.Add(int64(rows)))
	body := make([]string, rows)
	for i := range body {
		body[i] = fmt.Sprintf(`{"id":%d,"text":"some text"}`, last-i)
	}

	r, err := http.NewRequestWithContext(ctx, "POST", url+"/rest/v1/notes",
		strings.NewReader("["+strings.Join(body, ",")+"]"))
	if err != nil {
		k.t.Error(err)
		return false
	}
	r.Header.Set("Apikey", k.secret)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	_ = res.Body.Close()

	return res.StatusCode == http.StatusCreated
}

// round has eight writers insert rows at servers, strikes when a number of inserts is acknowledged,
// and waits until all subscribers know the rows that are committed.
func (k *killRounds) round(urls []string, strike func() client) {
	k.t.Helper()

	ctx, cancel := context.WithTimeout(k.t.Context(), pgtest.Patience)
	defer cancel()

	var acknowledged atomic.Int64
	var stop atomic.Bool
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for rows := i + 1; !stop.Load() && k.insert(ctx, urls[i%len(urls)], rows%20+1); rows += 3 {
				acknowledged.Add(1)
			}
		})
	}
	eventually(k.t, "inserts are acknowledged", func() bool { return acknowledged.Load() > 100 })
	c := strike()
	stop.Store(true)
	writers.Wait()

	c.waitUntilServing(k.t)
	k.check(c)
}

// check waits until all subscribers were told of the rows in the table exactly once.
func (k *killRounds) check(c client) {
	k.t.Helper()

	rows := k.committed(c)
	defer func() {
		for i, s := range k.subscribers {
			if d := s.difference(rows); d != "" {
				k.t.Errorf("subscriber %d: %s", i, d)
			}
		}
	}()
	eventually(k.t, "all subscribers are told", func() bool {
		return !slices.ContainsFunc(k.subscribers, func(s *subscriber) bool { return s.told() < len(rows) })
	})
}

// committed returns the rows in the table, ascending.
func (k *killRounds) committed(c client) []int {
	k.t.Helper()

	var rows []int
	eventually(k.t, "the rows are read", func() bool {
		r, err := http.NewRequestWithContext(k.t.Context(), "GET",
			c.url+"/projects/"+c.project+"/rest/v1/rpc/all_notes", nil)
		if err != nil {
			k.t.Fatal(err)
		}
		r.Header.Set("Apikey", k.secret)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return false
		}
		defer res.Body.Close()

		rows = nil
		return res.StatusCode == http.StatusOK && json.NewDecoder(res.Body).Decode(&rows) == nil
	})

	return rows
}

// TestKilledSubscribers kills the server, PostgreSQL, and both, under eight writers and subscribers
// with cursors. Each subscriber is told of every committed row exactly once.
func TestKilledSubscribers(t *testing.T) {
	t.Parallel()

	p, c := startInstalled(t)
	var url atomic.Pointer[string]
	url.Store(&p.url)
	project := "/projects/" + c.project
	k := newKillRounds(t, c, func(int) func() string { return func() string { return *url.Load() + project } })

	for range crashesOr(t, 1) {
		for _, kill := range []victim{killServer, killPostgreSQL, killBoth} {
			k.round([]string{p.url + project}, func() client {
				p = p.crash(kill)
				url.Store(&p.url)
				return c.at(p)
			})
		}
	}
}

// TestKilledServerOfSubscribers kills one of two servers in turn. Its subscribers continue at the
// other one with their cursors.
func TestKilledServerOfSubscribers(t *testing.T) {
	t.Parallel()

	settings := []string{"SOCLE_DATABASE_URL=" + pgtest.URL(t), "SOCLE_STORAGE_URL=file://" + t.TempDir(),
		"SOCLE_SECRET_KEY=kOrtX3Zs9mH1q8vYw2nB7cD5eF4gJ6lP0aSuRiTxVyE="}
	servers := []*process{serve(t, t.TempDir(), settings...), serve(t, t.TempDir(), settings...)}
	c := servers[0].newClient()
	project := "/projects/" + c.project

	var urls [2]atomic.Pointer[string]
	urls[0].Store(&servers[0].url)
	urls[1].Store(&servers[1].url)
	k := newKillRounds(t, c, func(i int) func() string {
		return func() string { return *urls[i/2%2].Load() + project }
	})

	for round := range crashesOr(t, 2) {
		victim := round % 2
		other := servers[1-victim]
		k.round([]string{servers[0].url + project, servers[1].url + project}, func() client {
			servers[victim].signal(syscall.SIGKILL)
			servers[victim].wait()
			urls[victim].Store(&other.url)
			return c.at(other)
		})

		servers[victim] = serve(t, t.TempDir(), settings...)
		urls[victim].Store(&servers[victim].url)
	}
}
