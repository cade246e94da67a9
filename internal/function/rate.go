package function

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

const (
	outwardRate  = 16 << 20 // bytes a second to and from other hosts, each project on a server
	outwardBurst = 64 << 20 // bytes that are not slowed down
	rateTTL      = time.Minute
)

// rates bound what projects send to other hosts and read from them.
type rates struct {
	mu  sync.Mutex
	all map[uuid.UUID]*rate
}

// of returns the rate of a project.
func (r *rates) of(project uuid.UUID) *rate {
	r.mu.Lock()
	defer r.mu.Unlock()

	found := r.all[project]
	if found == nil {
		if r.all == nil {
			r.all = map[uuid.UUID]*rate{}
		}
		found = &rate{}
		r.all[project] = found
	}

	found.used = time.Now()
	return found
}

// sweep forgets rates that nobody used for a while, and that slow nothing down.
func (r *rates) sweep(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()

	for project, one := range r.all {
		if now.Sub(one.used) > rateTTL && one.idle(now) {
			delete(r.all, project)
		}
	}
}

// rate is a leaky bucket. Its zero value is empty.
type rate struct {
	used time.Time // guarded by the mu of rates

	mu    sync.Mutex
	empty time.Time // when all bytes so far are through
}

// take counts bytes and returns how long their sender must wait.
func (r *rate) take(now time.Time, bytes int) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.empty.Before(now) {
		r.empty = now
	}
	r.empty = r.empty.Add(time.Duration(bytes) * time.Second / outwardRate)

	const burst = time.Second * outwardBurst / outwardRate
	return max(0, r.empty.Sub(now)-burst)
}

func (r *rate) idle(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.empty.Before(now)
}

// meteredConn is a connection to another host, within its project's rate.
type meteredConn struct {
	net.Conn
	rate  *rate
	ended <-chan struct{} // its process has ended

	lingers atomic.Bool // no more bytes are sent
}

func (c *meteredConn) Read(p []byte) (int, error) {
	if c.lingers.Load() {
		_ = c.SetReadDeadline(time.Now().Add(lingerTimeout))
	}

	n, err := c.Conn.Read(p)
	c.wait(n)

	return n, err
}

func (c *meteredConn) Write(p []byte) (int, error) {
	c.wait(len(p))
	return c.Conn.Write(p)
}

// CloseWrite tells the host that no more bytes come. A host that is silent for [lingerTimeout] from
// then on has ended, since nothing else may ever say that the process has left.
func (c *meteredConn) CloseWrite() error {
	closeWrite(c.Conn)
	c.lingers.Store(true)

	return c.SetReadDeadline(time.Now().Add(lingerTimeout)) // also for a read in progress
}

func (c *meteredConn) wait(bytes int) {
	delay := c.rate.take(time.Now(), bytes)
	if delay <= 0 {
		return
	}

	timer := time.NewTimer(delay)
	defer timer.Stop()

	select {
	case <-timer.C:
	case <-c.ended:
	}
}
