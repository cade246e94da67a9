package pgdump

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/socle-dev/socle/internal/sqllex"
)

const (
	minWindow = 256 << 10 // bytes
	// maxStatement bounds a statement's text, which is held in memory. PostgreSQL rejects 1 GiB
	// messages.
	maxStatement = 256 << 20
)

// statement is an SQL statement or a psql command in a dump.
type statement struct {
	sqllex.Statement
	line    int    // where the first token is, from 1
	command bool   // for psql, such as \connect
	header  header // header in the comments before it
	entry   int    // ID in the table of contents, from pg_restore --verbose; 0 before the first one
}

// header is the comment that pg_dump writes before an object. It lasts until the next one.
type header struct{ kind, schema, owner string }

// headerLine matches pg_dump's comment before an object, or before its data.
var headerLine = regexp.MustCompile(`^-- (?:Data for )?Name: .*; Type: (.*); Schema: (.*); Owner: (.*?)(?:; Tablespace: .*)?$`)

// entryLine matches pg_restore's comment before an entry.
var entryLine = regexp.MustCompile(`^-- TOC entry (\d+) \(class `)

// Comments at both ends.
const (
	beginComment = "-- PostgreSQL database dump"
	endComment   = "-- PostgreSQL database dump complete"
)

// errCutOff reports a dump without its end.
var errCutOff = errors.New("the dump is cut off")

// reader reads a plain dump's statements. After a COPY statement, data returns the rows.
type reader struct {
	in   io.Reader
	eof  bool
	line int // where the unconsumed input begins

	window []byte // buffered input
	at     int    // offset of the first unconsumed byte
	text   string // copy of window[at:]; "" while it is not needed

	header header
	entry  int
	open   bool // pg_dump's comment at its begin, and not yet that at its end
	atEnd  bool // pg_dump's comment at its end
}

func newReader(in io.Reader) *reader {
	return &reader{in: in, line: 1, window: make([]byte, 0, minWindow)}
}

// next returns the next statement, or io.EOF after the last one.
func (r *reader) next() (statement, error) {
	for {
		s, ok, err := r.cut()
		if ok || err != nil {
			return s, err
		}

		if !r.eof {
			if err := r.fill(); err != nil {
				return statement{}, err
			}
			continue
		}

		switch {
		case s.Text != "":
			return statement{}, &Error{Line: s.line, Statement: s.Text,
				Message: "the dump is cut off in this statement", err: errCutOff}
		case r.open:
			return statement{}, &Error{Line: r.line, Message: "the dump is cut off: its end is missing", err: errCutOff}
		}

		return statement{}, io.EOF
	}
}

// cut consumes the window's first statement. It returns false if the window does not contain the
// statement's end.
func (r *reader) cut() (s statement, ok bool, err error) {
	if r.text == "" {
		r.text = string(r.window[r.at:])
	}

	if !r.skipComments() {
		return s, false, nil
	}
	s = statement{line: r.line, header: r.header, entry: r.entry}

	if r.text[0] == '\\' {
		command, _, ok := strings.Cut(r.text, "\n")
		if !ok && !r.eof {
			return s, false, nil
		}

		s.Text, s.command = strings.TrimRight(command, "\r"), true
		r.consume(len(command))

		return s, true, nil
	}

	cut, rest, complete := sqllex.Cut(r.text)
	s.Statement = cut
	if complete {
		r.consume(len(r.text) - len(rest))
		return s, true, nil
	}

	if len(r.text) > maxStatement {
		return s, false, &Error{Line: s.line, Statement: s.Text,
			Message: fmt.Sprintf("the statement is longer than %d MiB", maxStatement>>20)}
	}

	// A file's last statement needs no semicolon, unless it has an open quote.
	if r.eof && !r.open && !hasOpenToken(r.text) {
		r.consume(len(r.text))
		return s, true, nil
	}

	return s, false, nil
}

// skipComments consumes the space, comments and empty statements before a statement. It returns
// false if the window contains no statement start.
func (r *reader) skipComments() bool {
	l := sqllex.New(r.text)
	for {
		t, ok := l.Next()
		switch {
		case !ok:
			r.consume(len(r.text))
			return false
		case t.Kind == sqllex.Comment && t.End == len(r.text) && !r.eof: // may go on
			r.consume(t.Start)
			return false
		case t.Kind == sqllex.Comment && !t.Open:
			r.readComment(r.text[t.Start:t.End])
		case r.text[t.Start:t.End] == ";":
		default:
			r.consume(t.Start)
			return true
		}
	}
}

