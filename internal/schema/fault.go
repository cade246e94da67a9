package schema

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/fault"
)

// translate translates PostgreSQL's error for a user-shaped statement. explain handles the
// SQLSTATEs that the user's input causes in this statement and returns nil for all others. A few
// states have the same meaning everywhere. Other errors pass unchanged: pg.Fault translates locks,
// connections and resources; the rest are Internal.
func translate(err error, explain func(state string) *fault.Error) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}

	if explain != nil {
		if f := explain(e.Code); f != nil {
			return f.WithCause(err)
		}
	}

	switch e.Code {
	case "42501": // insufficient_privilege
		return fault.New(fault.Unprocessable, "the object belongs to the platform or to an extension").
			WithCode("not_owned").WithCause(err)
	case "2BP01": // dependent_objects_still_exist
		return fault.New(fault.Conflict, "other objects depend on it").WithCode("in_use").WithCause(err)
		// feature_not_supported, wrong_object_type, not in prerequisite state, object_in_use
	case "0A000", "42809", "55000", "55006":
		return fault.New(fault.Unprocessable, "the database does not support this for an object of this kind").
			WithCode("not_supported").WithCause(err)
	case "54001", "54011", "54023": // too complex, too many columns, too many arguments
		return fault.New(fault.Unprocessable, "a limit of the database is exceeded").WithCode("too_many").WithCause(err)
	}

	return err
}

// blamesUser reports whether an SQLSTATE's class blames the user's value or code: invalid data,
// violated constraints, missing privileges or names, limits, an exception raised by a function.
// Locks, deadlocks, cancellation, lost connections and exhausted resources are excluded.
func blamesUser(state string) bool {
	switch state[:2] {
	case "0A", "21", "22", "23", "2F", "38", "39", "42", "44", "54", "P0":
		return true
	}

	return false
}

var nearText = regexp.MustCompile(`^\S{1,40}`)

// errorPosition returns the line in the body and the word next to the error, or "" if PostgreSQL
// reported no position. Positions count characters in the body, or in the whole statement, which is
// head followed by literal.
func errorPosition(err error, head, literal string) string {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return ""
	}

	text, position := []rune(literal), int(e.Position)-utf8.RuneCountInString(head)
	if e.InternalPosition > 0 {
		text, position = []rune(e.InternalQuery), int(e.InternalPosition)
	}

	if position < 1 || position > len(text) {
		return ""
	}

	head, tail := string(text[:position-1]), strings.TrimSuffix(string(text[position-1:]), "'")
	line := fmt.Sprintf(", at line %d", 1+strings.Count(head, "\n"))

	near := nearText.FindString(tail)
	if near == "" {
		return line
	}

	return line + " near " + strings.ReplaceAll(near, "''", "'")
}
