package rest

import (
	"errors"
	"io"
	"net/http"

	"github.com/socle-dev/socle/internal/rest/plan"
)

// csvBody is a CSV body with a header line.
type csvBody struct {
	text  []byte
	names []string // column names without duplicates, in order
}

// readCSV reads the header line. It refuses lines with more fields than a table can have columns.
func readCSV(text []byte) (*csvBody, error) {
	if exceedsMaxFields(text) {
		return nil, newError(http.StatusBadRequest, "PGRST102", "A line has more fields than a table can have columns")
	}

	first, err := newCSVReader(text).Read()
	if errors.Is(err, io.EOF) {
		return &csvBody{}, nil
	}
	if err != nil {
		return nil, invalidCSV(err)
	}

	b := &csvBody{text: text}
	seen := make(map[string]bool, len(first))
	for _, f := range first {
		if !seen[f.text] {
			seen[f.text] = true
			b.names = append(b.names, f.text)
		}
	}

	return b, nil
}

// exceedsMaxFields reports whether a line has more than plan.MaxNames fields. For invalid CSV it
// may report either.
func exceedsMaxFields(text []byte) bool {
	fields, quoted := 1, false
	for _, c := range text {
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '\n':
			fields = 1
		case c == ',':
			if fields++; fields > plan.MaxNames {
				return true
			}
		}
	}

	return false
}

// csvTarget says how rows are converted: for columns of a relation, or parameters of a function.
type csvTarget struct {
	keep      func(name string) bool // accepts a column
	emptyNull func(name string) bool // an empty field without quotes is null
	firstOnly bool                   // only the first row is converted, but all are checked
}

// json returns the rows as a JSON array of objects of at most maxSize bytes. Values are strings:
// null is NULL without quotes, and where the target says so an empty field without quotes.
func (b *csvBody) json(to csvTarget, maxSize int64) ([]byte, error) {
	if b.names == nil {
		return []byte("[]"), nil
	}

	columns, width, err := b.columns(to)
	if err != nil {
		return nil, err
	}

	size, err := b.measure(columns, width, to.firstOnly)
	if err != nil {
		return nil, err
	}

	if size > maxSize {
		e := newError(http.StatusRequestEntityTooLarge, "PGRST102", "The rows are too large")
		e.Details = "As JSON they have " + formatInt(size) + " bytes, of at most " + formatInt(maxSize) + "."
		e.Hint = "Send fewer rows at a time, or JSON."

		return nil, e
	}

	in := newCSVReader(b.text)
	_, _ = in.Read()
	out := append(make([]byte, 0, size), '[')
	for {
		row, err := in.Read()
		if err != nil || (to.firstOnly && len(out) > 1) { // EOF: measure has checked the rows
			return append(out, ']'), nil
		}

		if len(out) > 1 {
			out = append(out, ',')
		}

		out = append(out, '{')
		for i, c := range columns {
			if i > 0 {
				out = append(out, ',')
			}

			out = append(out, c.member...)
			if f := &row[c.index]; c.isNull(f) {
				out = append(out, "null"...)
			} else {
				out = appendJSON(out, f.text)
			}
		}

		out = append(out, '}')
	}
}

// csvColumn is a column of the JSON rows.
type csvColumn struct {
	index     int    // index of its field
	member    []byte // JSON name and colon
	emptyNull bool   // an empty field without quotes is null
}

func (c *csvColumn) isNull(f *csvField) bool {
	return !f.quoted && (f.text == "NULL" || (f.text == "" && c.emptyNull))
}

// columns returns the accepted columns and the minimum fields of a line. Of columns with equal
// names the last wins.
func (b *csvBody) columns(to csvTarget) (columns []csvColumn, width int, err error) {
	header, err := newCSVReader(b.text).Read()
	if err != nil {
		return nil, 0, invalidCSV(err)
	}

	last := make(map[string]int, len(header))
	for i, f := range header {
		last[f.text] = i
	}

	for i, f := range header {
		if last[f.text] == i && to.keep(f.text) {
			columns = append(columns, csvColumn{i, append(appendJSON(nil, f.text), ':'), to.emptyNull(f.text)})
		}
	}

	return columns, len(header), nil
}

// measure checks the rows and returns the size of their JSON in bytes, or slightly more.
func (b *csvBody) measure(columns []csvColumn, width int, firstOnly bool) (size int64, err error) {
	fixed := int64(len("{},"))
	for _, c := range columns {
		fixed += int64(len(c.member) + len(","))
	}

	in := newCSVReader(b.text)
	_, _ = in.Read()

	var cell []byte
	size = int64(len("[]"))
	for n := 0; ; n++ {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil {
			return 0, invalidCSV(err)
		}

		if len(row) < width {
			return 0, newError(http.StatusBadRequest, "PGRST102", "All lines must have same number of fields")
		}
		if firstOnly && n > 0 {
			continue
		}

		size += fixed
		for _, c := range columns {
			cell = appendJSON(cell[:0], row[c.index].text)
			size += int64(len(cell))
		}
	}
}

func invalidCSV(err error) error {
	e := newError(http.StatusBadRequest, "PGRST102", "Empty or invalid csv")
	e.Details = err.Error()

	return e
}
