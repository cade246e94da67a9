package transfer

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/socle-dev/socle/internal/fault"
)

// XLSX is ECMA-376's workbook format: a zip archive with XML.
const XLSX = "xlsx"

// xlsxSource reads a sheet's rows. Values are text as in CSV: full numbers, and dates in ISO 8601.
type xlsxSource struct {
	*workbook
	reader  *markupReader
	xml     *xml.Decoder
	header  []string
	ended   bool
	values  []value
	line    int64
	columns int  // in the first row
	skipped *row // read by skipTo, returned next

	errors      int64 // cells with an error, which became null
	hiddenRows  int64 // imported all the same
	hiddenParts []string
}

// openSheet opens the sheet with a name, or the first sheet. Reading ends with ctx.
func openSheet(ctx context.Context, file io.ReaderAt, size int64, name string) (*xlsxSource, error) {
	w, err := openWorkbook(ctx, file, size, name)
	if err != nil {
		return nil, err
	}

	r, err := w.sheet.Open()
	if err != nil {
		return nil, errWorkbook
	}

	s := &xlsxSource{workbook: w, reader: &markupReader{ctx: ctx, r: r, remaining: maxSheet, rowRemaining: maxRecord}}
	s.xml = xml.NewDecoder(s.reader)

	return s, nil
}

func (s *xlsxSource) names() []string { return s.header }

// cell is a sheet's raw cell.
type cell struct {
	ref, kind string
	style     int
	value     []byte // text in v, or in is if present
	inline    bool
	formula   bool
	hasValue  bool // has v
}

// cell reads the cell whose start was just read.
func (s *xlsxSource) cell(start xml.StartElement) (c cell, err error) {
	c.ref, c.kind = attribute(start, "", "r"), attribute(start, "", "t")
	if style := attribute(start, "", "s"); style != "" {
		if c.style, err = strconv.Atoi(style); err != nil {
			return c, errWorkbook
		}
	}

	depth, inValue := 0, false
	for {
		token, err := s.xml.Token()
		if err != nil {
			return c, translateXMLError(err)
		}

		switch token := token.(type) {
		case xml.StartElement:
			switch name := token.Name.Local; {
			case depth == 0 && name == "is":
				if c.value, err = appendText(nil, s.xml); err != nil {
					return c, err
				}

				c.inline = true
				continue
			case depth == 0 && name == "v":
				inValue, c.hasValue = true, true
			case depth == 0 && name == "f":
				c.formula = true
			}

			depth++
		case xml.EndElement:
			if depth == 0 {
				return c, nil
			}

			depth--
			inValue = inValue && depth > 0
		case xml.CharData:
			if inValue && depth == 1 && !c.inline {
				c.value = append(c.value, token...)
			}
		}
	}
}

// skipTo skips the rows before a line. It fails with errNoLine if the sheet ends before it.
func (s *xlsxSource) skipTo(line int64) error {
	for line > 0 {
		r, err := s.next()
		switch {
		case err == io.EOF:
			return errNoLine
		case err != nil:
			return err
		case r.line >= line:
			s.skipped = &r
			return nil
		}
		s.columns = 0 // a title has fewer columns
	}

	return nil
}

func (s *xlsxSource) next() (row, error) {
	if r := s.skipped; r != nil {
		s.skipped = nil
		return *r, nil
	}

	for !s.ended {
		token, err := s.xml.Token()
		if err != nil { // also if the file ends early
			return row{}, translateXMLError(err)
		}

		if end, ok := token.(xml.EndElement); ok && end.Name.Local == "sheetData" {
			s.ended = true
		}

		start, ok := token.(xml.StartElement)
		if ok && start.Name.Local == "col" {
			s.noteColumns(start)
		}
		if !ok || start.Name.Local != "row" {
			continue
		}

		s.line++
		if n, err := strconv.ParseInt(attribute(start, "", "r"), 10, 64); err == nil {
			s.line = n
		}

		r, err := s.row()
		if isTrue(attribute(start, "", "hidden")) && err == nil && len(r.values) > 0 {
			s.hiddenRows++
		}
		if err != nil || r.bad != nil || len(r.values) > 0 { // empty rows are skipped
			return r, err
		}
	}

	return row{}, io.EOF
}

// row reads a row's cells to the end. Missing cells are null, also at the end.
func (s *xlsxSource) row() (row, error) {
	r := row{line: s.line}
	s.values = s.values[:0]
	s.reader.rowRemaining = maxRecord
	filled := false
	for {
		token, err := s.xml.Token()
		if err != nil {
			return r, translateXMLError(err)
		}

		if end, ok := token.(xml.EndElement); ok && end.Name.Local == "row" {
			break
		}

		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "c" {
			continue
		}

		c, err := s.cell(start)
		if err != nil {
			return r, err
		}

		filled = filled || len(c.value) > 0 || c.inline || c.formula
		if bad := s.add(c); bad != nil && r.bad == nil {
			r.bad = bad
			r.bad.Line = r.line
		}
	}

	if !filled || r.bad != nil {
		return r, nil
	}

	if s.columns == 0 {
		s.columns = len(s.values)
	}

	for len(s.values) < s.columns {
		s.values = append(s.values, value{null: true})
	}

	for len(s.values) > s.columns && s.values[len(s.values)-1].null {
		s.values = s.values[:len(s.values)-1]
	}

	r.values = s.values
	return r, nil
}

