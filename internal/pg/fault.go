package pg

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/socle-dev/socle/internal/fault"
)

// Fault assigns a kind to a PostgreSQL or pgx error, for trusted statements: an error that such a
// statement raises only through a bug in Socle stays Internal. Other errors pass unchanged. The
// server's message is kept only as the cause.
func Fault(err error) error {
	if err == nil {
		return nil
	}

	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.Missing().WithCause(err)
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return stateFault(e, err)
	}
	if _, large := errors.AsType[*pgproto3.ExceededMaxBodyLenErr](err); large {
		return fault.New(fault.Unprocessable, "a row or message of the database exceeds %d MB", MaxMessage>>20).
			WithCode("too_large").WithCause(err)
	}
	if IsDisconnect(err) {
		return &fault.Error{
			Kind:       fault.Unavailable,
			Detail:     "the database is unavailable",
			RetryAfter: time.Second,
			Err:        lost{err},
		}
	}

	return err
}

// lost is a lost, refused or too slow connection, as the cause of a fault.
type lost struct{ error }

func (l lost) Unwrap() error { return l.error }

// IsAway reports whether [Fault] has found that the database is out of reach, or a connection was
// refused. Unlike [IsDisconnect] it takes no failure of something else for that, such as one of a
// file or a program.
func IsAway(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	_, ok := errors.AsType[lost](err)

	return ok
}

// watchdogRoutine marks the error for a session that Socle terminated because of a limit.
// PostgreSQL puts a C function's name into that field, and no statement can set it.
const watchdogRoutine = "socle_watchdog"

// MarkEndedByLimit marks e, an admin_shutdown error, as caused by a limit and puts the limit into
// its message.
func MarkEndedByLimit(e *pgconn.PgError, limit string) {
	e.Routine, e.Message = watchdogRoutine, "terminating connection: "+limit
}

// EndedByLimit reports whether Socle terminated the session because of a limit.
func EndedByLimit(e *pgconn.PgError) bool { return e.Routine == watchdogRoutine }

func stateFault(e *pgconn.PgError, err error) error {
	if EndedByLimit(e) {
		return fault.New(fault.Unprocessable, "the database session was terminated: %s",
			strings.TrimPrefix(e.Message, "terminating connection: ")).
			WithCode("session_ended").WithCause(err)
	}

	switch e.Code {
	case "23505", "23P01": // unique_violation, exclusion_violation
		return fault.New(fault.Conflict, "it already exists").WithCause(err)
	case "23503", "23001": // foreign_key_violation, restrict_violation
		return fault.New(fault.Conflict, "another object refers to it, or it refers to one that no longer exists").
			WithCode("reference").WithCause(err)
	case "40001", "40P01", "55P03": // serialization_failure, deadlock_detected, lock_not_available
		return fault.New(fault.Conflict, "it conflicts with a concurrent change; try again").
			WithCode("busy").WithCause(err)
	case "53100": // disk_full
		return &fault.Error{
			Kind:       fault.Unavailable,
			Code:       "disk_full",
			Detail:     "the database is out of disk space",
			RetryAfter: 10 * time.Second,
			Err:        err,
		}
	// read_only_sql_transaction, query_canceled, invalid_catalog_name, invalid_password,
	// invalid_authorization_specification
	case "25006", "57014", "3D000", "28P01", "28000":
		return &fault.Error{
			Kind:       fault.Unavailable,
			Detail:     "the database is unavailable",
			RetryAfter: time.Second,
			Err:        err,
		}
	}

	switch e.Code[:2] {
	case "08", "53", "57": // connection exception, insufficient resources, operator intervention
		return &fault.Error{
			Kind:       fault.Unavailable,
			Detail:     "the database is unavailable",
			RetryAfter: time.Second,
			Err:        err,
		}
	}

	return err
}

// IsDisconnect reports whether err means that the connection was lost, refused or too slow.
func IsDisconnect(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return true
	}

	for _, target := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, syscall.EPIPE,
		syscall.ECONNRESET, syscall.ECONNABORTED, context.DeadlineExceeded} {
		if errors.Is(err, target) {
			return true
		}
	}

	return pgconn.Timeout(err) || pgconn.SafeToRetry(err)
}

// Violates reports whether err violates the named constraint or unique index.
func Violates(err error, constraint string) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.ConstraintName == constraint
}

// Violated returns the constraint that err violates, and its table's schema; "" for another error.
func Violated(err error) (schema, constraint string) {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.SchemaName, e.ConstraintName
	}
	return "", ""
}

// State returns the SQLSTATE in err's chain, or "".
func State(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}
