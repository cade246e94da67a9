package bus

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats-server/v2/server"
	nats "github.com/nats-io/nats.go"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fleet"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/platform"
)

var share = fair.Key{Account: "a", Part: "p"}

// install returns a platform database.
func install(t *testing.T) *pgxpool.Pool {
	t.Helper()

	url := pgtest.Clone(t, "platform", func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)

		return platform.Migrate(ctx, conn)
	})
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)

	return pool
}

// node is a running bus, which records what its handler is told.
type node struct {
	*Bus
	stop func()

	mu       sync.Mutex
	messages []string
	others   []uuid.UUID
	joins    int
}

func (n *node) locked(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

func (n *node) Connected()     {}
func (n *node) Tick(time.Time) {}

func (n *node) Joined(other uuid.UUID) {
	n.locked(func() { n.others = append(n.others, other); n.joins++ })
}

func (n *node) Lost(other uuid.UUID) {
	n.locked(func() { n.others = slices.DeleteFunc(n.others, func(id uuid.UUID) bool { return id == other }) })
}

func (n *node) Receive(_ uuid.UUID, data []byte) {
	n.locked(func() { n.messages = append(n.messages, string(data)) })
}

// take returns the messages since the last call.
func (n *node) take() (messages []string) {
	n.locked(func() { messages, n.messages = n.messages, nil })
	return messages
}

// start starts a bus. It stops at the end of the test, unless stop is called before.
func start(t *testing.T, pool *pgxpool.Pool, secret string, change func(*Config)) *node {
	t.Helper()

	log := slog.New(slog.DiscardHandler)
	n := &node{}
	notifications := pg.NewListener(pool.Config().ConnConfig, log)
	c := Config{Secret: []byte(secret), Handler: n, Log: log,
		Servers: fleet.New(fleet.Config{Platform: pool, Notifications: notifications, Log: log})}
	if change != nil {
		change(&c)
	}
	n.Bus = New(c)

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() { _ = notifications.Run(ctx) })
	wg.Go(func() {
		if err := n.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	n.stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(n.stop)

	return n
}

// meet waits until all nodes know each other.
func meet(t *testing.T, nodes ...*node) {
	t.Helper()

	pgtest.Eventually(t, "the servers know each other", func() bool {
		for _, n := range nodes {
			met := false
			n.locked(func() { met = len(n.others) == len(nodes)-1 })
			if !met {
				return false
			}
		}

		return true
	})
}

func (n *node) await(t *testing.T) {
	t.Helper()

	select {
	case <-n.Barrier():
	case <-time.After(pgtest.Patience):
		t.Fatal("no answer to a ping")
	}
}

// wantMessages waits for a node's messages.
func (n *node) wantMessages(t *testing.T, want ...string) {
	t.Helper()

	var got []string
	pgtest.Eventually(t, fmt.Sprint("messages ", want), func() bool {
		got = append(got, n.take()...)
		return len(got) >= len(want)
	})
	if !slices.Equal(got, want) {
		t.Errorf("got messages %v, want %v", got, want)
	}
}

// TestMessages has three servers, the first of which is alone at first.
func TestMessages(t *testing.T) {
	t.Parallel()

	pool := install(t)
	listening := func() (n int) {
		n, err := pg.Value[int](t.Context(), pool, `select count(address)::int from platform.servers`)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}

	ann := start(t, pool, "s", nil)
	pgtest.Eventually(t, "the server has registered", func() bool {
		n, err := pg.Value[int](t.Context(), pool, `select count(*)::int from platform.servers`)
		return err == nil && n == 1
	})
	if n := listening(); n != 0 || ann.Active() || !isClosed(ann.Barrier()) {
		t.Errorf("a server alone: got %d addresses, active: %v", n, ann.Active())
	}

	ben := start(t, pool, "s", nil)
	meet(t, ann, ben)
	cancel := ben.Subscribe("x.1")
	ben.Subscribe("y")
	ben.await(t)

	var want []string
	for i := range 500 {
		subject := []string{"x.1", "y"}[i%2] // order holds across subjects
		want = append(want, fmt.Sprint(i))
		if !ann.Publish(share, subject, []byte(want[i])) || !ann.Publish(share, "x.2", []byte("nobody")) {
			t.Fatal("no room for a message")
		}
	}
	ben.wantMessages(t, want...)

	cleo := start(t, pool, "s", nil)
	meet(t, ann, ben, cleo)
	if n := listening(); n != 3 {
		t.Errorf("got %d addresses of servers, want 3", n)
	}
	cleo.Subscribe("x.1")
	cleo.await(t)
	cancel()
	ben.await(t)
	ann.Publish(share, "x.1", []byte("one"))
	ann.Send(share, ben.id, []byte("two"))
	ann.await(t)
	ben.wantMessages(t, "two")
	cleo.wantMessages(t, "one")
	if got := ann.take(); got != nil {
		t.Errorf("a server hears itself: %v", got)
	}

	ann.stop()
	meet(t, ben, cleo)
}

// TestStrangersGetNothing has clients on the port for servers that are no servers of the install:
// none, one without a certificate, and one with that of another install.
func TestStrangersGetNothing(t *testing.T) {
	t.Parallel()

	pool := install(t)
	ann, ben := start(t, pool, "s", nil), start(t, pool, "s", nil)
	meet(t, ann, ben)
	ann.Subscribe("x")
	ann.await(t)
	address, err := pg.Value[string](t.Context(), pool, `select address from platform.servers where uuid = $1`, ann.id)
	if err != nil {
		t.Fatal(err)
	}

	own, err := tlsConfig([]byte("s"))
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := tlsConfig([]byte("other"))
	if err != nil {
		t.Fatal(err)
	}

	talk := func(c *tls.Config) string {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()

		if c != nil {
			conn = tls.Client(conn, c)
		}
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		_, _ = fmt.Fprintf(conn, "CONNECT {\"name\":\"x\",\"cluster\":%q}\r\nSUB > 1\r\nPING\r\n", installName([]byte("s")))
		ben.Publish(share, "x", []byte("secret"))
		got := make([]byte, 4)
		n, _ := io.ReadFull(conn, got)
		return string(bytes.TrimSpace(got[:n]))
	}

	bare := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
	forged := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, Certificates: foreign.Certificates}
	for name, c := range map[string]*tls.Config{"plain": nil, "no certificate": bare, "of another install": forged} {
		if got := talk(c); got != "" && got[0] != 0x15 { // an alert of TLS
			t.Errorf("%s: got %q", name, got)
		}
	}
	if got := talk(own); got != "INFO" {
		t.Errorf("with the key of the install: got %q", got)
	}

	stranger := start(t, pool, "other", nil) // registers, as it has the database's password
	ben.await(t)
	stranger.Subscribe("x")
	ben.Publish(share, "x", []byte("secret"))
	ann.wantMessages(t, slices.Repeat([]string{"secret"}, 5)...)
	if got := stranger.take(); got != nil || stranger.Active() {
		t.Errorf("a server of another install got %v", got)
	}
}

// link is a proxy between two servers that can be cut.
type link struct {
	net.Listener
	mu    sync.Mutex
	isCut bool
	conns []net.Conn
}

// newLink returns a proxy to an address.
func newLink(t *testing.T, to string) *link {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Error(err)
		return nil
	}

	l := &link{Listener: listener}
	t.Cleanup(func() { l.Close(); l.set(true) })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			l.pass(from, to)
		}
	}()

	return l
}

