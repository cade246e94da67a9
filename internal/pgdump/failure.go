package pgdump

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Error is a failure at a line in a dump.
type Error struct {
	Line      int    // where the mistake is
	FirstLine int    // where the statement begins
	Statement string // "" if there is none
	Position  int    // mistake's position in Statement, in characters from 1; 0 if unknown
	Message   string // if PostgreSQL did not fail
	Postgres  *pgconn.PgError

	err error
}

// Error returns the message, in PostgreSQL's words if it has failed.
func (e *Error) Error() string {
	text := e.Message
	if e.Postgres != nil {
		text = e.Postgres.Message
	}

	return "line " + strconv.Itoa(e.Line) + ": " + text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error {
	if e.Postgres != nil {
		return e.Postgres
	}
	return e.err
}

// ErrOutcomeUnknown reports a connection that was lost while the import was committed.
var ErrOutcomeUnknown = errors.New("the connection was lost at the end: check whether the import is complete")

// failed returns a PostgreSQL error as an *Error for a statement. It wraps other errors, such as a
// lost connection, with the line.
func failed(s statement, err error) error {
	if err == nil {
		return nil
	}

	p, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return fmt.Errorf("line %d: %w", s.line, err)
	}

	e := &Error{Line: s.line, FirstLine: s.line, Statement: s.Text, Postgres: p}
	if position := int(p.Position); position > 0 {
		e.Position = position
		e.Line += strings.Count(firstChars(s.Text, position-1), "\n")
	}

	return e
}

var copiedLine = regexp.MustCompile(`(?m)^COPY .*, line (\d+)`)

// failedRow is [failed] for a COPY, with the row's line.
func failedRow(s statement, first int, err error) error {
	err = failed(s, err)

	e, ok := errors.AsType[*Error](err)
	if !ok || e.Postgres == nil {
		return err
	}

	if m := copiedLine.FindStringSubmatch(e.Postgres.Where); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n > 0 {
			e.Line = first + n - 1
		}
	}

	return e
}

// firstChars returns the first n characters.
func firstChars(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}

	return text
}
