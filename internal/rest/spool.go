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
	chunkSize = 64 << 10 // bytes of a piece of a long body
	minChunks = 2        // pieces of one that are always in memory
	// a client that takes longer for a piece is slow: then more is read than it has taken
	slowAfter    = 20 * time.Millisecond
	writeTimeout = 30 * time.Second // for a client to take a piece
	// with one that takes none while others wait for its connection, unless the configuration says otherwise
	defaultSlowClientTimeout = 2 * time.Second
)

var errSlowClient = errors.New("the client takes nothing while others wait for the connection")

// spool is a long body on its way. One goroutine reads it from PostgreSQL into pieces, another one writes those to the client. If the client is
// slow the reading goes on as far as there is memory, so that the connection is free for others; else PostgreSQL waits.
type spool struct {
	budget     *ResponseBudget
	out        io.Writer
	controller *http.ResponseController

	mu          sync.Mutex
	pending     [][]byte  // pieces to be written, in order
	free        [][]byte  // pieces to be read into
	chunks      int       // all that there are
	budgetBytes int       // bytes of held
	lastWrite   time.Time // a piece was written
	complete    bool      // all is read
	err         error     // why no more is written

	readable chan struct{} // there is a full piece, or there will be no more
	writable chan struct{} // there is an empty piece, or nothing is written any more
	done     chan struct{} // nothing is written any more
}

func newSpool(budget *ResponseBudget, w http.ResponseWriter) *spool {
	return &spool{
		budget:     budget,
		out:        w,
		controller: http.NewResponseController(w),
		lastWrite:  time.Now(),
		readable:   make(chan struct{}, 1),
		writable:   make(chan struct{}, 1),
		done:       make(chan struct{}),
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// fill reads a body to its end. slow is asked whether the client's slowness is in the way of others.
func (s *spool) fill(body io.Reader, deadline time.Time, slowClientTimeout time.Duration, contended func() bool) error {
	for {
		chunk, err := s.nextChunk(deadline, slowClientTimeout, contended)
		if err != nil {
			return err
		}

		n := 0
		for n < len(chunk) && err == nil {
			var m int
			m, err = body.Read(chunk[n:])
			n += m
		}

		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}

		s.mu.Lock()

		if n > 0 {
			s.pending = append(s.pending, chunk[:n])
		}

		if err != nil {
			s.complete = true
			s.returnBudget(len(s.free) * chunkSize)
		}

		s.mu.Unlock()
		signal(s.readable)

		if err != nil {
			return nil
		}
	}
}

// piece returns a piece to read into, when there is one.
func (s *spool) nextChunk(deadline time.Time, slowClientTimeout time.Duration, contended func() bool) ([]byte, error) {
	var timer *time.Timer
	for {
		released := s.budget.onRelease()

		chunk, delay, err := s.takeChunk(slowClientTimeout)
		if chunk != nil || err != nil {
			return chunk, err
		}

		if delay <= 0 {
			if contended() {
				return nil, errSlowClient
			}
			delay = slowClientTimeout
		}

		remaining := time.Until(deadline)
		if remaining <= 0 {
			return nil, context.DeadlineExceeded
		}

		if delay = min(delay, remaining); timer == nil {
			timer = time.NewTimer(delay)
			defer timer.Stop()
		} else {
			timer.Reset(delay)
		}

		select {
		case <-s.writable:
		case <-released:
		case <-timer.C:
		}
	}
}

// next returns a piece, or after what time to look again.
func (s *spool) takeChunk(slowClientTimeout time.Duration) ([]byte, time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	idle := time.Since(s.lastWrite)
	switch {
	case s.err != nil:
		return nil, 0, s.err
	case len(s.free) > 0:
		chunk := s.free[len(s.free)-1]
		s.free = s.free[:len(s.free)-1]

		return chunk[:chunkSize], 0, nil
	case s.chunks < minChunks:
	case s.budgetBytes == 0 && idle < slowAfter:
		return nil, slowAfter - idle, nil
	case s.budget.tryShare(chunkSize, s.budgetBytes):
		s.budgetBytes += chunkSize
	default:
		return nil, slowClientTimeout - idle, nil
	}

	s.chunks++
	return make([]byte, chunkSize), 0, nil
}

// drain writes what comes until nothing more does.
func (s *spool) drain() {
	defer close(s.done)

	for {
		s.mu.Lock()

		if len(s.pending) == 0 {
			finished := s.complete || s.err != nil
			if finished {
				s.returnBudget(s.budgetBytes)
				s.free = nil
			}

			s.mu.Unlock()

			if finished {
				return
			}

			<-s.readable
			continue
		}

		chunk := s.pending[0]
		s.pending[0] = nil
		s.pending = s.pending[1:]
		setWriteDeadline(s.controller)
		s.mu.Unlock()

		_, err := s.out.Write(chunk)
		s.mu.Lock()
		s.lastWrite = time.Now()

		switch {
		case err != nil:
			s.stop(clientGoneError{err})
		case s.complete:
			s.returnBudget(chunkSize)
		default:
			s.free = append(s.free, chunk)
		}

		s.mu.Unlock()
		signal(s.writable)
	}
}

// giveBack gives back bytes, as far as they were taken.
func (s *spool) returnBudget(n int) {
	n = min(n, s.budgetBytes)
	s.budgetBytes -= n
	s.budget.release(n)
}

// stop has nothing more be written.
func (s *spool) stop(err error) {
	if s.err == nil {
		s.err = err
	}
	s.pending = nil
}

// fail is stop for who reads; what is being written is broken off.
func (s *spool) abort(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.stop(err)
	_ = s.controller.SetWriteDeadline(pastDeadline)
	signal(s.readable)
}

// wait waits until all is written, and returns why it was not.
func (s *spool) wait() error {
	if s == nil {
		return nil
	}

	<-s.done

	if s.err != nil {
		return &abortedError{s.err}
	}

	return nil
}

// passOn begins to send a body while it comes, and returns when all of it has come. [spool.wait] waits for the client.
func (c *call) streamBody(res *result) error {
	s := newSpool(c.server.ResponseBudget, c.w)
	res.spool = s

	go s.drain()

	contended := func() bool { return c.server.contended(c.role.Pool) }
	err := s.fill(res.source, c.deadline, c.server.SlowClientTimeout, contended)
	if err == nil {
		return nil
	}

	s.abort(err)
	return s.wait()
}

// send sends a body that is held.
func (c *call) writeBody(body []byte) {
	if len(body) <= uncountedResponse { // nearly always
		_, _ = c.w.Write(body)
		return
	}

	controller := http.NewResponseController(c.w)
	for len(body) > 0 {
		setWriteDeadline(controller)

		n, err := c.w.Write(body[:min(len(body), chunkSize)])
		if err != nil {
			return
		}

		body = body[n:]
	}
}

// inTime has what is written next fail unless the client takes it in time, as far as that can be told.
func setWriteDeadline(controller *http.ResponseController) {
	_ = controller.SetWriteDeadline(time.Now().Add(writeTimeout))
}
