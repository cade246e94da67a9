package transfer

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strconv"
	"strings"
	"time"
)

// XLSX is the format of spreadsheets (ECMA-376): an archive of XML, of which the first sheet is read.
const XLSX = "xlsx"

const (
	maxEntries = 10_000   // of an archive
	maxStrings = 16 << 20 // bytes of texts that cells share, which are kept in memory
	maxSheet   = 2 << 30  // bytes of a sheet's XML
	maxPart    = 16 << 20 // bytes of the XML of any other part that is read
)

var (
	errSheet     = errors.New("not a workbook")
	errSheetSize = errors.New("a workbook that is too large")
	errNoSheet   = errors.New("a workbook without the sheet")
)

// xlsxSource reads the rows of a sheet. Its values are text as they would be in CSV: numbers in full, dates by ISO 8601.
type xlsxSource struct {
	reader  *sheetReader
	xml     *xml.Decoder
	shared  []string
	dates   []bool // of the styles: whether numbers are moments
	old     bool   // dates are counted from 1904
	header  []string
	ended   bool
	values  []value
	line    int64
	columns int // of the first row
}

// openSheet opens the first sheet of a workbook.
func openSheet(file io.ReaderAt, size int64, name string) (*xlsxSource, error) {
	archive, err := zip.NewReader(file, size)
	if err != nil || len(archive.File) > maxEntries {
		return nil, errSheet
	}
	parts := map[string]*zip.File{}
	for _, f := range archive.File {
		parts[strings.TrimPrefix(f.Name, "/")] = f
	}
	s := &xlsxSource{}
	sheet, err := s.workbook(parts, name)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.strings(parts["xl/sharedStrings.xml"]), s.styles(parts["xl/styles.xml"])); err != nil {
		return nil, err
	}
	f, ok := parts[sheet]
	if !ok {
		return nil, errSheet
	}
	r, err := f.Open()
	if err != nil {
		return nil, errSheet
	}
	s.reader = &sheetReader{r: r, left: maxSheet, row: maxRecord}
	s.xml = xml.NewDecoder(s.reader)
	return s, nil
}

// sheetReader is XML of bounded size, of which each row is bounded too: an archive can be packed a thousandfold, and a row is
// kept whole.
type sheetReader struct {
	r         io.Reader
	left, row int64 // bytes of all, and of the present row, that may still come
	open      bool  // the last byte was <
}

func (s *sheetReader) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	s.left, s.row = s.left-int64(n), s.row-int64(n)
	switch {
	case s.left < 0:
		return 0, errSheetSize
	case s.row < 0:
		return 0, errTooLong
	case s.open && n > 0 && b[0] == '!' || bytes.Contains(b[:n], []byte("<!")): // no workbook needs a document type or CDATA
		return 0, errSheet
	}
	if n > 0 {
		s.open = b[n-1] == '<'
	}
	return n, err
}

// part reads a part of the workbook into v. A part that is not there is empty.
func part(f *zip.File, most int64, v any) error {
	if f == nil {
		return nil
	}
	r, err := f.Open()
	if err != nil {
		return errSheet
	}
	defer r.Close()
	err = xml.NewDecoder(&sheetReader{r: r, left: most, row: most}).Decode(v)
	return asSheet(err)
}

// asSheet makes every failure to read XML but those of size one.
func asSheet(err error) error {
	if err == nil || errors.Is(err, errSheetSize) || errors.Is(err, errTooLong) {
		return err
	}
	return errSheet
}

// workbook finds the part of the sheet of a name, whatever its case, or of the first one.
func (s *xlsxSource) workbook(parts map[string]*zip.File, name string) (string, error) {
	var book struct {
		Properties struct {
			Date1904 bool `xml:"date1904,attr"`
		} `xml:"workbookPr"`
		Sheets []struct {
			Name string `xml:"name,attr"`
			ID   string `xml:"http://schemas.openxmlformats.org/officeDocument/2006/relationships id,attr"`
		} `xml:"sheets>sheet"`
	}
	var links struct {
		All []struct {
			ID     string `xml:"Id,attr"`
			Target string `xml:"Target,attr"`
		} `xml:"Relationship"`
	}
	if parts["xl/workbook.xml"] == nil {
		return "", errSheet
	}
	if err := errors.Join(part(parts["xl/workbook.xml"], maxPart, &book), part(parts["xl/_rels/workbook.xml.rels"], maxPart, &links)); err != nil {
		return "", err
	}
	s.old = book.Properties.Date1904
	wanted := 0
	for wanted < len(book.Sheets) && name != "" && !strings.EqualFold(book.Sheets[wanted].Name, name) {
		wanted++
	}
	if name != "" && wanted == len(book.Sheets) {
		return "", errNoSheet
	}
	for _, l := range links.All {
		if wanted < len(book.Sheets) && l.ID == book.Sheets[wanted].ID {
			if strings.HasPrefix(l.Target, "/") {
				return l.Target[1:], nil
			}
			return path.Join("xl", l.Target), nil
		}
	}
	return "", errSheet
}

// text is what a cell or a shared text says, in one piece or in runs of different looks.
type text struct {
	Plain string `xml:"t"`
	Runs  []struct {
		Text string `xml:"t"`
	} `xml:"r"`
}

func (t text) String() string {
	all := t.Plain
	for _, r := range t.Runs {
		all += r.Text
	}
	return all
}

func (s *xlsxSource) strings(f *zip.File) error {
	var table struct {
		Items []text `xml:"si"`
	}
	if err := part(f, maxStrings, &table); err != nil {
		return err
	}
	for _, item := range table.Items {
		s.shared = append(s.shared, item.String())
	}
	return nil
}

