package httprequest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/httprequest"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// world is a project whose SQL sends requests to a service.
type world struct {
	*testing.T
	project *projectdb.Project
	owner   *pgx.Conn
	sender  *httprequest.Sender
	service *httptest.Server

	release chan struct{} // closed: /slow answers
	mu      sync.Mutex
	got     []string // requests, as method, path and query, some headers, and body
}

func newWorld(t *testing.T) *world {
	t.Helper()

	p := projectdbtest.New(t)
	w := &world{T: t, project: p, owner: projectdbtest.Connect(t, p, pgcluster.Owner), release: make(chan struct{}),
		sender: newSender(t, "127.0.0.0/8")}
	w.service = httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(w.service.Close)
	t.Cleanup(sync.OnceFunc(func() { close(w.release) }))

	return w
}

func newSender(t *testing.T, networks ...string) *httprequest.Sender {
	var allowed []netip.Prefix
	for _, n := range networks {
		allowed = append(allowed, netip.MustParsePrefix(n))
	}

	s := httprequest.NewSender(outbound.New(allowed), slog.New(slog.DiscardHandler))
	t.Cleanup(s.Close)

	return s
}

func (w *world) serve(res http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.mu.Lock()
	w.got = append(w.got, fmt.Sprintf("%s %s %s %s %s", r.Method, r.URL,
		r.Header.Get("Content-Type"), r.Header.Get("X-Key"), body))
	w.mu.Unlock()

	res.Header().Add("X-Two", "1")
	res.Header().Add("X-Two", "2")
	res.Header().Set("Content-Type", "text/odd")
	switch r.URL.Path {
	case "/slow":
		res.WriteHeader(200)
		res.(http.Flusher).Flush()
		for range 3 { // a byte now and then
			_, _ = res.Write([]byte("x"))
			res.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-w.release:
			}
		}
	case "/huge":
		_, _ = io.WriteString(res, strings.Repeat("x", outbound.MaxResponse+1))
	case "/away":
		http.Redirect(res, r, "http://example.com/", http.StatusFound)
	case "/bytes":
		_, _ = res.Write([]byte("a\x00\xff"))
	default:
		res.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(res, "tea")
	}
}

// request leaves a request by an expression, in which URL is that of the service.
func (w *world) request(call string) int64 {
	w.Helper()
	return pgtest.Value[int64](w, w.owner, "select "+strings.ReplaceAll(call, "URL", w.service.URL))
}

// count returns the number of requests to the service.
func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()

	return len(w.got)
}

func (w *world) run() {
	w.Helper()

	if err := w.sender.Run(w.Context(), w.project); err != nil {
		w.Error(err)
	}
}

// outcome waits for the outcome of a request.
func (w *world) outcome(id int64) string {
	w.Helper()

	const sql = `select concat_ws('|', status_code, content_type, headers ->> 'x-two', content, timed_out, error_msg)
		from net._http_response where id = $1`
	pgtest.Eventually(w, "the request has an outcome", func() bool {
		return pgtest.Value[bool](w, w.owner, `select exists (select from net._http_response where id = $1)`, id)
	})

	return pgtest.Value[string](w, w.owner, sql, id)
}

// TestRequests: the functions of schema net send what pg_net's users expect, and store what came of
// it.
func TestRequests(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	const tea = "418|text/odd|1, 2|tea|f"
	tests := []struct{ call, want, outcome string }{
		{`net.http_get('URL/a')`, "GET /a   ", tea},
		{`net.http_get('URL/a?b=1', params => '{"c":"é &","d":2}', headers => '{"X-Key":"k","Content-Length":"99","Host":"h"}')`,
			"GET /a?b=1&c=%C3%A9+%26&d=2  k ", tea},
		{`net.http_post('URL/p', body => '{"a":[1,"é"]}')`, `POST /p application/json  {"a": [1, "é"]}`, tea},
		{`net.http_post(url := 'URL/p', headers := '{"X-Key":"k"}'::jsonb, body := '{}'::jsonb)`,
			`POST /p application/json k {}`, tea},
		{`net.http_delete('URL/d', body => '1')`, "DELETE /d application/json  1", tea},
		{`net.http_get('URL/bytes')`, "GET /bytes   ", "200|text/odd|1, 2|a��|f"},
		{`net.http_get('URL/huge')`, "GET /huge   ", "f|The response is larger than 262144 bytes"},
		{`net.http_get('URL/away')`, "GET /away   ", "f|The response redirects to another host, or too often"},
		{`net.http_get('URL/slow', timeout_milliseconds => 50)`, "GET /slow   ", "t|Timeout of 50 ms reached"},
		{`net.http_get('http://127.0.0.1:1/')`, "", "f|Couldn't connect to server"},
		{`net.http_get('file:///etc/passwd')`, "", "f|The URL is no address that begins with https://"},
		{`net.http_get('URL', headers => '{"a b":"c"}')`, "",
			`f|The header "a b" has a name or value that HTTP does not allow`},
		{`net.http_get('http://10.1.2.3/')`, "", "f|Requests may not reach this address: it is not public, or needs https://"},
		{`net.http_get('http://no-such-host.invalid/')`, "", "f|Couldn't resolve host name"},
	}
	for _, test := range tests {
		id := w.request(test.call)
		w.run()
		if got := w.outcome(id); got != test.outcome {
			t.Errorf("%s: got the outcome %s, want %s", test.call, got, test.outcome)
		}

		w.mu.Lock()
		if got := strings.Join(w.got, "\n"); got != test.want {
			t.Errorf("%s: got %s, want %s", test.call, got, test.want)
		}
		w.got = nil
		w.mu.Unlock()
	}
}