// add adds a cell's value to the row.
func (s *xlsxSource) add(c cell) *Rejected {
	v, bad := s.value(c)
	if bad != nil {
		return bad
	}

	at := len(s.values)
	if c.ref != "" {
		at = columnOf(c.ref)
	}

	if at < len(s.values) || at > maxColumns {
		if v.null { // an empty cell, as in a formatted row
			return nil
		}

		return &Rejected{Code: "ragged", Message: fmt.Sprintf("has a cell out of place: %q", fault.Clip(c.ref))}
	}

	for len(s.values) < at {
		s.values = append(s.values, value{null: true})
	}

	s.values = append(s.values, v)
	return nil
}

// columnOf returns the column index, from 0, in a reference such as AB12.
func columnOf(ref string) int {
	n := 0
	for i := 0; i < len(ref) && ref[i] >= 'A' && ref[i] <= 'Z' && n <= maxColumns; i++ {
		n = n*26 + int(ref[i]-'A') + 1
	}

	return n - 1
}

// value returns a cell's value, or why there is none.
func (s *xlsxSource) value(c cell) (value, *Rejected) {
	if c.inline {
		return value{text: c.value}, nil
	}
	if c.formula && (!c.hasValue || len(c.value) == 0 && c.kind != "str") { // some libraries write an empty v
		return value{}, &Rejected{Code: "formula_without_result",
			Message: "has a formula whose result is not in the file: open and save it in a spreadsheet program, or replace " +
				"the formula by its value"}
	}
	if c.kind == "e" {
		s.errors++
		return value{null: true}, nil
	}
	if len(c.value) == 0 {
		return value{null: !c.formula}, nil // a formula's result can be empty text
	}

	v := string(c.value)
	switch c.kind {
	case "s":
		i, err := strconv.Atoi(v)
		if text, ok := s.shared.at(i); err == nil && ok {
			return value{text: text}, nil
		}

		return value{}, &Rejected{Code: "malformed",
			Message: fmt.Sprintf("has a cell with the shared text %q, which the workbook does not have", fault.Clip(v))}
	case "b":
		if b, err := strconv.ParseBool(v); err == nil {
			return value{text: strconv.AppendBool(nil, b)}, nil
		}

		return value{text: c.value}, nil
	case "str", "inlineStr", "d":
		return value{text: c.value}, nil
	}

	f, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return value{text: c.value}, nil
	}

	format := numberFormat{}
	if c.style >= 0 && c.style < len(s.formats) {
		format = s.formats[c.style]
	}

	switch {
	case format.elapsed:
		return value{text: []byte(elapsedTime(f))}, nil
	case format.date:
		return value{text: []byte(s.dateTime(f))}, nil
	case format.mask != "" && f >= 0 && f == math.Trunc(f) && f < 1e15:
		return value{text: format.apply(int64(f))}, nil
	case len(v) > 15 && allDigits(c.value): // more digits than a floating-point number has
		return value{text: c.value, kind: '0'}, nil
	}

	return value{text: strconv.AppendFloat(nil, f, 'f', -1, 64), kind: '0'}, nil
}

// dateTime returns the date or time for a serial number of days, to the millisecond, which is
// spreadsheets' precision.
func (s *xlsxSource) dateTime(days float64) string {
	epoch := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	switch {
	case s.date1904:
		epoch = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	case days < 61: // spreadsheets count a nonexistent 29 February 1900
		epoch = epoch.AddDate(0, 0, 1)
	}

	if days < 0 || days > 2_958_466 { // the year 10000
		return fmt.Sprint(days)
	}

	t := epoch.AddDate(0, 0, int(days)).
		Add(time.Duration(math.Round((days-math.Floor(days))*86_400_000)) * time.Millisecond)
	switch {
	case days < 1:
		return t.Format("15:04:05.999")
	case t.Equal(t.Truncate(24 * time.Hour)):
		return t.Format(time.DateOnly)
	}

	return t.Format("2006-01-02 15:04:05.999")
}

// noteColumns records the hidden columns that an element describes.
func (s *xlsxSource) noteColumns(start xml.StartElement) {
	first, last := attribute(start, "", "min"), attribute(start, "", "max")
	if !isTrue(attribute(start, "", "hidden")) || len(s.hiddenParts) == maxNamedSheets {
		return
	}

	part := "column " + columnLetters(first)
	if first != last {
		part = "columns " + columnLetters(first) + " to " + columnLetters(last)
	}
	s.hiddenParts = append(s.hiddenParts, part)
}

// notes tells which sheet was read, and what a person who looks at it does not see.
func (s *xlsxSource) notes() []Note {
	var notes []Note
	if len(s.others) > 0 {
		notes = append(notes, Note{Code: "other_sheets", Message: "the sheet " + quote(s.name) +
			" was imported; import others with sheet: " + strings.Join(s.others, ", ")})
	}

	hidden := s.hiddenParts
	if s.hiddenRows > 0 {
		hidden = append(hidden, fmt.Sprintf("%d rows", s.hiddenRows))
	}
	if len(hidden) > 0 {
		notes = append(notes, Note{Code: "hidden_parts",
			Message: "parts of the sheet that are hidden were imported: " + strings.Join(hidden, ", ")})
	}
	if s.errors > 0 {
		notes = append(notes, Note{Code: "errors_as_null",
			Message: fmt.Sprintf("%d cells with an error such as #N/A became null", s.errors)})
	}

	return notes
}

func isTrue(text string) bool { return text == "1" || text == "true" }
