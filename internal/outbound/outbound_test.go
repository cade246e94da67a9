package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/fair"
)

// get sends a request and returns the response with its error.
func get(t *testing.T, c *Client, url string) (Response, error) {
	t.Helper()

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}

	return c.Do(t.Context(), fair.Key{Account: "tenant"}, r)
}

// loopback returns a client that may reach the machine itself, as a test server needs it.
func loopback() *Client { return New(prefixes("127.0.0.0/8")) }

func TestIsPublic(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]bool{
		"1.1.1.1": true, "140.82.121.4": true, "2606:4700::1111": true, "2a00:1450:4001::1": true,
		"0.0.0.0": false, "10.1.2.3": false, "100.64.0.1": false, "100.127.255.255": false, "127.0.0.1": false,
		"127.255.0.1": false, "169.254.169.254": false, "172.16.0.1": false, "172.31.255.255": false,
		"192.168.1.1": false, "192.0.0.192": false, "198.18.0.1": false, "224.0.0.251": false,
		"239.255.255.250": false, "255.255.255.255": false, "168.63.129.16": false, "100.100.100.200": false,
		"::": false, "::1": false, "fe80::1": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false,
		"::7f00:1": false, "64:ff9b::7f00:1": false, "64:ff9b:1::1": false, "2002:7f00:1::": false,
		"2001:0:7f00:1::": false, "2001:db8::1": false, "fec0::1": false, "100::1": false, "fe80::1%eth0": false,
		"2606:4700::1111%eth0": false,
	} {
		if got := isPublic(netip.MustParseAddr(text)); got != want {
			t.Errorf("isPublic(%s) = %v, want %v", text, got, want)
		}
	}
}

// TestPrivateNetworks tries to reach a server of the same machine by all notations of its address.
func TestPrivateNetworks(t *testing.T) {
	t.Parallel()

	reached := func(http.ResponseWriter, *http.Request) { t.Error("the server was reached") }
	plain := httptest.NewServer(http.HandlerFunc(reached))
	t.Cleanup(plain.Close)

	secure := httptest.NewTLSServer(http.HandlerFunc(reached))
	t.Cleanup(secure.Close)

	port := func(url string) string { return url[strings.LastIndex(url, ":"):] }
	for _, host := range []string{
		"127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001", "0", "0.0.0.0",
		"localhost", "localhost.", "LOCALHOST", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
		"[0:0:0:0:0:ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[::1%25lo]", "１２７.0.0.1", "127。0。0。1",
		"user@127.0.0.1", "1.1.1.1@127.0.0.1",
	} {
		for scheme, server := range map[string]*httptest.Server{"http": plain, "https": secure} {
			url := scheme + "://" + host + port(server.URL) + "/"
			if res, err := get(t, New(nil), url); err == nil {
				t.Errorf("GET %s: got status %d, want an error", url, res.Status)
			}
		}
	}

	if _, err := get(t, New(nil), plain.URL); !errors.Is(err, ErrNetwork) {
		t.Errorf("GET %s: got %v, want %v", plain.URL, err, ErrNetwork)
	}
	if _, err := get(t, New(nil), "https://localhost"+port(secure.URL)); !errors.Is(err, ErrNetwork) {
		t.Errorf("a name of a loopback address: got %v, want %v", err, ErrNetwork)
	}
	if _, err := get(t, New(prefixes("10.0.0.0/8")), plain.URL); !errors.Is(err, ErrNetwork) {
		t.Errorf("another network is allowed: got %v, want %v", err, ErrNetwork)
	}
}

// TestPlainHTTP: only the allowed networks are reached without encryption.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()

	if _, err := get(t, New(nil), "http://1.1.1.1/"); !errors.Is(err, ErrNetwork) {
		t.Errorf("got %v, want %v", err, ErrNetwork)
	}
}

