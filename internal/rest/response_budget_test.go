package rest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/rest/session"
)

// slowClient sends a request and returns when it has read the status. It reads the rest only on
// demand.
func (a *api) slowClient(address, path string) net.Conn {
	a.Helper()

	c, err := net.Dial("tcp", address)
	if err != nil {
		a.Fatal(err)
	}

	a.Cleanup(func() { _ = c.Close() })
	if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		a.Fatal(err)
	}

	_, err = fmt.Fprintf(c,
		"GET %s HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer authenticated:ann\r\nConnection: close\r\n\r\n", path)

	begun := make([]byte, len("HTTP/1.1 200"))
	if err == nil {
		_, err = io.ReadFull(c, begun)
	}

	if err != nil || string(begun) != "HTTP/1.1 200" {
		a.Fatalf("%s: %q, %v", path, begun, err)
	}

	return c
}

// listen serves on an address whose connections buffer little.
func (a *api) listen() string {
	s := httptest.NewUnstartedServer(a.server)
	s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(8 << 10)
		return ctx
	}

	s.Start()

	a.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})

	return s.Listener.Addr().String()
}

// occupy takes n bytes of a budget until the result is released.
func (a *api) occupy(budget *session.Budget, n int) *session.Result {
	a.Helper()

	res, err := session.New(session.Config{Budget: budget}).Execute(a.Context(), &session.Execution{
		Pool: a.admin, Deadline: time.Now().Add(time.Minute), Step: session.Step{Statement: session.Statement{
			SQL: fmt.Sprintf("select null, 1, null, null, null, null, repeat('x', %d)", n)}},
	})
	if err != nil {
		a.Fatal(err)
	}

	return res
}

// TestSlowClients checks that a hundred clients that do not read responses of moderate length
// occupy no connection.
func TestSlowClients(t *testing.T) {
	t.Parallel()

	budget := session.NewBudget(64 << 20)
	a := newAPI(t, longSQL, func(c *Config) { c.Session.Budget = budget })
	address := a.listen()

	var clients []net.Conn

	// each one starts only after the earlier ones have released their two connections
	for i := range 100 {
		path := "/pages?limit=15"
		if i%5 == 0 {
			path = "/pages?limit=60" // is streamed
		}

		clients = append(clients, a.slowClient(address, path))
	}

	if got := a.do("GET", "/clients?id=eq.1&select=id", ""); got.body != `[{"id":1}]` {
		t.Errorf("short response beside slow clients: got %+v", got)
	}
	if got := a.do("GET", "/pages?limit=60", ""); got.status != http.StatusOK || len(got.body) < 60*20000 {
		t.Errorf("long response beside slow clients: got %d, %d bytes", got.status, len(got.body))
	}
	if got := a.do("POST", "/rpc/grow", `{"n":2000}`); got.status != http.StatusOK ||
		len(got.body) < session.ChunkSize {
		t.Errorf("write beside slow clients: got %d, %d bytes", got.status, len(got.body))
	}
	if n := budget.InUse(); n < 80*15*20000 {
		t.Errorf("got %d bytes in use, less than the buffered responses", n)
	}

	_ = clients[0].(*net.TCPConn).SetReadBuffer(1 << 20)

	rest, err := io.ReadAll(clients[0])
	if err != nil || len(rest) < 60*20000 || !strings.HasSuffix(string(rest), `x"}]`) {
		t.Errorf("first client: got %d bytes, %v", len(rest), err)
	}

	for _, c := range clients {
		_ = c.Close()
	}

	a.await(func() bool { return budget.InUse() == 0 })
}

