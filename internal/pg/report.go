package pg

import (
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
)

// Report is PostgreSQL's error for SQL that a user wrote. Only the author of the SQL may see it.
type Report struct {
	Message   string `json:"message"`
	Detail    string `json:"detail"`
	Hint      string `json:"hint"`
	SQLState  string `json:"sqlstate"`
	Position  int    `json:"position"`  // in characters of the author's text, from 1; 0 if unknown
	Line      int    `json:"line"`      // line of the position, or else of the statement, from 1; 0 if unknown
	Column    int    `json:"column"`    // in characters, from 1; 0 if unknown
	Statement int    `json:"statement"` // from 1; 0 if the text is part of a statement
	Context   string `json:"context"`
}

// NewReport returns the report of an error, without its place.
func NewReport(e *pgconn.PgError) Report {
	return Report{Message: clipReport(e.Message), Detail: clipReport(e.Detail), Hint: clipReport(e.Hint),
		SQLState: e.Code, Context: clipReport(e.Where)}
}

// clipReport returns valid UTF-8 that begins a text.
func clipReport(s string) string {
	const limit = 2000

	s = strings.ToValidUTF8(s, "\uFFFD")
	if utf8.RuneCountInString(s) <= limit {
		return s
	}

	return string([]rune(s)[:limit]) + "…"
}

// LineAt returns the line and column of a position in a text, all in characters from 1. It returns
// zeros for a position outside of the text; the end is inside.
func LineAt(text string, position int) (line, column int) {
	if position < 1 || position > utf8.RuneCountInString(text)+1 {
		return 0, 0
	}

	line, column = 1, 1
	for _, r := range text {
		switch position--; {
		case position == 0:
			return line, column
		case r == '\n':
			line, column = line+1, 1
		default:
			column++
		}
	}

	return line, column
}
