package transfer

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/fault"
)

// survey has what a whole file says about its columns, before the first row is stored.
type survey struct {
	headers []string
	columns []*facts // by position; fewer than headers if all rows are shorter
	widths  map[int]width
	bad     *Rejected // the first rejected row
	source  source
	options Options // with the file's delimiter
}

// width counts the rows that have a certain number of values.
type width struct {
	rows  int64
	first int64 // line
}

// readFile surveys a file.
func readFile(ctx context.Context, file io.ReadSeeker, o Options) (*survey, error) {
	s, err := rewind(ctx, file, o, nil)
	if err != nil {
		return nil, err
	}

	v := &survey{headers: s.names(), widths: map[int]width{}, source: s, options: o}
	if c, ok := s.(*csvSource); ok {
		v.options.Delimiter = c.delimiter
	}

	for n := 0; ; n++ {
		r, err := s.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, translateFileError(err)
		}
		if n%batchRows == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}

		v.add(r, o.Format == JSONL)
	}

	if o.Format == JSONL {
		v.headers = s.names()
	}

	return v, nil
}

// add surveys a row. Rows that the import will reject say nothing about types.
func (v *survey) add(r row, growing bool) {
	v.bad = cmp.Or(v.bad, r.bad)
	if r.bad != nil && !growing {
		return
	}

	if !growing {
		if v.headers == nil { // the first row determines the number of columns
			v.headers = make([]string, len(r.values))
		}

		if w, ok := v.widths[len(r.values)]; ok || len(v.widths) < maxColumns {
			v.widths[len(r.values)] = width{rows: w.rows + 1, first: cmp.Or(w.first, r.line)}
		}
	}

	for i := len(v.columns); i < len(r.values) && (growing || i < len(v.headers)); i++ {
		v.columns = append(v.columns, newFacts())
	}

	if r.bad != nil || (!growing && len(r.values) != len(v.headers)) {
		return
	}

	for i, value := range r.values {
		v.columns[i].add(value)
	}
}

// check fails if the file has no columns, or more than a table can have.
func (v *survey) check() error {
	switch {
	case len(v.headers) == 0 && v.bad != nil:
		return v.bad.fatal(nil, 0)
	case len(v.headers) == 0:
		return emptyFile()
	case len(v.headers) > maxColumns:
		return fault.OnField(fault.Unprocessable, "file", "too_many", "has more than %d columns", maxColumns)
	}

	return nil
}

// headerHint suggests a line with column names if most rows have more values than the header: a
// title often stands above the names. It suggests a delimiter if no row has as many as the header.
func (v *survey) headerHint() string {
	var most width
	for n, w := range v.widths {
		if n > len(v.headers) && w.rows > max(most.rows, v.widths[len(v.headers)].rows) {
			most = w
		}
	}
	switch {
	case !v.options.Header:
		return ""
	case most.rows == 0 && v.options.Format == CSV && len(v.widths) > 0 && v.widths[len(v.headers)].rows == 0:
		return fmt.Sprintf("; if another character than %q separates the values, import with delimiter",
			v.options.Delimiter)
	case most.rows == 0:
		return ""
	}

	return fmt.Sprintf("; if line %d has the names of the columns, import with header_line=%d", most.first, most.first)
}

// newColumns returns a new table's columns, each with the narrowest type for its values.
func (v *survey) newColumns() (columns []ImportedColumn, notes []Note) {
	var all []*facts
	for _, f := range v.columns {
		if !f.noNumber || !f.noDate {
			all = append(all, f)
		}
	}
	file := evidenceOf(all)

	columns = make([]ImportedColumn, len(v.headers))
	for i, name := range columnNames(v.headers) {
		columns[i] = ImportedColumn{Name: name, Header: v.headers[i], Type: "text"}
		if i >= len(v.columns) {
			continue
		}

		f := v.columns[i]
		n, d := f.numberReading(file, v.options), f.dateReading(file)
		columns[i].Type, columns[i].numbers, columns[i].dates = f.typeIn(n, d), n, d
		columns[i].number, columns[i].date = isNumberType(columns[i].Type), isDateType(columns[i].Type)
		notes = appendNote(notes, f.note(columns[i], n, d))
	}

	return columns, notes
}

