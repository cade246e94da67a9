package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"strings"
	"testing"

	"github.com/socle-dev/socle/client"
)

// TestFailureShowsReport: a failure of the user's SQL shows PostgreSQL's report and where it is.
func TestFailureShowsReport(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		name, query, field, file, metadata, want string
	}{
		{"a query", "select 1;\nselect nope", "query", "",
			`{"requestId": "r", "postgres": {"message": "column \"nope\" does not exist", "detail": "", "hint": "Look.",
				"sqlstate": "42703", "position": 18, "line": 2, "column": 8, "statement": 2, "context": ""}}`,
			`socle: column "nope" does not exist (42703), in statement 2
LINE 2: select nope
               ^
HINT: Look.
`},
		{"a file, without a position", "select 1;\nselect f()", "migrations.0.sql", "a.sql",
			`{"requestId": "r", "postgres": {"message": "no", "sqlstate": "42501", "position": 0, "line": 2, "column": 0,
				"statement": 2, "context": "SQL function \"f\""}}`,
			`socle: a.sql:2: no (42501), in statement 2
CONTEXT: SQL function "f"
`},
		{"an expression", "ownr = 1", "using", "",
			`{"requestId": "r", "postgres": {"message": "column \"ownr\" does not exist", "sqlstate": "42703", "position": 1,
				"line": 1, "column": 1, "statement": 0, "hint": "Perhaps owner."}}`,
			`socle: using is wrong
column "ownr" does not exist (42703)
LINE 1: ownr = 1
        ^
HINT: Perhaps owner.
`},
	} {
		var shown strings.Builder
		f := &failure{query: test.query, file: test.file, cause: &client.Error{Code: "sql_error",
			Detail: test.field + " is wrong", Fields: []client.Field{{Name: test.field, Message: "is wrong"}},
			Metadata: json.RawMessage(test.metadata)}}
		f.print(&shown)

		if shown.String() != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, shown.String(), test.want)
		}
	}
}

// TestFailSanitizes: names of a stranger's files and words of a server don't control the terminal.
func TestFailSanitizes(t *testing.T) {
	t.Parallel()

	const hostile = "\x1b]0;title\x07"
	for _, err := range []error{
		errors.New(hostile + " has the same version"),
		&fs.PathError{Op: "open", Path: hostile, Err: fs.ErrPermission},
		&url.Error{Op: "Get", URL: "http://localhost", Err: errors.New(hostile)},
		&failure{cause: &client.Error{Detail: hostile, Fields: []client.Field{{Name: hostile, Message: hostile}},
			Metadata: json.RawMessage(`{"\u001b[2J": "\u001b[2J", "list": [{"\u001b[2J": "\u001b[2J"}]}`)},
			hints: []string{hostile}},
	} {
		var b bytes.Buffer
		fail(&b, err)
		if strings.ContainsAny(b.String(), "\x1b\x07") {
			t.Errorf("%T: got %q", err, b.String())
		}
	}
}
