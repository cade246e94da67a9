package transfer

import (
	"archive/zip"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"path"
	"strconv"
	"strings"
)

const (
	maxDirectory = 2 << 20  // bytes in an archive's directory
	maxSheet     = 2 << 30  // bytes in a sheet's XML
	maxPart      = 16 << 20 // bytes in any other part's XML
	maxTag       = 64 << 10 // bytes in a tag, whose attributes the parser buffers
	maxDepth     = 100      // nested elements
)

// Variables only because tests lower them.
var (
	maxStrings uint64 = 16 << 20  // bytes in shared strings' XML, which stay in memory
	maxShared         = 2_000_000 // shared strings
	maxStyles         = 100_000   // cell styles; spreadsheets allow up to 64,000
)

var (
	errWorkbook = errors.New("malformed workbook")
	errTooLarge = errors.New("workbook is too large")
	errNoSheet  = errors.New("sheet not found in workbook")
)

// workbook has the workbook parts on which a sheet's rows depend.
type workbook struct {
	sheet    *zip.File
	name     string   // sheet name
	others   []string // the other sheets' names, the hidden ones marked
	shared   sharedStrings
	formats  []numberFormat // by style
	date1904 bool           // dates count from 1904
}

// openArchive reads a workbook archive's directory.
func openArchive(file io.ReaderAt, size int64) (map[string]*zip.File, error) {
	r := &directoryReader{r: file, remaining: maxDirectory}
	archive, err := zip.NewReader(r, size)
	r.opened = true
	if errors.Is(err, errTooLarge) {
		return nil, err
	}
	if err != nil {
		return nil, errWorkbook
	}

	parts := make(map[string]*zip.File, len(archive.File))
	for _, f := range archive.File {
		parts[strings.TrimPrefix(f.Name, "/")] = f
	}

	return parts, nil
}

// directoryReader bounds the bytes that zip.NewReader reads from an archive.
type directoryReader struct {
	r         io.ReaderAt
	remaining int // bytes
	opened    bool
}

func (d *directoryReader) ReadAt(b []byte, at int64) (int, error) {
	if !d.opened {
		if d.remaining -= len(b); d.remaining < 0 {
			return 0, errTooLarge
		}
	}

	return d.r.ReadAt(b, at)
}

// openWorkbook reads a workbook except for its rows.
func openWorkbook(ctx context.Context, file io.ReaderAt, size int64, name string) (*workbook, error) {
	parts, err := openArchive(file, size)
	if err != nil {
		return nil, err
	}

	w := &workbook{}
	id, err := w.findSheet(ctx, parts["xl/workbook.xml"], name)
	if err != nil {
		return nil, err
	}

	target, err := relationshipTarget(ctx, parts["xl/_rels/workbook.xml.rels"], id)
	if err != nil {
		return nil, err
	}

	if w.sheet = parts[target]; w.sheet == nil {
		return nil, errWorkbook
	}

	if err := w.shared.read(ctx, parts["xl/sharedStrings.xml"]); err != nil {
		return nil, err
	}

	return w, w.readStyles(ctx, parts["xl/styles.xml"])
}

// visitor handles an element's start; parent is the enclosing element's name. It reports whether it
// consumed the element to its end.
type visitor func(d *xml.Decoder, parent string, start xml.StartElement) (read bool, err error)

// visit passes a part's elements to a visitor. A missing part has no elements.
func visit(ctx context.Context, f *zip.File, limit int64, v visitor) error {
	if f == nil {
		return nil
	}

	r, err := f.Open()
	if err != nil {
		return errWorkbook
	}
	defer r.Close()

	limit = min(limit, int64(min(f.UncompressedSize64, maxSheet)))
	d := xml.NewDecoder(&markupReader{ctx: ctx, r: r, remaining: limit, rowRemaining: limit})
	parents := []string{""}
	for {
		token, err := d.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return translateXMLError(err)
		}

		switch token := token.(type) {
		case xml.StartElement:
			read, err := v(d, parents[len(parents)-1], token)
			if err != nil {
				return err
			}

			if !read {
				parents = append(parents, token.Name.Local)
			}
		case xml.EndElement:
			parents = parents[:len(parents)-1]
		}
	}
}

