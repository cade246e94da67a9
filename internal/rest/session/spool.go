package session

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/socle-dev/socle/internal/fair"
)

const (
	// ChunkSize is the size of one write of a body, in bytes.
	ChunkSize = 64 << 10
	// WriteTimeout is the time for a client to accept a chunk.
	WriteTimeout = 30 * time.Second

	minChunks = 2 // chunks per streamed body outside the budget
	// A client that takes longer for a chunk is slow: reading then continues ahead of it.
	slowAfter                = 20 * time.Millisecond
	defaultSlowClientTimeout = 2 * time.Second
)

// Writer is the client that receives a streamed body.
type Writer interface {
	io.Writer
	// SetWriteDeadline bounds running and later writes, as for a net.Conn.
	SetWriteDeadline(t time.Time) error
}

// ClientError reports that the client did not accept the body: it disconnected or stopped reading.
type ClientError struct{ error }

var errSlowClient = errors.New("the client stopped reading while other requests wait for its connection")

// spool streams a long body. One goroutine reads it from PostgreSQL into chunks, another writes
// them to the client. For a slow client, reading continues within the budget to free the connection
// early; without budget PostgreSQL waits.
type spool struct {
	budget *Budget
	owner  fair.Key // that the response is charged to
	out    Writer

	mu        sync.Mutex
	pending   [][]byte      // to be written, in order
	free      [][]byte      // to be read into
	chunks    int           // number of allocated chunks
	leases    []*fair.Lease // chunks taken from budget
	lastWrite time.Time     // time of the last write
	complete  bool          // the body was read
	err       error         // ended the writing

	// readable signals a pending chunk, or the end of reading.
	readable chan struct{}
	// writable signals a free chunk, or the end of writing.
	writable chan struct{}
	done     chan struct{} // closed at the end of writing
}

func newSpool(budget *Budget, owner fair.Key, w Writer) *spool {
	return &spool{
		budget:    budget,
		owner:     owner,
		out:       w,
		lastWrite: time.Now(),
		readable:  make(chan struct{}, 1),
		writable:  make(chan struct{}, 1),
		done:      make(chan struct{}),
	}
}

// signal does not block: the channel is buffered, and one signal suffices.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// fill reads a body to its end. contended reports whether other requests wait for the connection.
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
			s.returnBudget(len(s.free))
		}

		s.mu.Unlock()
		signal(s.readable)

		if err != nil {
			return nil
		}
	}
}

// nextChunk returns a chunk to read into. It waits until there is one.
func (s *spool) nextChunk(deadline time.Time, slowClientTimeout time.Duration, contended func() bool) ([]byte, error) {
	var timer *time.Timer
	for {
		onFree := s.budget.onRelease()

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
		case <-onFree:
		case <-timer.C:
		}
	}
}

// takeChunk returns a chunk, or the delay until the next attempt.
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

		return chunk[:ChunkSize], 0, nil
	case s.chunks < minChunks:
	case len(s.leases) == 0 && idle < slowAfter:
		return nil, slowAfter - idle, nil
	default:
		lease := s.budget.tryShare(s.owner, ChunkSize, len(s.leases)*ChunkSize)
		if lease == nil {
			return nil, slowClientTimeout - idle, nil
		}

		s.leases = append(s.leases, lease)
	}

	s.chunks++
	return make([]byte, ChunkSize), 0, nil
}

// drain writes chunks until the body ends or the spool stops.
func (s *spool) drain() {
	defer close(s.done)

	for {
		s.mu.Lock()

		if len(s.pending) == 0 {
			isDone := s.complete || s.err != nil
			if isDone {
				s.returnBudget(len(s.leases))
				s.free = nil
			}

			s.mu.Unlock()

			if isDone {
				return
			}

			<-s.readable
			continue
		}

		chunk := s.pending[0]
		s.pending[0] = nil
		s.pending = s.pending[1:]
		_ = s.out.SetWriteDeadline(time.Now().Add(WriteTimeout))
		s.mu.Unlock()

		_, err := s.out.Write(chunk)
		s.mu.Lock()
		s.lastWrite = time.Now()

		switch {
		case err != nil:
			s.stop(ClientError{err})
		case s.complete:
			s.returnBudget(1)
		default:
			s.free = append(s.free, chunk)
		}

		s.mu.Unlock()
		signal(s.writable)
	}
}

// returnBudget returns up to n chunks to the budget.
func (s *spool) returnBudget(n int) {
	rest := len(s.leases) - min(n, len(s.leases))
	s.budget.release(s.leases[rest:]...)
	clear(s.leases[rest:])
	s.leases = s.leases[:rest]
}

// stop discards pending chunks.
func (s *spool) stop(err error) {
	if s.err == nil {
		s.err = err
	}
	s.pending = nil
}

// abort stops the spool from the reader's side and interrupts the current write.
func (s *spool) abort(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.stop(err)
	_ = s.out.SetWriteDeadline(pastDeadline)
	signal(s.readable)
}

// wait waits until the body is written. It returns the reason if it was not.
func (s *spool) wait() error {
	<-s.done
	return s.err
}