func (l *link) pass(from net.Conn, to string) {
	l.mu.Lock()
	defer l.mu.Unlock()

	onward, err := net.Dial("tcp", to)
	if err != nil || l.isCut {
		from.Close()
		return
	}

	l.conns = append(l.conns, from, onward)
	go func() { _, _ = io.Copy(onward, from); onward.Close() }()
	go func() { _, _ = io.Copy(from, onward); from.Close() }()
}

// set cuts the link, or heals it.
func (l *link) set(isCut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.isCut = isCut
	for _, c := range l.conns {
		c.Close()
	}
	l.conns = nil
}

// TestPartitionHeals cuts the connections of two servers, which still share the database.
func TestPartitionHeals(t *testing.T) {
	t.Parallel()

	pool := install(t)
	var mu sync.Mutex
	var links []*link
	through := func(c *Config) {
		c.Advertise = func(addr string) string {
			l := newLink(t, addr)
			mu.Lock()
			defer mu.Unlock()
			links = append(links, l)
			return l.Addr().String()
		}
	}
	ann, ben := start(t, pool, "s", through), start(t, pool, "s", through)
	meet(t, ann, ben)
	ben.Subscribe("x")
	ben.await(t)

	cut := func(isCut bool) {
		mu.Lock()
		defer mu.Unlock()
		for _, l := range links {
			l.set(isCut)
		}
	}
	cut(true)
	pgtest.Eventually(t, "the servers lose each other", func() bool { return !ann.Active() && !ben.Active() })
	ann.Publish(share, "x", []byte("lost"))

	cut(false)
	meet(t, ann, ben)
	ann.Publish(share, "x", []byte("found"))
	ben.wantMessages(t, "found")
}

// TestExistingNATS has two servers meet over NATS servers that exist, of which other clients see
// nothing but ciphertext.
func TestExistingNATS(t *testing.T) {
	t.Parallel()

	options := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, Authorization: "t"}
	existing, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	existing.Start()
	t.Cleanup(existing.Shutdown)
	if !existing.ReadyForConnections(20 * time.Second) {
		t.Fatal("NATS does not start")
	}

	url := "nats://t@" + existing.Addr().String()
	stranger, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	seen := make(chan *nats.Msg, 1000)
	if _, err := stranger.ChanSubscribe(">", seen); err != nil {
		t.Fatal(err)
	}

	pool := install(t)
	through := func(c *Config) { c.NATSURL = url }
	ann, ben := start(t, pool, "s", through), start(t, pool, "s", through)
	other := start(t, pool, "other", through) // an install that shares the NATS servers
	meet(t, ann, ben)
	ben.Subscribe("room")
	ben.await(t)

	forged := encode(dataFrame, uuid.New(), []byte("forged"))
	for _, data := range [][]byte{forged, newSeal([]byte("other")).close(forged), {1}} {
		if err := stranger.Publish(ben.direct(ben.id), data); err != nil {
			t.Fatal(err)
		}
	}
	if err := stranger.Flush(); err != nil {
		t.Fatal(err)
	}
	ann.Publish(share, "room", []byte("secret"))
	ben.wantMessages(t, "secret")
	if other.Active() {
		t.Error("another install is a server of this one")
	}

	ben.await(t)
	for len(seen) > 0 {
		m := <-seen
		if bytes.Contains(m.Data, []byte("secret")) || strings.Contains(m.Subject, "room") {
			t.Errorf("a stranger reads %s %q", m.Subject, m.Data)
		}
	}
}
