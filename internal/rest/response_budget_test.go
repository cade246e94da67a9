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

	"socle/internal/httpx"
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

// inUse returns the taken bytes.
func (b *ResponseBudget) inUse() int {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.size - b.free
}

// TestSlowClients checks that a hundred clients that do not read responses of moderate length
// occupy no connection.
func TestSlowClients(t *testing.T) {
	t.Parallel()

	held := NewResponseBudget(64 << 20)
	a := newAPI(t, longSQL, func(c *Config) { c.ResponseBudget = held })
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
		t.Errorf("beside them: %+v", got)
	}
	if got := a.do("GET", "/pages?limit=60", ""); got.status != http.StatusOK || len(got.body) < 60*20000 {
		t.Errorf("an answer like theirs: %d, %d bytes", got.status, len(got.body))
	}
	if got := a.do("POST", "/rpc/grow", `{"n":2000}`); got.status != http.StatusOK || len(got.body) < uncountedResponse {
		t.Errorf("a write: %d, %d bytes", got.status, len(got.body))
	}
	if n := held.inUse(); n < 80*15*20000 {
		t.Errorf("%d bytes are taken, less than those of the answers that are held", n)
	}

	_ = clients[0].(*net.TCPConn).SetReadBuffer(1 << 20)

	rest, err := io.ReadAll(clients[0])
	if err != nil || len(rest) < 60*20000 || !strings.HasSuffix(string(rest), `x"}]`) {
		t.Errorf("the first one, at last: %d bytes, %v", len(rest), err)
	}

	for _, c := range clients {
		_ = c.Close()
	}

	a.await(func() bool { return held.inUse() == 0 })
}

// TestSlowClientsOfLongAnswers checks that clients are disconnected if they keep connections for
// which others wait.
func TestSlowClientsOfLongAnswers(t *testing.T) {
	t.Parallel()

	held := NewResponseBudget(1 << 20)
	a := newAPI(t, longSQL, func(c *Config) { c.ResponseBudget, c.SlowClientTimeout = held, 10*time.Millisecond })
	address := a.listen()

	var clients []net.Conn
	for range 6 { // for two connections
		clients = append(clients, a.slowClient(address, "/pages"))
	}

	if got := a.do("GET", "/clients?id=eq.1&select=id", ""); got.body != `[{"id":1}]` {
		t.Errorf("beside them: %+v", got)
	}

	for i, c := range clients[:4] { // the last two may still hold theirs
		_ = c.(*net.TCPConn).SetReadBuffer(1 << 20)
		if rest, err := io.ReadAll(c); len(rest) >= 200*20000 {
			t.Errorf("client %d got %d bytes, %v", i, len(rest), err)
		}
	}

	if n := held.inUse(); n > 1<<20 {
		t.Errorf("%d bytes are taken", n)
	}

	for _, c := range clients {
		_ = c.Close()
	}

	a.await(func() bool { return held.inUse() == 0 })
}

// TestResponseBudgetExhausted checks that a response that must be buffered waits for the budget,
// and that others are streamed.
func TestResponseBudgetExhausted(t *testing.T) {
	t.Parallel()

	held := NewResponseBudget(64 << 20)
	a := newAPI(t, longSQL, func(c *Config) { c.ResponseBudget = held })
	a.server.SlowClientTimeout = time.Minute

	hasty := New(a.server.Config)
	hasty.SlowClientTimeout = 10 * time.Millisecond
	held.tryTake(64 << 20)

	if got := a.do("GET", "/pages?limit=15&order=id", ""); got.status != http.StatusOK ||
		!strings.HasSuffix(got.body, `x"}]`) {
		t.Errorf("a read: %d, %d bytes", got.status, len(got.body))
	}
	if got := a.do("POST", "/clients", `{"id":9,"name":"x"}`, "Prefer", "return=representation"); got.status !=
		http.StatusCreated {
		t.Errorf("a short answer: %+v", got)
	}

	b := &api{t, hasty, a.admin}
	const refused = `{"code":"53200","details":null,"hint":null,"message":"too many answers wait for their clients"}`
	for _, prefer := range []string{"", "handling=strict, max-affected=2000"} {
		if got := b.do("POST", "/rpc/grow", `{"n":2000}`, "Prefer",
			prefer); got.status != http.StatusServiceUnavailable || got.body != refused ||
			got.header.Get("Retry-After") != "1" {
			t.Errorf("a long answer that has to be held: %+v", got)
		}
		if got := a.do("GET", "/projects?name=like.p*", ""); got.body != "[]" {
			t.Errorf("what is not told was done: %.200s", got.body)
		}
	}

	many := strings.Repeat(`{"name":"p"},`, 3000)
	if got := b.do("POST", "/projects", "["+many[:len(many)-1]+"]", "Prefer", "return=representation"); got.status !=
		http.StatusServiceUnavailable {
		t.Errorf("rows that come back: %d, %.200s", got.status, got.body)
	}

	if got := b.do("POST", "/projects", "["+many[:len(many)-1]+"]"); got.status != http.StatusCreated {
		t.Errorf("rows that don't: %d, %.200s", got.status, got.body)
	}

	grown := make(chan reply)
	go func() { grown <- a.do("POST", "/rpc/grow", `{"n":2000}`) }()

	a.await(func() bool {
		held.mu.Lock()
		defer held.mu.Unlock()

		return held.released != nil
	})

	held.release(64 << 20)

	if got := <-grown; got.status != http.StatusOK || len(got.body) < uncountedResponse {
		t.Errorf("one that waited: %d, %.200s", got.status, got.body)
	}
	if n := held.inUse(); n != 0 {
		t.Errorf("%d bytes are taken in the end", n)
	}
}

