//go:build amd64 || arm64

package function

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// endless listens for one connection, whose request it answers with 101 if it upgrades. It leaves
// the connection open.
func endless(t *testing.T, upgrades bool) string {
	t.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })

	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		t.Cleanup(func() { _ = conn.Close() })

		if upgrades {
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		}
		_, _ = io.Copy(io.Discard, conn)
	}()

	return listener.Addr().String()
}

// TestTunnelsEnd: the connections of a process end with it, even if the other hosts never close
// them.
func TestTunnelsEnd(t *testing.T) {
	t.Parallel()

	p := projectdbtest.New(t)
	opens := map[string]bool{"HTTP/1.1 200": true, "HTTP/1.1 101": true}
	for name, method := range map[string]string{"a tunnel": "CONNECT ", "an upgrade": "GET http://"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := New(Config{Outbound: outbound.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})})
			stopped := make(chan struct{})
			owner := &worker{service: s, project: p, stopped: stopped}
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s.serveOutward(w, r, owner)
			}))
			defer proxy.Close()

			process, err := net.Dial("tcp", proxy.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer process.Close()

			host := endless(t, name == "an upgrade")
			_, _ = io.WriteString(process,
				method+host+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			status := make([]byte, len("HTTP/1.1 200"))
			if _, err := io.ReadFull(process, status); err != nil || !opens[string(status)] {
				t.Fatalf("got %s, %v", status, err)
			}
			if got := s.connections.Stats().InUse; got != 1 {
				t.Errorf("%d connections are counted", got)
			}

			close(stopped)
			pgtest.Eventually(t, "the end of the connection", func() bool { return s.connections.Stats().InUse == 0 })
		})
	}
}