// styles finds which styles show numbers as dates or times.
func (s *xlsxSource) styles(f *zip.File) error {
	var sheet struct {
		Formats []struct {
			ID   int    `xml:"numFmtId,attr"`
			Code string `xml:"formatCode,attr"`
		} `xml:"numFmts>numFmt"`
		Cells []struct {
			Format int `xml:"numFmtId,attr"`
		} `xml:"cellXfs>xf"`
	}
	if err := part(f, maxPart, &sheet); err != nil {
		return err
	}
	custom := map[int]bool{}
	for _, format := range sheet.Formats {
		custom[format.ID] = isMoment(format.Code)
	}
	for _, c := range sheet.Cells {
		s.dates = append(s.dates, custom[c.Format] || c.Format >= 14 && c.Format <= 22 || c.Format >= 45 && c.Format <= 47)
	}
	return nil
}

// isMoment reports whether a format has a year, month, day, hour or second outside of quotes and brackets.
func isMoment(code string) bool {
	quoted, bracketed := false, false
	for i := 0; i < len(code); i++ {
		switch c := code[i]; {
		case c == '\\' || c == '_' || c == '*':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[':
			bracketed = true
		case c == ']':
			bracketed = false
		case !bracketed && strings.IndexByte("yYmMdDhHsS", c) >= 0:
			return true
		}
	}
	return false
}

func (s *xlsxSource) names() []string { return s.header }

// cell is a cell of a row as the sheet has it.
type cell struct {
	Ref    string  `xml:"r,attr"`
	Type   string  `xml:"t,attr"`
	Style  int     `xml:"s,attr"`
	Value  *string `xml:"v"`
	Inline *text   `xml:"is"`
}

func (s *xlsxSource) next() (row, error) {
	for !s.ended {
		token, err := s.xml.Token()
		if err != nil { // the end of the file, too, comes too early
			return row{}, asSheet(err)
		}
		if end, ok := token.(xml.EndElement); ok && end.Name.Local == "sheetData" {
			s.ended = true
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "row" {
			continue
		}
		s.line++
		for _, a := range start.Attr {
			if n, err := strconv.ParseInt(a.Value, 10, 64); a.Name.Local == "r" && err == nil {
				s.line = n
			}
		}
		r, err := s.row()
		if err != nil || r.bad != nil || len(r.values) > 0 { // an empty row is none
			return r, err
		}
	}
	return row{}, io.EOF
}

// row reads the cells up to the end of a row. Cells that are left out are null, those at the end too.
func (s *xlsxSource) row() (row, error) {
	r := row{line: s.line}
	s.values = s.values[:0]
	s.reader.row = maxRecord
	filled := false
	for {
		token, err := s.xml.Token()
		if err != nil {
			return r, asSheet(err)
		}
		if end, ok := token.(xml.EndElement); ok && end.Name.Local == "row" {
			break
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "c" {
			continue
		}
		var c cell
		if err := s.xml.DecodeElement(&c, &start); err != nil {
			return r, asSheet(err)
		}
		at := len(s.values)
		if c.Ref != "" {
			at = columnOf(c.Ref)
		}
		if at < len(s.values) || at > maxColumns {
			r.bad = &Rejected{Line: r.line, Code: "ragged", Message: "has cells out of order, or too many"}
			continue
		}
		for len(s.values) < at {
			s.values = append(s.values, value{null: true})
		}
		v := s.value(c)
		filled = filled || !v.null
		s.values = append(s.values, v)
	}
	if !filled {
		return row{}, nil
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

// columnOf returns the place, from 0, of the column that a reference such as AB12 names.
func columnOf(ref string) int {
	n := 0
	for i := 0; i < len(ref) && ref[i] >= 'A' && ref[i] <= 'Z' && n <= maxColumns; i++ {
		n = n*26 + int(ref[i]-'A') + 1
	}
	return n - 1
}

func (s *xlsxSource) value(c cell) value {
	if c.Inline != nil {
		return value{text: []byte(c.Inline.String())}
	}
	if c.Value == nil || *c.Value == "" || c.Type == "e" { // an error of a formula is no value
		return value{null: true}
	}
	v := *c.Value
	switch c.Type {
	case "s":
		if i, err := strconv.Atoi(v); err == nil && i >= 0 && i < len(s.shared) {
			return value{text: []byte(s.shared[i])}
		}
		return value{null: true}
	case "b":
		return value{text: []byte(strconv.FormatBool(v == "1"))}
	case "str", "inlineStr", "d":
		return value{text: []byte(v)}
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return value{text: []byte(v)}
	}
	if c.Style >= 0 && c.Style < len(s.dates) && s.dates[c.Style] {
		return value{text: []byte(s.moment(f))}
	}
	return value{text: strconv.AppendFloat(nil, f, 'f', -1, 64)}
}

// moment returns the date or time that a number of days means.
func (s *xlsxSource) moment(days float64) string {
	epoch := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	switch {
	case s.old:
		epoch = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	case days < 61: // there was no 29 February 1900, which spreadsheets believe in
		epoch = epoch.AddDate(0, 0, 1)
	}
	if days < 0 || days > 2_958_466 { // the year 10000
		return fmt.Sprint(days)
	}
	t := epoch.AddDate(0, 0, int(days)).Add(time.Duration(math.Round((days-math.Floor(days))*86400)) * time.Second)
	switch {
	case days < 1:
		return t.Format(time.TimeOnly)
	case t.Equal(t.Truncate(24 * time.Hour)):
		return t.Format(time.DateOnly)
	}
	return t.Format("2006-01-02 15:04:05")
}
