package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/queue"
)

// TestIsOutage tells an outage of the database from failures that another attempt would meet too.
func TestIsOutage(t *testing.T) {
	t.Parallel()

	state := func(code string) error {
		return fmt.Errorf("count rows: %w", pg.Fault(&pgconn.PgError{Code: code, Message: code}))
	}
	for _, test := range []struct {
		err  error
		want bool
	}{
		{state("57P01"), true}, {state("57P03"), true}, {state("53300"), true}, {state("25006"), true},
		{state("08006"), true}, {fmt.Errorf("count rows: %w", pg.Fault(io.ErrUnexpectedEOF)), true},
		{&pgconn.ConnectError{}, true},
		{state("57014"), false}, {state("53100"), false}, {state("42P01"), false}, {state("55P03"), false},
		{fault.New(fault.Unavailable, "the storage is unavailable"), false}, {errors.New("other"), false},
		{errors.Join(fault.New(fault.Unprocessable, "took too long"), pg.Fault(context.DeadlineExceeded)), false},
		{context.Canceled, false}, {fmt.Errorf("read the dump: %w", io.ErrUnexpectedEOF), false},
		{fmt.Errorf("run pg_dump: %w", &fs.PathError{Op: "fork/exec", Path: "pg_dump", Err: syscall.ENOENT}), false},
		{fault.New(fault.Unavailable, "the storage is unavailable").WithCause(context.DeadlineExceeded), false},
	} {
		if got := isOutage(t.Context(), test.err); got != test.want {
			t.Errorf("%v: got %t, want %t", test.err, got, test.want)
		}
	}

	stopped, stop := context.WithCancel(t.Context())
	stop()
	if isOutage(stopped, pg.Fault(io.EOF)) {
		t.Error("a stop of the server is an outage")
	}

	cutOff, end := context.WithCancelCause(t.Context())
	end(queue.ErrCutOff)
	if !isOutage(cutOff, context.Canceled) {
		t.Error("a job of a server that was cut off has failed for good")
	}
}