func (r *reader) readComment(text string) {
	switch text = strings.TrimRight(text, "\r"); text {
	case beginComment:
		r.open = true
	case endComment:
		r.open, r.atEnd = false, true
	default:
		if m := entryLine.FindStringSubmatch(text); m != nil {
			r.entry, _ = strconv.Atoi(m[1]) // 0 if it is too large: no entry has such an ID
		}
		if m := headerLine.FindStringSubmatch(text); m != nil {
			r.header = header{kind: m[1], schema: m[2], owner: m[3]}
		}
	}
}

// hasOpenToken reports whether a text ends in a quote or comment.
func hasOpenToken(text string) bool {
	l := sqllex.New(text)
	for t, ok := l.Next(); ok; t, ok = l.Next() {
		if t.Open {
			return true
		}
	}

	return false
}

// consume removes bytes from the window's start.
func (r *reader) consume(n int) {
	r.line += bytes.Count(r.window[r.at:r.at+n], []byte{'\n'})
	r.at += n
	if r.text != "" {
		r.text = r.text[n:]
	}
}

// fill reads until the window is full. A window without free space doubles.
func (r *reader) fill() error {
	r.text = ""
	rest := copy(r.window[:cap(r.window)], r.window[r.at:])
	r.window, r.at = r.window[:rest], 0

	if rest > cap(r.window)/2 {
		r.window = append(make([]byte, 0, 2*cap(r.window)), r.window...)
	}

	for !r.eof && len(r.window) < cap(r.window) {
		n, err := r.in.Read(r.window[len(r.window):cap(r.window)])
		r.window = r.window[:len(r.window)+n]

		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read the dump: %w", err)
		}
		r.eof = err != nil
	}

	return nil
}

// data returns the rows after a COPY statement. They begin on the next line and end at a line with
// nothing but \. in it.
func (r *reader) data() *copyData {
	r.text = ""
	return &copyData{r: r, begin: r.line}
}

// copyData reads a COPY statement's rows.
type copyData struct {
	r     *reader
	begin int // where the statement ends
	lines bool
	atEnd bool
	mid   bool // the last byte read ended no line
	err   error
}

// firstLine returns the first row's line.
func (d *copyData) firstLine() int { return d.begin + 1 }

// Read fails with [errCutOff] if the rows' end is missing.
func (d *copyData) Read(p []byte) (int, error) {
	for d.err == nil {
		n, more := d.scan(len(p))
		if n > 0 {
			copy(p, d.r.window[d.r.at:d.r.at+n])
			d.r.consume(n)

			return n, nil
		}

		switch {
		case d.atEnd:
			d.err = io.EOF
		case !more:
		case d.r.eof:
			d.err = &Error{Line: d.begin, Message: "the dump is cut off in the rows of this COPY", err: errCutOff}
		default:
			d.err = d.r.fill()
		}
	}

	return 0, d.err
}

// scan returns how many bytes in the window are rows, at most limit. It returns true if it needs
// more bytes in the window.
func (d *copyData) scan(limit int) (n int, more bool) {
	w := d.r.window[d.r.at:]
	if !d.lines { // the rest of the statement's line
		end := bytes.IndexByte(w, '\n')
		if end < 0 {
			return 0, true
		}

		d.r.consume(end + 1)
		d.lines = true

		return 0, false
	}

	if len(w) < len("\\.\r\n") && !d.r.eof {
		return 0, true
	}

	if !d.mid {
		if end := endOfRows(w, d.r.eof); end > 0 {
			d.r.consume(end)
			d.atEnd = true

			return 0, false
		}
	}

	n = min(len(w), limit)
	if i := bytes.Index(w[:n], []byte("\n\\.")); i >= 0 {
		n = i + 1
	} else if i := bytes.LastIndexByte(w[:n], '\n'); i >= 0 {
		n = i + 1
	}

	d.mid = n > 0 && w[n-1] != '\n'
	return n, n == 0
}

// endOfRows returns the length of a line that ends rows, or 0 for another line.
func endOfRows(w []byte, eof bool) int {
	if !bytes.HasPrefix(w, []byte(`\.`)) {
		return 0
	}

	for _, end := range []string{"\\.\n", "\\.\r\n"} {
		if bytes.HasPrefix(w, []byte(end)) {
			return len(end)
		}
	}
	if eof && len(w) == len(`\.`) {
		return len(w)
	}

	return 0
}
