package rest

import (
	"bytes"
	"encoding/csv"
	"io"
)

// csvReader reads the records of CSV by RFC 4180. Unlike encoding/csv it tells quoted fields apart
// and keeps their line ends. It skips empty lines.
type csvReader struct {
	text   []byte
	pos    int
	line   int // line of pos, from 0
	start  int // start of the line
	buffer []byte
	record []csvField // reused
}

// csvField is a field of a record. An empty field without quotes is null, one in quotes is not.
type csvField struct {
	text   string
	quoted bool
	end    int // in the buffer
}

func newCSVReader(text []byte) *csvReader { return &csvReader{text: text} }

// Read returns the next record, which is valid until the next call. It fails with io.EOF at the
// end, and with a [csv.ParseError].
func (r *csvReader) Read() ([]csvField, error) {
	for r.pos < len(r.text) && r.endLine() {
	}
	if r.pos == len(r.text) {
		return nil, io.EOF
	}

	r.buffer, r.record = r.buffer[:0], r.record[:0]
	first := r.line
	for {
		quoted, next := r.at('"'), r.bare
		if quoted {
			next = r.quoted
		}

		if err := next(); err != nil {
			return nil, &csv.ParseError{StartLine: first + 1, Line: r.line + 1, Column: r.pos - r.start + 1, Err: err}
		}

		r.record = append(r.record, csvField{quoted: quoted, end: len(r.buffer)})
		if !r.at(',') {
			break
		}
		r.pos++
	}

	r.endLine()

	all, start := string(r.buffer), 0
	for i := range r.record {
		f := &r.record[i]
		f.text, start = all[start:f.end], f.end
	}

	return r.record, nil
}

func (r *csvReader) at(c byte) bool { return r.pos < len(r.text) && r.text[r.pos] == c }

// atEnd reports whether the line ends at pos. A carriage return ends it before a line feed or the
// end of the text.
func (r *csvReader) atEnd() bool {
	rest := r.text[r.pos:]
	return len(rest) == 0 || rest[0] == '\n' || (rest[0] == '\r' && (len(rest) == 1 || rest[1] == '\n'))
}

// endLine consumes the end of a line, if there is one at pos.
func (r *csvReader) endLine() bool {
	if !r.atEnd() {
		return false
	}

	if r.at('\r') {
		r.pos++
	}
	if r.at('\n') {
		r.pos++
	}
	r.line, r.start = r.line+1, r.pos

	return true
}

// bare reads a field without quotes.
func (r *csvReader) bare() error {
	for !r.at(',') && !r.atEnd() {
		if r.at('"') {
			return csv.ErrBareQuote
		}

		n := bytes.IndexAny(r.text[r.pos+1:], ",\n\r\"")
		if n < 0 {
			n = len(r.text) - r.pos - 1
		}

		r.buffer = append(r.buffer, r.text[r.pos:r.pos+1+n]...)
		r.pos += 1 + n
	}

	return nil
}

// quoted reads a field in quotes.
func (r *csvReader) quoted() error {
	for {
		r.pos++ // the opening quote, or the second one of two
		n := bytes.IndexByte(r.text[r.pos:], '"')
		if n < 0 {
			r.pos = len(r.text)
			return csv.ErrQuote
		}

		part := r.text[r.pos : r.pos+n]
		r.buffer = append(r.buffer, part...)
		if lines := bytes.Count(part, []byte{'\n'}); lines > 0 {
			r.line += lines
			r.start = r.pos + bytes.LastIndexByte(part, '\n') + 1
		}

		r.pos += n + 1
		if r.at('"') {
			r.buffer = append(r.buffer, '"')
			continue
		}
		if !r.at(',') && !r.atEnd() {
			return csv.ErrQuote
		}

		return nil
	}
}