// setReadings sets how the file's numbers and dates are read into existing columns.
func (v *survey) setReadings(columns []ImportedColumn) (notes []Note) {
	var all []*facts
	for i, c := range columns {
		if i < len(v.columns) && (c.number || c.date) {
			all = append(all, v.columns[i])
		}
	}
	file := evidenceOf(all)

	for i := range columns {
		c := &columns[i]
		if i >= len(v.columns) || (!c.number && !c.date) {
			continue
		}

		f := v.columns[i]
		c.numbers, c.dates = f.numberReading(file, v.options), f.dateReading(file)
		notes = appendNote(notes, f.note(*c, c.numbers, c.dates))
	}

	return notes
}

// evidence is the set of readings that a file's values require.
type evidence [readings]bool

// evidenceOf collects evidence from columns.
func evidenceOf(columns []*facts) evidence {
	var e evidence
	for _, f := range columns {
		for r, found := range f.evidence {
			e[r] = e[r] || found
		}
	}

	return e
}

// either returns the only reading among the two for which there is evidence.
func (e evidence) either(a, b reading) reading {
	switch {
	case e[a] && !e[b]:
		return a
	case e[b] && !e[a]:
		return b
	}

	return eachAlone
}

// numberReading returns how a column's numbers are read: by decimal, by evidence in the column or
// in the file, or by the delimiter: files with decimal commas have semicolons.
func (f *facts) numberReading(file evidence, o Options) reading {
	own := evidence(f.evidence)
	switch r := own.either(pointFirst, commaFirst); {
	case o.Decimal != "":
		return decimalReadings[o.Decimal]
	case r != eachAlone:
		return r
	case own[pointFirst]: // and commas
		return eachAlone
	}

	if r := file.either(pointFirst, commaFirst); r != eachAlone {
		return r
	}
	if !f.comma && !f.blank && (o.Format == TSV || o.Format == CSV && o.Delimiter == ',') {
		return pointFirst
	}

	return eachAlone
}

// dateReading returns how a column's dates are read: by evidence in the column or in the file.
func (f *facts) dateReading(file evidence) reading {
	own := evidence(f.evidence)
	if r := own.either(dayFirst, monthFirst); r != eachAlone || own[dayFirst] {
		return r
	}

	return file.either(dayFirst, monthFirst)
}

// note tells how a column's numbers or dates are read, or why they stay text.
func (f *facts) note(c ImportedColumn, n, d reading) *Note {
	switch {
	case c.Type == "text" && f.shortYear != "" && !f.noDate:
		return c.note("unclear_dates", "stays text, since "+quote(f.shortYear)+
			" has a year of two digits; write dates as 2026-12-31")
	case c.Type == "text" && f.unclear != "" && !f.noDate:
		return c.note("unclear_dates", "stays text, since "+quote(f.unclear)+
			" can be read day first or month first; write dates as 2026-12-31")
	case c.Type == "text" && (f.unclear != "" || f.blank) && !f.noNumber:
		return c.note("unclear_numbers", "stays text, since "+quote(cmp.Or(f.unclear, "12 345"))+
			" can be read in several ways; import with decimal=comma or decimal=point")
	case c.number && n == commaFirst && (f.evidence[commaFirst] || f.unclear != ""):
		return c.note("decimal_comma", "has its numbers read with a decimal comma: 1.234,5 is 1234.5")
	case c.date && f.local && d == dayFirst:
		return c.note("day_first", "has its dates read day first: 01.02.2026 is 2026-02-01")
	case c.date && f.local && d == monthFirst:
		return c.note("month_first", "has its dates read month first: 01/02/2026 is 2026-01-02")
	}

	return nil
}

func (c ImportedColumn) note(code, message string) *Note {
	return &Note{Column: &c.Name, Code: code, Message: message}
}

func appendNote(notes []Note, n *Note) []Note {
	if n == nil {
		return notes
	}
	return append(notes, *n)
}

func quote(text string) string { return fmt.Sprintf("%q", fault.Clip(text)) }

func isNumberType(name string) bool {
	return slices.Contains([]string{"integer", "bigint", "numeric"}, name)
}

func isDateType(name string) bool { return name == "date" || strings.HasPrefix(name, "timestamp") }