func TestSchemes(t *testing.T) {
	t.Parallel()

	for _, url := range []string{"file:///etc/passwd", "ftp://127.0.0.1/", "gopher://127.0.0.1/", "/relative"} {
		if res, err := get(t, loopback(), url); err == nil {
			t.Errorf("GET %s: got status %d, want an error", url, res.Status)
		}
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()

	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a redirect reached another host")
	}))
	t.Cleanup(other.Close)

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/other":
			http.Redirect(w, r, other.URL, http.StatusFound)
		case "/name":
			http.Redirect(w, r, strings.Replace(other.URL, "127.0.0.1", "localhost", 1), http.StatusTemporaryRedirect)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/once":
			http.Redirect(w, r, "/end", http.StatusFound)
		default:
			fmt.Fprint(w, "end")
		}
	}))
	t.Cleanup(server.Close)

	for _, path := range []string{"/other", "/name", "/loop"} {
		if _, err := get(t, loopback(), server.URL+path); !errors.Is(err, ErrRedirect) {
			t.Errorf("%s: got %v, want %v", path, err, ErrRedirect)
		}
	}

	if res, err := get(t, loopback(), server.URL+"/once"); err != nil || string(res.Body) != "end" {
		t.Errorf("a redirect on the same host: got %q, %v", res.Body, err)
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()

	entered, leave := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			_, _ = w.Write(make([]byte, MaxResponse+1))
		case "/header":
			w.Header().Set("X-Large", strings.Repeat("x", 2*maxHeader))
		case "/slow":
			entered <- struct{}{}

			select {
			case <-leave:
			case <-r.Context().Done():
			}
		default:
			_, _ = w.Write(make([]byte, MaxResponse))
		}
	}))
	t.Cleanup(server.Close)

	c := loopback()
	if _, err := get(t, c, server.URL+"/large"); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a large body: got %v, want %v", err, ErrTooLarge)
	}
	if _, err := get(t, c, server.URL+"/header"); err == nil {
		t.Error("a large header: got no error")
	}
	if res, err := get(t, c, server.URL+"/most"); err != nil || len(res.Body) != MaxResponse {
		t.Errorf("the largest body: got %d bytes, %v", len(res.Body), err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	send := func(ctx context.Context) {
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/slow", nil)
		_, err := c.Do(ctx, fair.Key{Account: "slow"}, r)
		failed <- err
	}

	sent := 0
	for ; c.places.Stats().InUse < c.places.Stats().Capacity/4; sent++ {
		go send(ctx)
		<-entered
	}

	over, stop := context.WithCancel(t.Context())
	go send(over)
	for c.places.Stats().Waiting == 0 {
		runtime.Gosched()
	}

	stop()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("more than %d requests of a tenant: got %v, want it to wait", sent, err)
	}
	if _, err := get(t, c, server.URL+"/most"); err != nil {
		t.Errorf("a request of another tenant: %v", err)
	}

	cancel() // the clients leave
	for range sent {
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("a request whose client has left: got %v", err)
		}
	}

	close(leave)
	if n := c.places.Stats().InUse; n != 0 {
		t.Errorf("%d places are in use after all requests", n)
	}
}

// TestNewcomers: accounts whose requests hang leave a place to each further account.
func TestNewcomers(t *testing.T) {
	t.Parallel()

	c := loopback()
	capacity := int(c.places.Stats().Capacity)
	entered := make(chan struct{}, capacity)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			entered <- struct{}{}
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	failed := make(chan error, capacity)
	for i := range capacity { // of ten projects of each of 16 accounts
		go func() {
			r, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/slow", nil)
			_, err := c.Do(ctx, fair.Key{Account: fmt.Sprint(i % 16), Part: fmt.Sprint(i / 16 % 10)}, r)
			failed <- err
		}()
	}

	for range capacity - capacity/4 {
		<-entered
	}

	for i := 0; ; i++ { // take the reserve
		lease := c.places.TryAcquire(fair.Key{Account: fmt.Sprint("idle", i)}, 1)
		if lease == nil {
			break
		}
		defer lease.Release()
	}

	if _, err := get(t, c, server.URL); err != nil {
		t.Errorf("a request of a newcomer: %v", err)
	}
	if err := <-failed; !errors.Is(err, fair.ErrBusy) {
		t.Errorf("a request of the largest account: got %v, want it to give way", err)
	}

	cancel()
	for range capacity - 1 {
		<-failed
	}
}

// TestWithin checks that a client of smaller responses has a bound and a budget of its own.
func TestWithin(t *testing.T) {
	t.Parallel()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(make([]byte, len(r.URL.Path)))
	}))
	t.Cleanup(server.Close)

	c := loopback()
	bounded := c.Within(8, "bounded")
	if res, err := get(t, bounded, server.URL+"/1234567"); err != nil || len(res.Body) != 8 {
		t.Errorf("the largest body: got %d bytes, %v", len(res.Body), err)
	}
	if _, err := get(t, bounded, server.URL+"/12345678"); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a large body: got %v, want %v", err, ErrTooLarge)
	}

	lease := bounded.places.TryAcquire(fair.Key{Account: "slow"}, 1)
	defer lease.Release()

	if n := c.places.Stats().InUse; n != 0 {
		t.Errorf("requests of the other client take %d places", n)
	}
	if _, err := get(t, bounded.Within(8, "others"), server.URL); err != nil {
		t.Error(err)
	}
}

// TestDial checks the networks and the bytes of connections for other protocols.
func TestDial(t *testing.T) {
	t.Parallel()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })

	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Write(make([]byte, 2*MaxResponse)) // fails when the client leaves
		_ = conn.Close()
	}()

	if _, err := New(nil).Dial(t.Context(), "tcp", l.Addr().String()); !errors.Is(err, ErrNetwork) {
		t.Errorf("got %v, want %v", err, ErrNetwork)
	}

	conn, err := loopback().Dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	if n, err := io.Copy(io.Discard, conn); n != MaxResponse || !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %d bytes, %v, want %d and %v", n, err, MaxResponse, ErrTooLarge)
	}
}