// TestSlowClientsOfLongAnswers checks that clients are disconnected if they keep connections for
// which others wait.
func TestSlowClientsOfLongAnswers(t *testing.T) {
	t.Parallel()

	budget := session.NewBudget(1 << 20)
	a := newAPI(t, longSQL, func(c *Config) {
		c.Session.Budget, c.Session.SlowClientTimeout = budget, 10*time.Millisecond
	})
	address := a.listen()

	var clients []net.Conn
	for range 6 { // for two connections
		clients = append(clients, a.slowClient(address, "/pages"))
	}

	if got := a.do("GET", "/clients?id=eq.1&select=id", ""); got.body != `[{"id":1}]` {
		t.Errorf("short response beside slow clients: got %+v", got)
	}

	for i, c := range clients[:4] { // the last two may still hold theirs
		_ = c.(*net.TCPConn).SetReadBuffer(1 << 20)
		if rest, err := io.ReadAll(c); len(rest) >= 200*20000 {
			t.Errorf("client %d: got all %d bytes, %v, want an aborted response", i, len(rest), err)
		}
	}

	if n := budget.InUse(); n > 1<<20 {
		t.Errorf("got %d bytes in use, want at most %d", n, 1<<20)
	}

	for _, c := range clients {
		_ = c.Close()
	}

	a.await(func() bool { return budget.InUse() == 0 })
}

// TestResponseBudgetExhausted checks that a response that must be buffered waits for the budget,
// and that others are streamed.
func TestResponseBudgetExhausted(t *testing.T) {
	t.Parallel()

	budget := session.NewBudget(1 << 20)
	a := newAPI(t, longSQL, func(c *Config) { c.Session.Budget, c.Session.SlowClientTimeout = budget, time.Minute })

	impatient := a.server.Config
	impatient.Session.SlowClientTimeout = 10 * time.Millisecond
	other := a.occupy(budget, 1<<20)

	if got := a.do("GET", "/pages?limit=15&order=id", ""); got.status != http.StatusOK ||
		!strings.HasSuffix(got.body, `x"}]`) {
		t.Errorf("streamed read: got %d, %d bytes", got.status, len(got.body))
	}
	if got := a.do("POST", "/clients", `{"id":9,"name":"x"}`, "Prefer", "return=representation"); got.status !=
		http.StatusCreated {
		t.Errorf("short response: got %+v, want 201", got)
	}

	b := &api{t, New(impatient), a.admin}
	const refused = `{"code":"53200","details":null,"hint":null,"message":"too many answers wait for their clients"}`
	for _, prefer := range []string{"", "handling=strict, max-affected=2000"} {
		if got := b.do("POST", "/rpc/grow", `{"n":2000}`, "Prefer",
			prefer); got.status != http.StatusServiceUnavailable || got.body != refused ||
			got.header.Get("Retry-After") != "1" {
			t.Errorf("long buffered response: got %+v, want %s", got, refused)
		}
		if got := a.do("GET", "/projects?name=like.p*", ""); got.body != "[]" {
			t.Errorf("after a refused response: got changes %.200s, want none", got.body)
		}
	}

	many := strings.Repeat(`{"name":"p"},`, 3000)
	if got := b.do("POST", "/projects", "["+many[:len(many)-1]+"]", "Prefer", "return=representation"); got.status !=
		http.StatusServiceUnavailable {
		t.Errorf("return=representation: got %d, %.200s, want 503", got.status, got.body)
	}

	if got := b.do("POST", "/projects", "["+many[:len(many)-1]+"]"); got.status != http.StatusCreated {
		t.Errorf("return=minimal: got %d, %.200s, want 201", got.status, got.body)
	}

	replies := make(chan reply)
	go func() { replies <- a.do("POST", "/rpc/grow", `{"n":2000}`) }()

	a.await(func() bool {
		var waits bool
		err := a.admin.QueryRow(t.Context(), `select exists (select from pg_stat_activity
			where datname = current_database() and usename = 'request' and state = 'active' and wait_event_type = 'Client')`).
			Scan(&waits)

		return err == nil && waits
	})

	other.Release()

	if got := <-replies; got.status != http.StatusOK || len(got.body) < session.ChunkSize {
		t.Errorf("response that waited: got %d, %.200s, want 200", got.status, got.body)
	}
	if n := budget.InUse(); n != 0 {
		t.Errorf("got %d bytes in use at the end, want 0", n)
	}
}

