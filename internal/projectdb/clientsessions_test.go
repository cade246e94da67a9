package projectdb_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// slowStartConn is a connection whose writes of startup and password end late: after the response
// was read and a further read has begun. pgx reads in the background during a slow write.
type slowStartConn struct {
	net.Conn

	mu    sync.Mutex
	began *sync.Cond // a read
	reads int        // begun
	reply int        // number of the read that returned the response to the last write; 0: none yet
}

func (c *slowStartConn) Read(b []byte) (int, error) {
	c.mu.Lock()
	c.reads++
	c.began.Broadcast()
	c.mu.Unlock()

	n, err := c.Conn.Read(b)

	c.mu.Lock()
	defer c.mu.Unlock()

	if c.reply == 0 {
		c.reply = c.reads
	}

	return n, err
}

func (c *slowStartConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.reply = 0
	n, err := c.Conn.Write(b)

	for starting := b[0] == 0 || b[0] == 'p'; starting && err == nil && (c.reply == 0 || c.reads == c.reply); {
		c.began.Wait()
	}

	return n, err
}

// TestSlowSessionStart checks that the responses to a client's statements arrive if the machine was
// so slow at the start of the session that pgx was still reading.
func TestSlowSessionStart(t *testing.T) {
	t.Parallel()

	c := projectdbtest.Config(t, 4)
	p := projectdbtest.NewIn(t, projectdbtest.Open(t, c))

	dial := c.Server.ConnConfig.DialFunc
	c.Server.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}

		slow := &slowStartConn{Conn: conn}
		slow.began = sync.NewCond(&slow.mu)

		return slow, nil
	}

	s, err := p.OpenSession(t.Context(), false, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	if err := s.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}

	frontend := pgproto3.NewFrontend(s, s)
	for _, sql := range []string{"set search_path = public", "set search_path = extensions"} {
		frontend.SendQuery(&pgproto3.Query{String: sql})
		if err := frontend.Flush(); err != nil {
			t.Fatal(err)
		}

		for ready := false; !ready; {
			m, err := frontend.Receive()
			if err != nil {
				t.Fatalf("%s: got no response: %v", sql, err)
			}
			_, ready = m.(*pgproto3.ReadyForQuery)
		}
	}
}

// TestRefusedParameters: a session that PostgreSQL refuses for a parameter of the client fails with
// PostgreSQL's own message and code.
func TestRefusedParameters(t *testing.T) {
	t.Parallel()

	p := projectdbtest.NewIn(t, projectdbtest.NewRegistry(t, 4))
	for options, want := range map[string]string{
		"-c is_superuser=on":            "55P02",
		"-c local_preload_libraries=no": "58P01",
		"-c work_mem=nonsense":          "22023",
		"-c no_such_setting=1":          "42704",
		"-c fsync=off":                  "55P02",
		"-x":                            "42601",
	} {
		s, err := p.OpenSession(t.Context(), false, map[string]string{"options": options})
		if err == nil {
			s.Close()
		}
		if f := fault.Of(err); err == nil || f.Kind != fault.Unprocessable || f.Code != want {
			t.Errorf("%s: got %v, want PostgreSQL's %s", options, err, want)
		}
	}
}
