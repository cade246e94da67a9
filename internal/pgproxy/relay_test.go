package pgproxy

import (
	"bytes"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// TestLeft checks that a stop of the server is the reason for the end of a session whose read it
// has interrupted.
func TestLeft(t *testing.T) {
	t.Parallel()

	closing := make(chan struct{})
	r := relay{closing: closing}
	if err := r.left(); err != nil {
		t.Errorf("a client that left: got %v, want no reason", err)
	}

	close(closing)
	if err := r.left(); !errors.Is(err, errStopping) {
		t.Errorf("an interrupted read: got %v, want %v", err, errStopping)
	}
}

// TestFraming checks that a stream passes unchanged, however it is cut, up to a fatal error.
func TestFraming(t *testing.T) {
	t.Parallel()

	var stream []byte
	for _, m := range []pgproto3.BackendMessage{
		&pgproto3.DataRow{Values: [][]byte{[]byte("E\x00\x00\x00\x04")}},
		&pgproto3.ErrorResponse{Severity: "FEHLER", SeverityUnlocalized: "ERROR", Code: "22012", Message: "no"},
		&pgproto3.ReadyForQuery{TxStatus: 'I'},
		&pgproto3.DataRow{Values: [][]byte{bytes.Repeat([]byte("x"), 2*bufferSize)}},
		&pgproto3.ErrorResponse{SeverityUnlocalized: "ERROR", Message: string(bytes.Repeat([]byte("y"), bufferSize))},
	} {
		var err error
		if stream, err = m.Encode(stream); err != nil {
			t.Fatal(err)
		}
	}

	ended, err := (&pgproto3.ErrorResponse{SeverityUnlocalized: "FATAL", Code: "57P01"}).Encode(bytes.Clone(stream))
	if err != nil {
		t.Fatal(err)
	}

	for _, size := range []int{1, 2, 5, 7, 1000, bufferSize} {
		var f framing
		var got, held []byte
		var final *pgproto3.ErrorResponse
		for rest := ended; len(rest) > 0 && final == nil; {
			n := min(size, len(rest), bufferSize-len(held))
			held, rest = append(held, rest[:n]...), rest[n:]

			var passed int
			passed, final = f.scan(held)
			got, held = append(got, held[:passed]...), bytes.Clone(held[passed:])
		}

		if !bytes.Equal(got, stream) {
			t.Errorf("in pieces of %d bytes: got %d bytes, want %d", size, len(got), len(stream))
		}
		if final == nil || final.Code != "57P01" || f.remaining != 0 {
			t.Errorf("in pieces of %d bytes: got the end %v with %d bytes remaining", size, final, f.remaining)
		}
	}
}