// translateXMLError maps XML read errors to errWorkbook, except size and context errors.
func translateXMLError(err error) error {
	for _, passed := range []error{nil, errTooLarge, errTooLong, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, passed) {
			return err
		}
	}

	return errWorkbook
}

func attribute(start xml.StartElement, space, name string) string {
	for _, a := range start.Attr {
		if a.Name.Local == name && a.Name.Space == space {
			return a.Value
		}
	}

	return ""
}

// maxNamedSheets is the number of sheets that a note names.
const maxNamedSheets = 20

// findSheet returns the ID of the sheet with a name, case-insensitively, or of the first visible
// sheet.
func (w *workbook) findSheet(ctx context.Context, f *zip.File, name string) (id string, err error) {
	if f == nil {
		return "", errWorkbook
	}

	const relationships = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	ok := false
	err = visit(ctx, f, maxPart, func(_ *xml.Decoder, parent string, start xml.StartElement) (bool, error) {
		switch {
		case start.Name.Local == "workbookPr":
			if text := attribute(start, "", "date1904"); text != "" {
				w.date1904, err = strconv.ParseBool(text)
				return false, translateXMLError(err)
			}
		case parent == "sheets" && start.Name.Local == "sheet":
			sheet, state := attribute(start, "", "name"), attribute(start, "", "state")
			hidden := state != "" && state != "visible"

			switch {
			case !ok && (name == "" && !hidden || name != "" && strings.EqualFold(sheet, name)):
				ok, id, w.name = true, attribute(start, relationships, "id"), sheet
			case len(w.others) == maxNamedSheets:
				w.others = append(w.others, "more")
			case len(w.others) < maxNamedSheets:
				w.others = append(w.others, describeSheet(sheet, hidden))
			}
		}

		return false, nil
	})
	if err == nil && !ok && (name != "" || len(w.others) > 0) {
		err = errNoSheet
	}

	return id, err
}

func describeSheet(name string, hidden bool) string {
	if hidden {
		return quote(name) + " (hidden)"
	}
	return quote(name)
}

// relationshipTarget returns the part that a relationship ID in the workbook refers to.
func relationshipTarget(ctx context.Context, f *zip.File, id string) (part string, err error) {
	err = visit(ctx, f, maxPart, func(_ *xml.Decoder, _ string, start xml.StartElement) (bool, error) {
		if start.Name.Local != "Relationship" || part != "" || attribute(start, "", "Id") != id {
			return false, nil
		}

		target := attribute(start, "", "Target")
		if part = path.Join("xl", target); strings.HasPrefix(target, "/") {
			part = target[1:]
		}

		return false, nil
	})

	return part, err
}

// readStyles reads the styles' number formats.
func (w *workbook) readStyles(ctx context.Context, f *zip.File) error {
	custom := map[int]numberFormat{}
	var styles []int
	err := visit(ctx, f, maxPart, func(_ *xml.Decoder, parent string, start xml.StartElement) (bool, error) {
		format := parent == "numFmts" && start.Name.Local == "numFmt"

		cell := parent == "cellXfs" && start.Name.Local == "xf"
		if !format && !cell {
			return false, nil
		}
		if len(custom) == maxStyles || len(styles) == maxStyles {
			return false, errTooLarge
		}

		id := 0
		if text := attribute(start, "", "numFmtId"); text != "" {
			var err error
			if id, err = strconv.Atoi(text); err != nil {
				return false, errWorkbook
			}
		}

		if format {
			custom[id] = parseFormat(attribute(start, "", "formatCode"))
			return false, nil
		}

		styles = append(styles, id)
		return false, nil
	})

	for _, id := range styles {
		format, ok := custom[id]
		if !ok {
			format = builtinFormat(id)
		}
		w.formats = append(w.formats, format)
	}

	return err
}

// sharedStrings stores the shared strings in one buffer.
type sharedStrings struct {
	text []byte
	ends []uint32
}

func (s *sharedStrings) read(ctx context.Context, f *zip.File) error {
	if f != nil { // upper bound, since the XML is longer
		s.text = make([]byte, 0, min(f.UncompressedSize64, maxStrings))
	}

	visitText := func(d *xml.Decoder, _ string, start xml.StartElement) (read bool, err error) {
		if start.Name.Local != "si" {
			return false, nil
		}
		if len(s.ends) == maxShared {
			return false, errTooLarge
		}

		s.text, err = appendText(s.text, d)
		s.ends = append(s.ends, uint32(len(s.text)))

		return true, err
	}

	return visit(ctx, f, int64(maxStrings), visitText)
}

