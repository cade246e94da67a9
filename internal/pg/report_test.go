package pg_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/pg"
)

func TestLineAt(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		text                   string
		position, line, column int
	}{
		{"", 0, 0, 0},
		{"", 1, 1, 1},
		{"", 2, 0, 0},
		{"ab", 3, 1, 3},
		{"ab", 4, 0, 0},
		{"é\r\nüx", 3, 1, 3},
		{"é\r\nüx", 5, 2, 2},
		{"a\n", 3, 2, 1},
		{"a", -1, 0, 0},
	} {
		line, column := pg.LineAt(test.text, test.position)
		if line != test.line || column != test.column {
			t.Errorf("%q at %d: got %d:%d, want %d:%d", test.text, test.position, line, column, test.line, test.column)
		}
	}
}

func TestNewReportBoundsTexts(t *testing.T) {
	t.Parallel()

	r := pg.NewReport(&pgconn.PgError{Message: "a\xffb", Detail: strings.Repeat("é", 3000), Code: "22023", Hint: "h",
		Where: "w"})
	want := pg.Report{Message: "a\uFFFDb", Detail: strings.Repeat("é", 2000) + "…", SQLState: "22023", Hint: "h",
		Context: "w"}
	if r != want {
		t.Errorf("got %+v, want %+v", r, want)
	}
}
