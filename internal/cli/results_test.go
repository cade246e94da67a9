package cli

import (
	"strings"
	"testing"
)

// TestPrintSQLNotes: notes with one text are one line, which counts those that it does not name.
func TestPrintSQLNotes(t *testing.T) {
	t.Parallel()

	var b strings.Builder
	printSQLNotes(&b, []sqlNote{{"1", 2, "a"}, {"1", 3, "b"}, {"1", 4, "a"}, {"2", 5, "a\x1b"}, {"1", 6, "a"},
		{"1", 7, "a"}, {"1", 8, "a"}, {"1", 9, "a"}}, func(n sqlNote) string { return n.Version + ".sql" })

	const want = "note: 1.sql:2,4,6,7,8,+1: a\nnote: 1.sql:3: b\nnote: 2.sql:5: a�\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}