// lineNumbers returns a string by index; false if the index is out of range.
func (s *sharedStrings) at(i int) ([]byte, bool) {
	if i < 0 || i >= len(s.ends) {
		return nil, false
	}

	start := uint32(0)
	if i > 0 {
		start = s.ends[i-1]
	}

	return s.text[start:s.ends[i]], true
}

// appendText reads the element whose start was just read to its end and appends its text: plain
// (t), or in formatted runs (r, t). It skips phonetic hints (rPh).
func appendText(to []byte, d *xml.Decoder) ([]byte, error) {
	var names [2]string
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return to, translateXMLError(err)
		}

		switch token := token.(type) {
		case xml.StartElement:
			if depth < len(names) {
				names[depth] = token.Name.Local
			}
			depth++
		case xml.EndElement:
			if depth == 0 {
				return to, nil
			}
			depth--
		case xml.CharData:
			if depth == 1 && names[0] == "t" || depth == 2 && names[0] == "r" && names[1] == "t" {
				to = append(to, token...)
			}
		}
	}
}

// markupReader reads XML with bounded size, since archives can expand a thousandfold. It rejects
// everything that makes the parser buffer more than a row: long tags, deep nesting, document types
// and CDATA, which no spreadsheet writes. It ends with its context. As an [io.ByteReader] it spares
// the parser another buffer.
type markupReader struct {
	ctx                     context.Context
	r                       io.Reader
	remaining, rowRemaining int64 // remaining bytes in total and for the current row

	buffer [4 << 10]byte
	unread []byte // in buffer
	err    error  // after unread

	tag   int  // bytes since the last <, 0 outside a tag
	kind  byte // byte after <
	last  byte
	quote byte // quote around the current attribute value, 0 outside one
	depth int
}

// ReadByte implements [io.ByteReader].
func (m *markupReader) ReadByte() (byte, error) {
	if err := m.fill(); err != nil {
		return 0, err
	}

	c := m.unread[0]
	m.unread = m.unread[1:]

	return c, nil
}

// Read implements [io.Reader].
func (m *markupReader) Read(b []byte) (int, error) {
	if err := m.fill(); err != nil {
		return 0, err
	}

	n := copy(b, m.unread)
	m.unread = m.unread[n:]

	return n, nil
}

// fill reads and checks the next bytes once all others are read.
func (m *markupReader) fill() error {
	for len(m.unread) == 0 {
		if m.err != nil {
			return m.err
		}
		if err := m.ctx.Err(); err != nil {
			return err
		}

		var n int
		n, m.err = m.r.Read(m.buffer[:])
		if err := m.check(m.buffer[:n]); err != nil {
			m.err = err
			return err
		}

		m.unread = m.buffer[:n]
	}

	return nil
}

// check scans bytes and counts them.
func (m *markupReader) check(b []byte) error {
	m.remaining, m.rowRemaining = m.remaining-int64(len(b)), m.rowRemaining-int64(len(b))
	switch {
	case m.remaining < 0:
		return errTooLarge
	case m.rowRemaining < 0:
		return errTooLong
	}

	for _, c := range b {
		if err := m.scan(c); err != nil {
			return err
		}
	}

	return nil
}

// scan processes a byte.
func (m *markupReader) scan(c byte) error {
	if m.tag == 0 {
		if c == '<' {
			m.tag, m.kind, m.quote = 1, 0, 0
		}
		return nil
	}

	if m.tag++; m.tag > maxTag {
		return errTooLarge
	}

	if m.kind == 0 {
		if m.kind = c; c == '!' {
			return errWorkbook
		}
	}

	switch {
	case m.kind == '?': // quotes have no meaning in an instruction
		if c == '>' && m.last == '?' {
			m.tag = 0
		}
	case m.quote != 0:
		if c == m.quote {
			m.quote = 0
		}
	case c == '"' || c == '\'':
		m.quote = c
	case c == '>':
		m.tag = 0

		switch {
		case m.kind == '/':
			m.depth--
		case m.last != '/':
			m.depth++
		}

		if m.depth > maxDepth {
			return errTooLarge
		}
	}

	m.last = c
	return nil
}
