package function

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/projectdb"
)

// TestMailPorts: no notation of a mail port leads to a mail server, unless the limits say so.
func TestMailPorts(t *testing.T) {
	t.Parallel()

	s := New(Config{Outbound: outbound.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})})
	owner := &worker{project: &projectdb.Project{UUID: uuid.New()}}
	reaches := func(port string) bool {
		conn, err := s.dial(t.Context(), owner, "127.0.0.1:"+port)
		if err == nil {
			_ = conn.Close()
		}

		return !errors.Is(err, outbound.ErrNetwork)
	}

	for _, port := range []string{"25", "025", "0465", "00587", "smtp", "submission", "+25", "65561", ""} {
		if reaches(port) {
			t.Errorf("port %q is open", port)
		}
	}

	owner.state.MailPorts = true
	for _, port := range []string{"25", "025"} {
		if !reaches(port) {
			t.Errorf("port %q is closed", port)
		}
	}
}

// host is a connection to a host that never closes it.
type host struct{ net.Conn }

func (host) CloseWrite() error { return nil }

// TestRelay: a tunnel ends with its context, and some time after the process's side and the last
// byte.
func TestRelay(t *testing.T) {
	t.Parallel()

	for name, stops := range map[string]bool{"the process ends": true, "its side ends": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				process, near := net.Pipe()
				far, other := net.Pipe()
				ctx, stop := context.WithCancel(t.Context())
				defer stop()

				var buffered io.Reader = near
				if !stops {
					buffered = strings.NewReader("") // the process sends no more, and still reads
				}

				done := make(chan struct{})
				go func() {
					relay(ctx, near, buffered, &meteredConn{Conn: host{far}, rate: &rate{}})
					close(done)
				}()

				before := time.Now()
				if stops {
					stop()
					<-done
					if got := time.Since(before); got != 0 {
						t.Errorf("the tunnel ended after %v", got)
					}
					return
				}

				for range 3 {
					time.Sleep(lingerTimeout - time.Second)
					if _, err := io.WriteString(other, "byte"); err != nil {
						t.Fatal(err)
					}
					if _, err := io.ReadFull(process, make([]byte, 4)); err != nil {
						t.Fatal(err)
					}
				}

				before = time.Now()
				<-done
				if got := time.Since(before); got != lingerTimeout {
					t.Errorf("the tunnel ended after %v of silence", got)
				}
			})
		})
	}
}
