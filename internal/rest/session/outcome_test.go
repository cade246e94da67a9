package session

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// TestLostConnections ends the connection at each point of a write and of a read, in each way, and
// checks that a change that may have been made is told apart from one that was not.
func TestLostConnections(t *testing.T) {
	t.Parallel()

	const hangUp, half, garbage = "hang up", "half a message", "garbage"
	ways := []string{hangUp, "57P01", half, garbage, "XX000"}

	write := func(e *Execution) { e.ReadOnly, e.Streams, e.Statement.CountOnly = false, false, true }
	inert := func(e *Execution) { write(e); e.Statement.Inert = true }
	checked := func(e *Execution) { write(e); e.Check = func(*Result) error { return nil } }
	undone := func(e *Execution) { write(e); e.Rollback = true }

	for _, test := range []struct {
		name   string
		change func(*Execution)
		// unknown is the first point at which an error of PostgreSQL leaves the outcome unknown;
		// -1: none. sent is the same for a connection that ends without a word: COMMIT was sent by
		// then.
		unknown, sent, points, ways int
	}{
		{"read", func(*Execution) {}, -1, -1, 3, 2},
		{"write", write, 3, 0, 4, 5},
		{"inert write", inert, 2, 0, 3, 2},
		{"checked write", checked, 3, 3, 4, 2},
		{"write rolled back", undone, -1, -1, 4, 2},
	} {
		for point := range test.points {
			for _, way := range ways[:test.ways] {
				silent := len(way) != 5
				want := test.sent >= 0 && point >= test.sent
				if !silent {
					want = test.unknown >= 0 && point >= test.unknown
				}

				t.Run(fmt.Sprintf("%s, %s at answer %d", test.name, way, point), func(t *testing.T) {
					t.Parallel()

					e := read(fakePool(t, endAt(point, way)))
					test.change(e)
					_, err := New(Config{}).Execute(t.Context(), e)
					if err == nil || IsOutcomeUnknown(err) != want {
						t.Errorf("got %v, want unknown %v", err, want)
					}
				})
			}
		}
	}
}

// endAt plays a PostgreSQL that ends the connection instead of the answer to the point-th
// execution, where Sync and a simple query count as one: without a word, in the middle of a
// message, or with an error.
func endAt(point int, way string) func(*pgproto3.Backend) {
	return func(b *pgproto3.Backend) {
		for n := 0; ; {
			m, err := b.Receive()
			if err != nil {
				return
			}

			_, executes := m.(*pgproto3.Execute)
			_, syncs := m.(*pgproto3.Sync)
			_, queries := m.(*pgproto3.Query)
			if executes || syncs || queries {
				if n == point {
					end(b, way)
					return
				}
				n++
			}

			switch m.(type) {
			case *pgproto3.Parse:
				b.Send(&pgproto3.ParseComplete{})
			case *pgproto3.Bind:
				b.Send(&pgproto3.BindComplete{})
			case *pgproto3.Execute:
				b.Send(&pgproto3.CommandComplete{CommandTag: []byte("INSERT 0 1")})
			}
			if b.Flush() != nil {
				return
			}
		}
	}
}

func end(b *pgproto3.Backend, way string) {
	switch {
	case len(way) == 5:
		b.Send(&pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: way, Message: "canary"})
	case way == "garbage":
		b.Send(&pgproto3.CopyBothResponse{})
	case way == "half a message":
		b.Send(&pgproto3.NoticeResponse{Message: "x"})
	}

	_ = b.Flush()
}

// TestDeadlineAfterCommit lets the deadline pass while COMMIT is not answered.
func TestDeadlineAfterCommit(t *testing.T) {
	t.Parallel()

	for _, readOnly := range []bool{true, false} {
		var err error
		for wait, sent := 50*time.Millisecond, false; !sent; wait *= 2 { // a busy machine connects late
			sent, err = deadlineAfterCommit(t, readOnly, wait)
		}

		if err == nil || IsOutcomeUnknown(err) == readOnly {
			t.Errorf("read-only %v: got %v", readOnly, err)
		}
		if _, ok := errors.AsType[*pgconn.PgError](err); ok {
			t.Errorf("read-only %v: got %v, an error of PostgreSQL", readOnly, err)
		}
	}
}

// deadlineAfterCommit executes a statement that PostgreSQL never answers, with a deadline after
// wait. It returns whether PostgreSQL received COMMIT before, and the error.
func deadlineAfterCommit(t *testing.T, readOnly bool, wait time.Duration) (bool, error) {
	t.Helper()

	received, returned := make(chan struct{}), make(chan struct{})
	defer close(returned)

	pool := fakePool(t, func(b *pgproto3.Backend) {
		for {
			m, err := b.Receive()
			if err != nil {
				return
			}
			if _, last := m.(*pgproto3.Sync); last {
				close(received)
				<-returned
				return
			}
		}
	})

	e := read(pool)
	e.ReadOnly, e.Streams, e.Statement.Inert = readOnly, false, true
	e.Deadline = time.Now().Add(wait)
	_, err := New(Config{}).Execute(t.Context(), e)

	select {
	case <-received:
		return true, err
	default:
		return false, err
	}
}
