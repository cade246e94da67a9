package transfer

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Encodings are the supported encodings by name.
var Encodings = map[string]encoding.Encoding{
	"utf-8": nil, "utf-16": unicode.UTF16(unicode.LittleEndian, unicode.UseBOM),
	"windows-1252": charmap.Windows1252, "iso-8859-1": charmap.ISO8859_1,
}

// value is a row's value.
type value struct {
	text []byte
	null bool
	kind jsontext.Kind // JSON kind; 0 in other formats
}

// row is a file's row. Its memory is valid until the next row is read.
type row struct {
	line   int64
	values []value   // CSV: the row's values; JSON: in the order of names
	bad    *Rejected // parse error
}

// source reads a file row by row.
type source interface {
	// next returns io.EOF after the last row.
	next() (row, error)
	// names returns the columns known so far: from the header, or from all lines read so far; nil
	// without a header.
	names() []string
}

var (
	errTooLong = errors.New("row is too long")
	errNoLine  = errors.New("file has no such line")
)

// open returns the source for a file's rows. known are the columns; nil means that they are
// detected.
func open(file io.Reader, o Options, known []string) (source, error) {
	head := bufio.NewReader(file)
	if mark, err := head.Peek(2); err == nil && (string(mark) == "\xff\xfe" || string(mark) == "\xfe\xff") {
		o.Encoding = "utf-16" // no text in another encoding begins with this byte order mark
	}

	var r io.Reader = head
	if e := Encodings[o.Encoding]; e != nil {
		r = transform.NewReader(r, e.NewDecoder())
	}

	lines := &lineReader{r: bufio.NewReaderSize(r, 256<<10), end: '\n'}
	if mark, err := lines.r.Peek(3); err == nil && string(mark) == "\xef\xbb\xbf" {
		_, _ = lines.r.Discard(len(mark)) // already buffered
	}

	if o.Format == JSONL {
		return newJSONSource(lines, known), nil
	}

	lines.detectEnd()
	declared, err := lines.skipDelimiter()
	if err != nil {
		return nil, err
	}
	if err := lines.skipTo(o.HeaderLine); err != nil {
		return nil, err
	}

	c := &csvSource{lines: lines, delimiter: cmp.Or(o.Delimiter, declared), null: []byte(o.Null)}
	switch {
	case c.delimiter != 0:
	case o.Format == TSV:
		c.delimiter = '\t'
	case o.Header:
		c.delimiter = detectDelimiter(lines.r, lines.end)
	default:
		c.delimiter = ','
	}

	if o.Header {
		err = readHeader(c, &c.header)
	}

	c.single = len(known) == 1
	return c, err
}

// detectDelimiter returns a header's delimiter: a comma, or the first semicolon, tab or bar if the
// header has no comma. Spreadsheets write semicolons and tabs in many languages, and database
// exports bars. It reads no further than the buffer.
func detectDelimiter(r *bufio.Reader, lineEnd byte) byte {
	head, _ := r.Peek(r.Size()) // the next read returns the error
	head = bytes.TrimLeft(head, "\r\n")

	delimiter, inQuotes := byte(','), false
	for _, c := range head {
		switch {
		case c == '"':
			inQuotes = !inQuotes
		case inQuotes:
		case c == ',':
			return ','
		case c == lineEnd:
			return delimiter
		case delimiter == ',' && (c == ';' || c == '\t' || c == '|'):
			delimiter = c
		}
	}

	return delimiter
}

// readHeader reads the column names from the first row.
func readHeader(s source, header *[]string) error {
	head, err := s.next()
	if err == io.EOF {
		return nil
	}
	if err != nil {
		return err
	}

	if head.bad != nil {
		return head.bad.fatal(nil, 0)
	}

	names := []string{}
	for _, v := range head.values {
		if !utf8.Valid(v.text) {
			return invalidEncoding(head.line).fatal(nil, 0)
		}
		names = append(names, string(v.text))
	}

	*header = names
	return nil
}

// invalidEncoding rejects a row. Other encodings than UTF-8 are decoded to valid text.
func invalidEncoding(line int64) *Rejected {
	return &Rejected{Line: line, Code: "invalid_encoding", Message: "is not valid UTF-8: set the encoding"}
}

// lineReader reads and counts lines with bounded length.
type lineReader struct {
	r      *bufio.Reader
	end    byte // '\n', also behind '\r', or '\r'
	count  int64
	buffer []byte
}

// detectEnd finds the carriage returns that alone end lines in old Macintosh files. It reads no
// further than the buffer.
func (l *lineReader) detectEnd() {
	head, _ := l.r.Peek(l.r.Size()) // the next read returns the error

	inQuotes := false
	for i, c := range head {
		switch {
		case c == '"':
			inQuotes = !inQuotes
		case inQuotes:
		case c == '\n':
			return
		case c == '\r' && i+1 < len(head):
			if head[i+1] != '\n' {
				l.end = '\r'
			}
			return
		}
	}
}