// TestCommittedResponseIsKept checks that a change started within the budget is answered even if
// the budget is exhausted at its end.
func TestCommittedResponseIsKept(t *testing.T) {
	t.Parallel()

	held := NewResponseBudget(1 << 20)
	a := newAPI(t, `
		create function grow_later(n int) returns setof projects language plpgsql as $$ begin
			perform pg_advisory_xact_lock(4714);
			return query select * from grow(n);
		end $$`, func(c *Config) { c.ResponseBudget, c.Timeout = held, time.Minute })

	lock, err := a.admin.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if _, err := lock.Exec(t.Context(), "select pg_advisory_xact_lock(4714)"); err != nil {
		t.Fatal(err)
	}

	grown := make(chan reply)
	go func() { grown <- a.do("POST", "/rpc/grow_later", `{"n":2000}`) }()

	a.await(func() bool {
		var waits bool
		err := lock.QueryRow(t.Context(),
			"select exists (select from pg_locks where locktype = 'advisory' and objid = 4714 and not granted)").
			Scan(&waits)

		return err == nil && waits
	})

	held.tryTake(1 << 20)
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}

	got := <-grown
	if got.status != http.StatusOK || len(got.body) < uncountedResponse {
		t.Errorf("got %d, %.200s", got.status, got.body)
	}

	if n := held.inUse(); n != 1<<20 {
		t.Errorf("%d bytes are taken in the end, want those of others", n)
	}
}

// TestSlowClientsOfOtherPools checks that requests waiting for a connection of another pool count
// too.
func TestSlowClientsOfOtherPools(t *testing.T) {
	t.Parallel()

	held := NewResponseBudget(1 << 20)
	a := newAPI(t, longSQL, func(c *Config) {
		c.ResponseBudget, c.SlowClientTimeout, c.PoolContended = held, 10*time.Millisecond, func() bool { return true }
	})

	c := a.slowClient(a.listen(), "/pages")

	a.await(func() bool {
		role, _ := a.server.Role("authenticated")
		return role.Pool.Stat().AcquiredConns() == 0
	})

	_ = c.(*net.TCPConn).SetReadBuffer(1 << 20)

	if rest, err := io.ReadAll(c); len(rest) >= 200*20000 {
		t.Errorf("the client got %d bytes, %v", len(rest), err)
	}
}

// TestAbortedClients checks that a client that disconnects causes no logged error, unlike a client
// that is disconnected for others.
func TestAbortedClients(t *testing.T) {
	t.Parallel()

	for _, hangsUp := range []bool{true, false} {
		a := newAPI(t, longSQL, func(c *Config) {
			c.ResponseBudget, c.SlowClientTimeout = NewResponseBudget(1<<20), 10*time.Millisecond
			c.PoolContended = func() bool { return !hangsUp }
		})

		known := make(chan *httpx.Request, 1)
		s := httptest.NewServer(
			httpx.Wrap(a.server, httpx.Config{Log: slog.New(slog.DiscardHandler), Answered: func(done httpx.Answered) {
				known <- done.Request
			}}),
		)

		t.Cleanup(s.Close)
		c := a.slowClient(s.Listener.Addr().String(), "/pages?select=*,again:body,more:body,most:body")
		if hangsUp {
			_ = c.Close()
		}

		if got := <-known; (got.Err == nil) != hangsUp {
			t.Errorf("the client hangs up: %t, the failure %v", hangsUp, got.Err)
		}
	}
}

func TestResponseBudget(t *testing.T) {
	t.Parallel()

	h := NewResponseBudget(100)
	for _, step := range []struct {
		name string
		do   func() bool
		want bool
		left int
	}{
		{"a quarter", func() bool { return h.tryShare(25, 0) }, true, 75},
		{"more than a quarter of the rest", func() bool { return h.tryShare(19, 0) }, false, 75},
		{"more of what has some", func() bool { return h.tryShare(5, 15) }, false, 75},
		{"all the rest", func() bool { return h.tryTake(75) }, true, 0},
		{"nothing is left", func() bool { return h.tryShare(1, 0) || h.tryTake(1) }, false, 0},
		{"given back", func() bool { h.release(100); return true }, true, 100},
		{"more than there is", func() bool { return h.tryTake(200) }, true, -100},
		{"beside it", func() bool { return h.tryTake(1) || h.tryShare(1, 0) }, false, -100},
		{"that much is scarce", h.isLow, true, -100},
		{"what may not be lost", func() bool { h.forceTake(10); return h.tryTake(1) }, false, -110},
		{"half of it", func() bool { h.release(160); return h.isLow() }, false, 50},
	} {
		if got := step.do(); got != step.want || h.free != step.left {
			t.Errorf("%s: got %t and %d, want %t and %d", step.name, got, h.free, step.want, step.left)
		}
	}
}