// TestDescriptionIsBuffered checks that the privileges for a description are never streamed.
func TestDescriptionIsBuffered(t *testing.T) {
	t.Parallel()

	budget := session.NewBudget(1 << 20)
	a := newAPI(t, `do $do$ begin
			for i in 1 .. 1000 loop
				execute format('create function %I() returns int language sql as $$ select 1 $$', repeat('x', 50) || i);
			end loop; end $do$`, func(c *Config) { c.Session.Budget = budget })

	defer a.occupy(budget, 900<<10).Release() // no room for a share of it

	if n := len(at(t, a.description("anon"), "paths").(map[string]any)); n < 1000 {
		t.Errorf("got %d paths, want those of 1,000 functions and more", n)
	}
}

// TestCommittedResponseIsKept checks that a change started within the budget is answered even if
// the budget is exhausted at its end.
func TestCommittedResponseIsKept(t *testing.T) {
	t.Parallel()

	budget := session.NewBudget(1 << 20)
	a := newAPI(t, `
		create function grow_later(n int) returns setof projects language plpgsql as $$ begin
			perform pg_advisory_xact_lock(4714);
			return query select * from grow(n);
		end $$`, func(c *Config) { c.Session.Budget, c.Limits.Timeout = budget, time.Minute })

	lock, err := a.admin.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if _, err := lock.Exec(t.Context(), "select pg_advisory_xact_lock(4714)"); err != nil {
		t.Fatal(err)
	}

	replies := make(chan reply)
	go func() { replies <- a.do("POST", "/rpc/grow_later", `{"n":2000}`) }()

	a.await(func() bool {
		var waits bool
		err := lock.QueryRow(t.Context(),
			"select exists (select from pg_locks where locktype = 'advisory' and objid = 4714 and not granted)").
			Scan(&waits)

		return err == nil && waits
	})

	other := a.occupy(budget, 1<<20)
	defer other.Release()

	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	got := <-replies
	if got.status != http.StatusOK || len(got.body) < session.ChunkSize {
		t.Errorf("got %d, %.200s", got.status, got.body)
	}

	if n := budget.InUse(); n != 1<<20 {
		t.Errorf("got %d bytes in use at the end, want %d of others", n, 1<<20)
	}
}

// TestSlowClientsOfOtherPools checks that requests waiting for a connection of another pool count
// too.
func TestSlowClientsOfOtherPools(t *testing.T) {
	t.Parallel()

	budget := session.NewBudget(1 << 20)
	a := newAPI(t, longSQL, func(c *Config) {
		c.Session.Budget, c.Session.SlowClientTimeout = budget, 10*time.Millisecond
		c.Session.PoolContended = func() bool { return true }
	})

	c := a.slowClient(a.listen(), "/pages")

	a.await(func() bool {
		role, _ := a.server.Auth.Role("authenticated")
		return role.Pool.Stat().AcquiredConns() == 0
	})

	_ = c.(*net.TCPConn).SetReadBuffer(1 << 20)

	if rest, err := io.ReadAll(c); len(rest) >= 200*20000 {
		t.Errorf("got all %d bytes, %v, want an aborted response", len(rest), err)
	}
}

// TestAbortedClients checks that a client that disconnects causes no logged error, unlike a client
// that is disconnected for others.
func TestAbortedClients(t *testing.T) {
	t.Parallel()

	for _, hangsUp := range []bool{true, false} {
		a := newAPI(t, longSQL, func(c *Config) {
			c.Session.Budget, c.Session.SlowClientTimeout = session.NewBudget(1<<20), 10*time.Millisecond
			c.Session.PoolContended = func() bool { return !hangsUp }
		})

		known := make(chan *httpx.Request, 1)
		s := httptest.NewServer(
			httpx.Wrap(a.server, httpx.Config{Log: slog.New(slog.DiscardHandler), Answered: func(done httpx.Finished) {
				known <- done.Request
			}}),
		)

		t.Cleanup(s.Close)
		c := a.slowClient(s.Listener.Addr().String(), "/pages?select=*,again:body,more:body,most:body")
		if hangsUp {
			_ = c.Close()
		}

		if got := <-known; (got.Err == nil) != hangsUp {
			t.Errorf("client disconnects %t: got logged error %v", hangsUp, got.Err)
		}
	}
}