// skipDelimiter skips a first line such as sep=; and returns its character, or 0 without one. Excel
// writes and obeys that line.
func (l *lineReader) skipDelimiter() (byte, error) {
	head, _ := l.r.Peek(len("sep=;\n")) // the next read returns the error
	if len(head) < len("sep=;\n") || !bytes.EqualFold(head[:4], []byte("sep=")) ||
		(head[5] != '\r' && head[5] != '\n') {
		return 0, nil
	}

	_, err := l.next()
	return head[4], err
}

// skipTo skips the lines before a line. It fails with errNoLine if the file ends before it.
func (l *lineReader) skipTo(line int64) error {
	for l.count+1 < line {
		if _, err := l.next(); err == io.EOF {
			return errNoLine
		} else if err != nil {
			return err
		}
	}

	return nil
}

// next returns a line with its line break, valid until the next call.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.r.ReadSlice(l.end)
	if err == bufio.ErrBufferFull {
		l.buffer = append(l.buffer[:0], line...)
		for err == bufio.ErrBufferFull {
			if len(l.buffer) > maxRecord {
				return nil, errTooLong
			}

			line, err = l.r.ReadSlice(l.end)
			l.buffer = append(l.buffer, line...)
		}

		line = l.buffer
	}

	if err == io.EOF && len(line) > 0 {
		err = nil
	}

	if err == nil {
		l.count++
	}

	return line, err
}

func trimEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// csvSource reads delimited values. encoding/csv can't replace it: that neither tells a quoted
// empty value from null nor bounds a row. A quoted value may contain delimiters, line breaks and
// doubled quotes. A quote inside an unquoted value is literal.
type csvSource struct {
	lines     *lineReader
	delimiter byte
	null      []byte
	header    []string
	single    bool // there is one column: an empty line is a row
	data      []byte
	ends      []int  // value end offsets in data
	quoted    []bool // parallel to ends
	values    []value
}

func (c *csvSource) names() []string { return c.header }

func (c *csvSource) next() (row, error) {
	line, err := c.lines.next()
	for err == nil && len(trimEnd(line)) == 0 && !c.single {
		line, err = c.lines.next()
	}

	if err != nil {
		return row{}, err
	}

	r := row{line: c.lines.count}
	c.data, c.ends, c.quoted = c.data[:0], c.ends[:0], c.quoted[:0]

	r.bad, err = c.split(line)
	if err != nil {
		return row{}, err
	}

	if r.bad != nil {
		r.bad.Line = r.line
		if c.lines.count > r.line {
			r.bad.Message += fmt.Sprintf(" and takes the lines up to %d", c.lines.count)
		}

		return r, nil
	}

	c.values = c.values[:0]
	start := 0
	for i, end := range c.ends {
		text := c.data[start:end]
		c.values = append(c.values, value{text: text, null: !c.quoted[i] && bytes.Equal(text, c.null)})
		start = end
	}

	r.values = c.values
	return r, nil
}

// split splits a line into values. It reads further lines inside quotes.
func (c *csvSource) split(line []byte) (*Rejected, error) {
	rest := trimEnd(line)
	for {
		if len(c.ends) > maxColumns { // too many values, whatever follows
			return nil, nil
		}

		if len(rest) > 0 && rest[0] == '"' {
			var bad *Rejected
			var err error
			if rest, bad, err = c.readQuoted(line[len(trimEnd(line))-len(rest)+1:]); bad != nil || err != nil {
				return bad, err
			}

			line = rest
			rest = trimEnd(rest)
		} else {
			text, following, more := bytes.Cut(rest, []byte{c.delimiter})
			if bytes.IndexByte(text, '\r') >= 0 {
				return &Rejected{Code: "malformed",
					Message: "has a carriage return outside of quotes that ends no line; quote the value, or " +
						"save the file with one kind of line breaks"}, nil
			}

			c.data = append(c.data, text...)
			c.end(false)
			if !more {
				return nil, nil
			}

			rest = following
			continue
		}

		switch {
		case len(rest) == 0:
			return nil, nil
		case rest[0] != c.delimiter:
			return &Rejected{Code: "malformed", Message: "has text after a closing quote"}, nil
		}

		rest = rest[1:]
	}
}

func (c *csvSource) end(quoted bool) {
	c.ends, c.quoted = append(c.ends, len(c.data)), append(c.quoted, quoted)
}

// readQuoted reads a value after its opening quote and returns the text after the closing quote.
func (c *csvSource) readQuoted(line []byte) (rest []byte, bad *Rejected, err error) {
	for {
		i := bytes.IndexByte(line, '"')
		switch {
		case i < 0:
			c.data = append(c.data, line...)
			if len(c.data) > maxRecord {
				return nil, nil, errTooLong
			}

			if line, err = c.lines.next(); err == io.EOF {
				return nil, &Rejected{Code: "malformed", Message: "has an unclosed quote"}, nil
			}

			if err != nil {
				return nil, nil, err
			}
		case i+1 < len(line) && line[i+1] == '"':
			c.data = append(c.data, line[:i+1]...)
			line = line[i+2:]
		default:
			c.data = append(c.data, line[:i]...)
			c.end(true)

			return line[i+1:], nil, nil
		}
	}
}