// TestPrivateNetwork: SQL reaches no server of the platform's own networks.
func TestPrivateNetwork(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	w.sender = newSender(t)
	id := w.request(`net.http_get('URL/')`)
	w.run()
	if got, want := w.outcome(id), "f|Requests may not reach this address: it is not public, or needs https://"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestRolledBack: a transaction that fails sends nothing. The queue shows what waits, and its owner
// may delete it.
func TestRolledBack(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	pgtest.Exec(t, w.owner, "begin")
	w.request(`net.http_get('URL/rolled-back')`)
	pgtest.Exec(t, w.owner, "rollback")
	w.request(`net.http_get('URL/deleted')`)
	pgtest.Exec(t, w.owner, `delete from net.http_request_queue where url like '%/deleted'`)
	id := w.request(`net.http_get('URL/sent')`)
	if got := pgtest.Value[string](t, w.owner, `select string_agg(method || ' ' || right(url, 5), ',') from net.http_request_queue`); got !=
		"GET /sent" {
		t.Errorf("got the queue %s", got)
	}

	w.run()
	w.outcome(id)
	if got := strings.Join(w.got, "\n"); got != "GET /sent   " {
		t.Errorf("got %s", got)
	}
	pgtest.Exec(t, w.owner, `delete from net._http_response`)
}

// TestWebhookTrigger: the trigger of Supabase's database webhooks sends the row, as the role that
// changes it, without a right to anything else.
func TestWebhookTrigger(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	pgtest.Exec(t, w.owner, strings.ReplaceAll(`
		create table public.notes (id int primary key, body text);
		grant all on public.notes to anon;
		create policy all_rows on public.notes to anon using (true);
		create trigger hook after insert or update or delete on public.notes for each row execute function
			supabase_functions.http_request('URL/hook', 'POST', '{"Content-Type":"application/json","X-Key":"k"}', '{"a":"b"}', '5000')`,
		"URL", w.service.URL))
	request := projectdbtest.Connect(t, w.project, pgcluster.Request)
	pgtest.Exec(t, request, `set role anon; insert into public.notes values (1, 'a'); update public.notes set body = 'b'; delete from public.notes`)
	w.run()

	want := []string{
		`{"old_record":null,"record":{"body":"a","id":1},"schema":"public","table":"notes","type":"INSERT"}`,
		`{"old_record":{"body":"a","id":1},"record":{"body":"b","id":1},"schema":"public","table":"notes","type":"UPDATE"}`,
		`{"old_record":{"body":"b","id":1},"record":null,"schema":"public","table":"notes","type":"DELETE"}`,
	}
	pgtest.Eventually(t, "three requests", func() bool { return w.count() == 3 })
	got := map[string]bool{}
	for _, line := range w.got {
		body, found := strings.CutPrefix(line, "POST /hook?a=b application/json k ")
		var value any
		if err := json.Unmarshal([]byte(body), &value); err != nil || !found {
			t.Errorf("got %s: %v", line, err)
		}
		text, _ := json.Marshal(value)
		got[string(text)] = true
	}
	for _, body := range want {
		if !got[body] {
			t.Errorf("got %v, want %s", got, body)
		}
	}

	for sql, want := range map[string]string{
		`set role anon; select * from net._http_response`:                                         "42501",
		`set role anon; select socle.queue_request('GET', 'a', null, null, null, 1)`:              "42501",
		`set role anon; select supabase_functions.http_request()`:                                 "42501",
		`set role anon; insert into socle.http_requests (method, url) values ('PUT', 'http://a')`: "42501",
	} {
		if got := pgtest.State(t, request, sql); got != want {
			t.Errorf("%s: got state %q, want %q", sql, got, want)
		}
	}
}

// TestBounds: a request that is too large is refused, and so are too many that wait.
func TestBounds(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	for sql, want := range map[string]string{
		`select net.http_get(null)`:                                                                 "22023",
		`select net.http_get('https://a/' || repeat('x', 8192))`:                                    "22023",
		`select net.http_get('https://a/', params => '[1]')`:                                        "22023",
		`select net.http_get('https://a/', headers => jsonb_build_object('a', repeat('x', 16384)))`: "54000",
		`select net.http_post('https://a/', body => to_jsonb(repeat('x', 1048576)))`:                "54000",
		`select net.http_get('https://a/') from generate_series(1, 100001)`:                         "54000",
		`select net.http_get('https://a/', timeout_milliseconds => 1000000)`:                        "",
	} {
		if got := pgtest.State(t, w.owner, sql); got != want {
			t.Errorf("%s: got state %q, want %q", sql, got, want)
		}
	}
	if got := pgtest.Value[int](t, w.owner, `select timeout_milliseconds from net.http_request_queue`); got != 30000 {
		t.Errorf("got a timeout of %d ms, want 30000", got)
	}
}

// TestSlowService: a project with a service that does not answer has 16 requests in flight, and
// leaves the others of its account and of others their places. Closing ends them.
func TestSlowService(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	w.request(`max(net.http_get('URL/slow', timeout_milliseconds => 30000)) from generate_series(1, 100)`)
	w.run()
	w.run() // nothing more
	pgtest.Eventually(t, "the requests are in flight", func() bool { return w.count() == 16 })
	if got := pgtest.Value[int](t, w.owner, `select count(*)::int from net.http_request_queue`); got != 84 {
		t.Errorf("got %d waiting requests, want 84", got)
	}

	other := newWorld(t)
	other.sender = w.sender
	id := other.request(`net.http_get('URL/')`)
	other.run()
	if got := other.outcome(id); !strings.HasPrefix(got, "418") {
		t.Errorf("the other project: got %s", got)
	}

	w.sender.Close()
	if got := pgtest.Value[int](t, w.owner, `select count(*)::int from net._http_response where error_msg like '%server has stopped'`); got != 16 {
		t.Errorf("got %d outcomes of cancelled requests, want 16", got)
	}
}

// TestTwoServers: two servers that take requests at once send each of them once.
func TestTwoServers(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	other := newSender(t, "127.0.0.0/8")
	const n = 200
	w.request(fmt.Sprintf(`max(net.http_get('URL/' || i)) from generate_series(1, %d) i`, n))

	var servers sync.WaitGroup
	var failures atomic.Int32
	for _, s := range []*httprequest.Sender{w.sender, other} {
		servers.Go(func() {
			for pgtest.Value[bool](t, w.project.Trusted(), `select exists (select from socle.http_requests)`) {
				if err := s.Run(t.Context(), w.project); err != nil {
					failures.Add(1)
				}
			}
		})
	}
	servers.Wait()

	pgtest.Eventually(t, "all have outcomes", func() bool {
		return pgtest.Value[int](t, w.owner, `select count(distinct id)::int from net._http_response where status_code = 418`) == n
	})
	if len(w.got) != n || failures.Load() != 0 {
		t.Errorf("got %d requests and %d failures, want %d requests", len(w.got), failures.Load(), n)
	}
}

// TestOutcomesAreBounded: the sweep removes old outcomes, and the oldest if there are too many or
// too large ones.
func TestOutcomesAreBounded(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	trusted := projectdbtest.Connect(t, w.project, pgcluster.Trusted)
	pgtest.Exec(t, trusted, `insert into socle.http_responses (id, created, size)
		select i, now() - interval '5 hours' + i * interval '1 second', 1 from generate_series(1, 10100) i
		union all select 0, now() - interval '7 hours', 1`)
	if pgtest.Value[bool](t, w.owner, `select exists (select from net._http_response where id = 0)`) {
		t.Error("an outcome of seven hours ago is shown")
	}

	for _, step := range []struct{ sql, want string }{
		{"select", "101..10100"},
		{`insert into socle.http_responses (id, size) values (20000, 20000000), (20001, 20000000)`, "20001..20001"},
	} {
		pgtest.Exec(t, trusted, step.sql)
		if err := httprequest.Subject().Sweep(t.Context(), w.project); err != nil {
			t.Fatal(err)
		}
		if got := pgtest.Value[string](t, trusted, `select min(id) || '..' || max(id) from socle.http_responses`); got != step.want {
			t.Errorf("after %s: got the outcomes %s, want %s", step.sql, got, step.want)
		}
	}
}
