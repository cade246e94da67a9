package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	passSize = 64 << 10 // bytes of a piece of a long body
	ahead    = 2        // pieces of one that are always in memory
	// a client that takes longer for a piece is slow: then more is read than it has taken
	haste   = 20 * time.Millisecond
	slowest = 30 * time.Second // for a client to take a piece
	// with one that takes none while others wait for its connection, unless the configuration says otherwise
	patient = 2 * time.Second
)

var errSlow = errors.New("the client takes nothing while others wait for the connection")

// spool is a long body on its way. One goroutine reads it from PostgreSQL into pieces, another one writes those to the client. If the client is
// slow the reading goes on as far as there is memory, so that the connection is free for others; else PostgreSQL waits.
type spool struct {
	held   *Held
	out    io.Writer
	client *http.ResponseController

	mu     sync.Mutex
	full   [][]byte  // pieces to be written, in order
	empty  [][]byte  // pieces to be read into
	pieces int       // all that there are
	taken  int       // bytes of held
	last   time.Time // a piece was written
	whole  bool      // all is read
	err    error     // why no more is written

	come  chan struct{} // there is a full piece, or there will be no more
	room  chan struct{} // there is an empty piece, or nothing is written any more
	ended chan struct{} // nothing is written any more
}

func newSpool(held *Held, w http.ResponseWriter) *spool {
	return &spool{
		held:   held,
		out:    w,
		client: http.NewResponseController(w),
		last:   time.Now(),
		come:   make(chan struct{}, 1),
		room:   make(chan struct{}, 1),
		ended:  make(chan struct{}),
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// fill reads a body to its end. slow is asked whether the client's slowness is in the way of others.
func (s *spool) fill(body io.Reader, until time.Time, patience time.Duration, slow func() bool) error {
	for {
		piece, err := s.piece(until, patience, slow)
		if err != nil {
			return err
		}

		n := 0
		for n < len(piece) && err == nil {
			var m int
			m, err = body.Read(piece[n:])
			n += m
		}

		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}

		s.mu.Lock()

		if n > 0 {
			s.full = append(s.full, piece[:n])
		}

		if err != nil {
			s.whole = true
			s.giveBack(len(s.empty) * passSize)
		}

		s.mu.Unlock()
		signal(s.come)

		if err != nil {
			return nil
		}
	}
}

// piece returns a piece to read into, when there is one.
func (s *spool) piece(until time.Time, patience time.Duration, slow func() bool) ([]byte, error) {
	var clock *time.Timer
	for {
		more := s.held.changed()

		piece, next, err := s.next(patience)
		if piece != nil || err != nil {
			return piece, err
		}

		if next <= 0 {
			if slow() {
				return nil, errSlow
			}
			next = patience
		}

		left := time.Until(until)
		if left <= 0 {
			return nil, context.DeadlineExceeded
		}

		if next = min(next, left); clock == nil {
			clock = time.NewTimer(next)
			defer clock.Stop()
		} else {
			clock.Reset(next)
		}

		select {
		case <-s.room:
		case <-more:
		case <-clock.C:
		}
	}
}

// next returns a piece, or after what time to look again.
func (s *spool) next(patience time.Duration) ([]byte, time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	idle := time.Since(s.last)
	switch {
	case s.err != nil:
		return nil, 0, s.err
	case len(s.empty) > 0:
		piece := s.empty[len(s.empty)-1]
		s.empty = s.empty[:len(s.empty)-1]

		return piece[:passSize], 0, nil
	case s.pieces < ahead:
	case s.taken == 0 && idle < haste:
		return nil, haste - idle, nil
	case s.held.share(passSize, s.taken):
		s.taken += passSize
	default:
		return nil, patience - idle, nil
	}

	s.pieces++
	return make([]byte, passSize), 0, nil
}

// drain writes what comes until nothing more does.
func (s *spool) drain() {
	defer close(s.ended)

	for {
		s.mu.Lock()

		if len(s.full) == 0 {
			over := s.whole || s.err != nil
			if over {
				s.giveBack(s.taken)
				s.empty = nil
			}

			s.mu.Unlock()

			if over {
				return
			}

			<-s.come
			continue
		}

		piece := s.full[0]
		s.full[0] = nil
		s.full = s.full[1:]
		inTime(s.client)
		s.mu.Unlock()

		_, err := s.out.Write(piece)
		s.mu.Lock()
		s.last = time.Now()

		switch {
		case err != nil:
			s.stop(goneError{err})
		case s.whole:
			s.giveBack(passSize)
		default:
			s.empty = append(s.empty, piece)
		}

		s.mu.Unlock()
		signal(s.room)
	}
}

// giveBack gives back bytes, as far as they were taken.
func (s *spool) giveBack(n int) {
	n = min(n, s.taken)
	s.taken -= n
	s.held.give(n)
}

// stop has nothing more be written.
func (s *spool) stop(err error) {
	if s.err == nil {
		s.err = err
	}
	s.full = nil
}

// fail is stop for who reads; what is being written is broken off.
func (s *spool) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.stop(err)
	_ = s.client.SetWriteDeadline(longAgo)
	signal(s.come)
}

// wait waits until all is written, and returns why it was not.
func (s *spool) wait() error {
	if s == nil {
		return nil
	}

	<-s.ended

	if s.err != nil {
		return &brokenError{s.err}
	}

	return nil
}

// passOn begins to send a body while it comes, and returns when all of it has come. [spool.wait] waits for the client.
func (c *call) passOn(got *result) error {
	s := newSpool(c.server.Held, c.w)
	got.spool = s

	go s.drain()

	err := s.fill(got.coming, c.until, c.server.Patience, func() bool { return c.server.awaited(c.role.Pool) })
	if err == nil {
		return nil
	}

	s.fail(err)
	return s.wait()
}

// send sends a body that is held.
func (c *call) send(body []byte) {
	if len(body) <= uncounted { // nearly always
		_, _ = c.w.Write(body)
		return
	}

	client := http.NewResponseController(c.w)
	for len(body) > 0 {
		inTime(client)

		n, err := c.w.Write(body[:min(len(body), passSize)])
		if err != nil {
			return
		}

		body = body[n:]
	}
}

// inTime has what is written next fail unless the client takes it in time, as far as that can be told.
func inTime(client *http.ResponseController) {
	_ = client.SetWriteDeadline(time.Now().Add(slowest))
}
