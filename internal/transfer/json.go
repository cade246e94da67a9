package transfer

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/socle-dev/socle/internal/fault"
)

// jsonSource reads JSON objects: one per line, in an array, or spanning lines.
type jsonSource struct {
	lines    *lineReader
	elements *elementReader // nil for lines
	order    []string
	index    map[string]int
	fixed    bool // order has all columns
	decoder  jsontext.Decoder
	values   []value
}

// newJSONSource returns a JSON file's source. known are the columns; nil means that they are
// detected.
func newJSONSource(lines *lineReader, known []string) *jsonSource {
	j := &jsonSource{lines: lines, order: known, fixed: known != nil, index: map[string]int{}}
	for i, name := range known {
		j.index[name] = i
	}

	head, _ := lines.r.Peek(lines.r.Size()) // the next read returns the error
	head = bytes.TrimLeft(head, " \t\r\n")
	first, _, _ := bytes.Cut(head, []byte("\n"))
	switch {
	case bytes.HasPrefix(head, []byte("[")):
		j.elements = &elementReader{r: lines.r, line: 1, inArray: true}
	case spansLines(bytes.TrimRight(first, " \t\r")):
		j.elements = &elementReader{r: lines.r, line: 1}
	}

	return j
}

// spansLines reports whether an object's first line ends where another one must follow.
func spansLines(line []byte) bool {
	return bytes.HasPrefix(line, []byte("{")) && bytes.IndexByte([]byte("{[,:"), line[len(line)-1]) >= 0
}

func (j *jsonSource) names() []string { return j.order }

func (j *jsonSource) next() (row, error) {
	object, r, err := j.nextObject()
	if err != nil {
		return row{}, err
	}

	j.values = j.values[:0]
	for range j.order {
		j.values = append(j.values, value{null: true})
	}

	if r.bad == nil {
		r.bad = j.object(object)
	}
	if r.bad != nil {
		r.bad.Line = r.line
	}

	r.values = j.values
	return r, nil
}

// nextObject returns the next object's text, and a row with its line.
func (j *jsonSource) nextObject() ([]byte, row, error) {
	if j.elements != nil {
		return j.elements.next()
	}

	line, err := j.lines.next()
	for err == nil && len(bytes.TrimSpace(line)) == 0 {
		line, err = j.lines.next()
	}

	return line, row{line: j.lines.count}, err
}

func (j *jsonSource) object(line []byte) *Rejected {
	rejection := &Rejected{Code: "malformed", Message: "is not a JSON object"}
	j.decoder.Reset(bytes.NewReader(line))

	if t, err := j.decoder.ReadToken(); err != nil || t.Kind() != '{' {
		return rejection
	}

	for j.decoder.PeekKind() != '}' {
		t, err := j.decoder.ReadToken()
		if err != nil {
			return rejection
		}

		name := t.String()

		v, err := j.decoder.ReadValue()
		if err != nil {
			return rejection
		}

		i, ok := j.index[name]
		switch {
		case !ok && j.fixed:
			return &Rejected{Column: &name, Code: "unknown_column",
				Message: fmt.Sprintf("has the member %q, which is not a column of the table", fault.Clip(name))}
		case !ok && len(j.order) == maxColumns:
			return &Rejected{Code: "too_many", Message: "has more members than a table can have columns"}
		case !ok:
			i = len(j.order)
			j.index[name], j.order, j.values = i, append(j.order, name), append(j.values, value{})
		}

		j.values[i] = value{kind: v.Kind(), null: v.Kind() == 'n'}
		if v.Kind() == '"' {
			j.values[i].text, err = jsontext.AppendUnquote(nil, v)
		} else {
			j.values[i].text = bytes.Clone(v)
		}

		if err != nil {
			return rejection
		}
	}

	if _, err := j.decoder.ReadToken(); err != nil {
		return rejection
	}

	if _, err := j.decoder.ReadToken(); err != io.EOF {
		return rejection
	}

	return nil
}

// elementReader splits a JSON array, or JSON objects behind one another, into element texts,
// without parsing these. An element is bounded, the file is not.
type elementReader struct {
	r       *bufio.Reader
	line    int64 // where the next byte is
	inArray bool
	element []byte
	started bool
	ended   bool
}

// next returns an element, valid until the next call, and a row with its line. It returns io.EOF
// behind the array.
func (a *elementReader) next() ([]byte, row, error) {
	if a.ended {
		return nil, row{}, io.EOF
	}

	c, err := a.skipBlanks()
	if !a.inArray {
		switch {
		case err != nil:
			return nil, row{}, err
		case c != '{':
			return a.end(io.EOF, "has text that is not a JSON object")
		}

		return a.readElement(c)
	}

	switch {
	case err != nil:
		return a.endUnclosed(err, row{})
	case !a.started:
		a.started = true
		if c, err = a.skipBlanks(); err == nil && c != ']' {
			return a.readElement(c)
		}
	case c == ',':
		if c, err = a.skipBlanks(); err == nil {
			return a.readElement(c)
		}
	}
	if err != nil {
		return a.endUnclosed(err, row{})
	}

	if _, err = a.skipBlanks(); err == nil {
		return a.end(io.EOF, "has text behind the JSON array")
	}

	a.ended = true
	return nil, row{}, err
}

// endUnclosed is end inside an array, or inside r's object outside an array.
func (a *elementReader) endUnclosed(err error, r row) ([]byte, row, error) {
	if a.inArray {
		return a.end(err, "is the end of a JSON array that is not closed")
	}

	_, bad, err := a.end(err, "begins a JSON object that is not closed")
	bad.line = r.line

	return nil, bad, err
}

// end returns the row that rejects the file's rest, unless reading failed.
func (a *elementReader) end(err error, message string) ([]byte, row, error) {
	if err != io.EOF {
		return nil, row{}, err
	}

	a.ended = true
	return nil, row{line: a.line, bad: &Rejected{Code: "malformed", Message: message}}, nil
}

// readElement reads an element from its first byte to the comma or bracket behind it, or an object
// outside an array to its brace.
func (a *elementReader) readElement(c byte) ([]byte, row, error) {
	r := row{line: a.line}
	a.element = a.element[:0]
	depth, quoted := 0, false
	for {
		switch {
		case quoted && c == '\\':
			a.element = append(a.element, c)
			var err error
			if c, err = a.readByte(); err != nil {
				return a.endUnclosed(err, r)
			}
		case c == '"':
			quoted = !quoted
		case quoted:
		case depth == 0 && (c == ',' || c == ']'):
			return a.element, r, a.r.UnreadByte()
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}

		if a.element = append(a.element, c); len(a.element) > maxRecord {
			return nil, r, errTooLong
		}
		if !a.inArray && depth == 0 {
			return a.element, r, nil
		}

		var err error
		if c, err = a.readByte(); err != nil {
			return a.endUnclosed(err, r)
		}
	}
}

func (a *elementReader) skipBlanks() (byte, error) {
	for {
		c, err := a.readByte()
		if err != nil || (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
			return c, err
		}
	}
}

func (a *elementReader) readByte() (byte, error) {
	c, err := a.r.ReadByte()
	if err == nil && c == '\n' {
		a.line++
	}

	return c, err
}
