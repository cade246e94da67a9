package session

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/fair"
)

func never() bool  { return false }
func always() bool { return true }

// TestSpoolReadsAhead checks that a body is read to its end beside a client that reads nothing, as
// far as the budget has room.
func TestSpoolReadsAhead(t *testing.T) {
	t.Parallel()

	budget := NewBudget(8 * ChunkSize * 8)
	client, server := net.Pipe()
	s := newSpool(budget, fair.Key{}, server)
	go s.drain()

	body := bytes.Repeat([]byte("0123456789abcdef"), 8*ChunkSize/16)
	if err := s.fill(bytes.NewReader(body), time.Now().Add(time.Minute), time.Minute, never); err != nil {
		t.Fatal(err)
	}
	if n := budget.InUse(); n == 0 || n > 8*ChunkSize {
		t.Errorf("got %d bytes of the budget in use, want some, at most %d", n, 8*ChunkSize)
	}

	got := make([]byte, len(body))
	if _, err := io.ReadFull(client, got); err != nil || !bytes.Equal(got, body) {
		t.Errorf("the client got another body, %v", err)
	}
	if err := s.wait(); err != nil || budget.InUse() != 0 {
		t.Errorf("got %v, %d bytes of the budget in use, want none", err, budget.InUse())
	}
}

// TestSpoolAborts checks what ends the reading for a client that reads nothing, and that its write
// ends too.
func TestSpoolAborts(t *testing.T) {
	t.Parallel()

	hour := time.Now().Add(time.Hour)
	broken := errors.New("broken")
	endless := io.MultiReader(bytes.NewReader(make([]byte, 64*ChunkSize)))
	for _, test := range []struct {
		name      string
		body      io.Reader
		deadline  time.Time
		contended func() bool
		want      error
	}{
		{"others wait", endless, hour, always, errSlowClient},
		{"deadline", endless, time.Now().Add(time.Millisecond), never, context.DeadlineExceeded},
		{"database", io.MultiReader(bytes.NewReader(make([]byte, ChunkSize)), failing{broken}), hour, never, broken},
	} {
		client, server := net.Pipe()
		s := newSpool(NewBudget(0), fair.Key{}, server)
		go s.drain()

		err := s.fill(test.body, test.deadline, time.Millisecond, test.contended)
		if !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, err, test.want)
		}

		s.abort(err)

		if err := s.wait(); !errors.Is(err, test.want) {
			t.Errorf("%s: the writing ended with %v, want %v", test.name, err, test.want)
		}

		_ = client.Close()
	}
}

func TestSpoolClientFails(t *testing.T) {
	t.Parallel()

	client, server := net.Pipe()
	_ = client.Close()
	s := newSpool(NewBudget(0), fair.Key{}, server)
	go s.drain()

	body := bytes.NewReader(make([]byte, 64*ChunkSize))
	err := s.fill(body, time.Now().Add(time.Minute), time.Minute, never)
	if _, ok := errors.AsType[ClientError](err); !ok {
		t.Errorf("got %v, want a ClientError", err)
	}
	if waited := s.wait(); waited != err {
		t.Errorf("the writing ended with %v, want %v", waited, err)
	}
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
