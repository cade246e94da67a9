package rest

import (
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/rest/session"
)

//go:embed testdata/sqlstates.txt
var sqlstates string // every SQLSTATE of PostgreSQL, its status and name

// TestEverySQLSTATE compares the status of every SQLSTATE of PostgreSQL with the contract's. A
// status of 503 tells when to repeat the request, no other does.
func TestEverySQLSTATE(t *testing.T) {
	t.Parallel()

	s := &Server{Config: Config{Auth: Auth{Role: func(string) (Role, bool) { return Role{}, true }}}}
	for line := range strings.Lines(sqlstates) {
		var state, name string
		var status int
		if _, err := fmt.Sscan(line, &state, &status, &name); err != nil {
			t.Fatalf("%q: %v", line, err)
		}

		f := s.failure("authenticated", fmt.Errorf("execute: %w", &pgconn.PgError{Code: state, Message: "message"}))
		if f.Status != status || f.Code != state || f.Message != "message" ||
			(f.retryAfter != "") != (status == 503) {
			t.Errorf("%s %s: got %d %s %q, Retry-After %q, want %d", state, name, f.Status, f.Code, f.Message,
				f.retryAfter, status)
		}
	}
}

// TestLostConnectionFailures tests the answer for every way in which a connection ends without a
// word of PostgreSQL. None is an internal error, and none shows its cause.
func TestLostConnectionFailures(t *testing.T) {
	t.Parallel()

	s := &Server{}
	for _, cause := range []error{
		io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, syscall.EPIPE, syscall.ECONNRESET,
		syscall.ECONNABORTED,
		&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)},
		&net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)},
		&net.OpError{Op: "read", Err: syscall.ETIMEDOUT}, &net.DNSError{Err: "no such host", Name: "canary"},
		tls.RecordHeaderError{Msg: "canary"}, tls.AlertError(80),
		&net.OpError{Op: "remote error", Err: tls.AlertError(20)},
		fault.New(fault.Unavailable, "canary"), &catalogError{io.EOF},
		&session.StaleCatalogError{Cause: &pgconn.PgError{Code: "22P02", Message: "canary"}},
	} {
		f := s.failure("authenticated", fmt.Errorf("canary: %w", cause))
		if f.Status != 503 || f.retryAfter == "" || !strings.HasPrefix(f.Code, "PGRST00") ||
			strings.Contains(fmt.Sprint(f.Error), "canary") {
			t.Errorf("%T %[1]v: got %d %s %q, Retry-After %q", cause, f.Status, f.Code, f.Message, f.retryAfter)
		}
	}

	if f := s.failure("authenticated", context.DeadlineExceeded); f.Status != 500 || f.Code != "57014" {
		t.Errorf("deadline: got %d %s", f.Status, f.Code)
	}
	if f := s.failure("authenticated", errors.New("canary")); f.Code != "PGRSTX00" || f.retryAfter != "" {
		t.Errorf("another error: got %+v", f)
	}
}

// TestOutcomeUnknownFailure tests the answer for a write whose outcome is unknown, whatever ended
// its connection: it must not make clients repeat the request.
func TestOutcomeUnknownFailure(t *testing.T) {
	t.Parallel()

	s := &Server{}
	for _, cause := range []error{io.EOF, syscall.ECONNRESET, context.DeadlineExceeded, &pgconn.PgError{Code: "57P01"},
		&pgconn.PgError{Code: "08006"}} {
		err := error(&session.OutcomeUnknownError{Cause: cause})
		f := s.failure("authenticated", err)
		if f.Status != 500 || f.Code != pg.OutcomeUnknown || f.retryAfter != "" || isUnreachable(err) {
			t.Errorf("%v: got %d %s, Retry-After %q, unreachable %v", cause, f.Status, f.Code, f.retryAfter,
				isUnreachable(err))
		}
	}
}
