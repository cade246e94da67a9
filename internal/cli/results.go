package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/socle-dev/socle/client"
)

// answer is the response to SQL.
type answer struct {
	Results []struct {
		Command   string
		Columns   []struct{ Name, Type string }
		Rows      [][]any
		RowCount  *int64
		Truncated bool
	}
	Notes      []sqlNote
	DurationMs float64
}

// sqlNote is what a project has left out or changed of SQL.
type sqlNote struct {
	Version string // version of a migration
	Line    int
	Text    string
}

// printSQLNotes prints notes on the texts of files. path returns the path of a note's file. Notes
// of one file with one text are one line.
func printSQLNotes(w io.Writer, notes []sqlNote, path func(sqlNote) string) {
	type place struct{ path, text string }
	var places []place
	lines := map[place][]int{}
	for _, n := range notes {
		p := place{path(n), n.Text}
		if lines[p] == nil {
			places = append(places, p)
		}
		lines[p] = append(lines[p], n.Line)
	}

	for _, p := range places {
		const shown = 5
		all := make([]string, 0, shown+1)
		for _, n := range lines[p][:min(shown, len(lines[p]))] {
			all = append(all, strconv.Itoa(n))
		}
		if more := len(lines[p]) - shown; more > 0 {
			all = append(all, fmt.Sprintf("+%d", more))
		}

		fmt.Fprintf(w, "note: %s:%s: %s\n", sanitize(p.path), strings.Join(all, ","), sanitize(p.text))
	}
}

// numeric are the types whose values are aligned to the right.
var numeric = []string{"smallint", "integer", "bigint", "numeric", "real", "double precision", "oid", "money"}

// printResults prints the results of SQL one under the other, and its notes to errs. Rows are
// printed as cards if cards is set.
func printResults(w, errs io.Writer, reply *client.Reply, cards, timing bool) error {
	var a answer
	if err := unmarshal(reply.Content, &a); err != nil {
		return err
	}

	printSQLNotes(errs, a.Notes, func(sqlNote) string { return "line" })

	for i, r := range a.Results {
		if r.Command == "" && len(r.Columns) == 0 { // left out: a note says why
			continue
		}
		if i > 0 && (len(r.Columns) > 0 || len(a.Results[i-1].Columns) > 0) {
			fmt.Fprintln(w)
		}

		if len(r.Columns) == 0 {
			fmt.Fprintln(w, r.Command)
			continue
		}

		g := grid{lined: true, cards: cards}
		for _, c := range r.Columns {
			name, _, _ := strings.Cut(c.Type, "(")
			g.heads = append(g.heads, sanitize(c.Name))
			g.numbers = append(g.numbers, slices.Contains(numeric, name))
		}

		for _, values := range r.Rows {
			row := make([]string, len(values))
			for n, v := range values {
				row[n] = sqlText(v)
			}

			g.rows = append(g.rows, row)
		}

		if err := g.print(w); err != nil {
			return err
		}

		fmt.Fprintln(w, rowCount(len(r.Rows), r.RowCount, r.Truncated))
	}

	if timing {
		fmt.Fprintf(w, "Time: %.3f ms\n", a.DurationMs)
	}

	return nil
}

func rowCount(shown int, all *int64, truncated bool) string {
	switch {
	case truncated && all != nil:
		return fmt.Sprintf("(%d of %d rows; more with --max-rows)", shown, *all)
	case truncated:
		return fmt.Sprintf("(the first %d rows; more with --max-rows)", shown)
	case shown == 1:
		return "(1 row)"
	}

	return fmt.Sprintf("(%d rows)", shown)
}

// sqlText formats a value of PostgreSQL. NULL differs from the text NULL and from an empty text,
// which are quoted.
func sqlText(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case string:
		if v == "" || v == "NULL" {
			return `"` + v + `"`
		}
		return sanitize(v)
	case json.Number:
		return v.String()
	}

	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}

	return sanitize(string(text))
}

// unmarshal decodes JSON with exact numbers.
func unmarshal(text json.RawMessage, v any) error {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()

	return d.Decode(v)
}
