package schema

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// translate translates PostgreSQL's error for a user-shaped statement. explain handles the
// SQLSTATEs that the user's input causes in this statement and returns nil for all others. A few
// states have the same meaning everywhere. Other errors pass unchanged: pg.Fault translates locks,
// connections and resources; the rest are Internal.
func translate(err error, explain func(state string) *fault.Error) error {
	return translateText(err, fragment{}, explain)
}

// translateText is translate for a statement with an SQL text that the user wrote. A fault of
// [onText] gets PostgreSQL's report and its place in the text.
func translateText(err error, text fragment, explain func(state string) *fault.Error) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return err
	}

	if explain != nil {
		if f := explain(e.Code); f != nil {
			if _, isOnText := f.Extra["postgres"]; isOnText {
				text.report(f, e)
			}
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

// onText returns a fault on a field whose SQL the user wrote, for [translateText].
func onText(field, code, message string) *fault.Error {
	f := fault.OnField(fault.Unprocessable, field, code, "%s", message)
	f.Extra = map[string]any{"postgres": pg.Report{}}

	return f
}

// fragment is an SQL text that the user wrote, within a statement. The zero value is unknown.
type fragment struct {
	before string // the statement before it
	text   string // as the user wrote it
	quoted bool   // the statement has it as a literal
}

// report adds PostgreSQL's report to a fault on the text: whole as metadata, its place to the
// message.
func (t fragment) report(f *fault.Error, e *pgconn.PgError) {
	r := pg.NewReport(e)
	r.Position = t.position(e)
	r.Line, r.Column = pg.LineAt(t.text, r.Position)
	f.Extra["postgres"] = r

	if r.Position == 0 {
		return
	}

	place := fmt.Sprintf(", at line %d", r.Line)
	if near := nearText.FindString(string([]rune(t.text)[r.Position-1:])); near != "" {
		place += " near " + near
	}

	f.Detail += place
	f.Fields[0].Message += place
}

var nearText = regexp.MustCompile(`^\S{1,40}`)

// position returns the error's position in the text, in characters from 1, or 0 if PostgreSQL
// reported none there. The end of the text is a position.
func (t fragment) position(e *pgconn.PgError) int {
	n := int(e.Position) - utf8.RuneCountInString(t.before)
	switch {
	case e.InternalPosition > 0 && e.InternalQuery == t.text:
		n = int(e.InternalPosition)
	case e.Position == 0:
		return 0
	case t.quoted:
		n = unquotedPosition(pg.Literal(t.text), n)
	}

	if n < 1 || n > utf8.RuneCountInString(t.text)+1 {
		return 0
	}

	return n
}

// unquotedPosition returns the position in a text for one in its [pg.Literal].
func unquotedPosition(literal string, position int) int {
	letters := []rune(literal)
	n := 1
	for i := slices.Index(letters, '\'') + 1; i < min(position-1, len(letters)); i++ {
		if i+1 < len(letters) && letters[i] == letters[i+1] && (letters[i] == '\'' || letters[i] == '\\') {
			i++
		}
		n++
	}

	return n
}
