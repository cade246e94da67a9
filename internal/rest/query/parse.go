package query

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxPaths is the maximum number of ordered relations, and of limited ones. It exceeds any real
// use, and is small enough for a linear search.
const maxPaths = 256

// Options describes a query string's target.
type Options struct {
	// function called by GET or HEAD: a parameter without filter syntax is an argument
	RPC bool
}

// Parse parses a URL's raw query string. Its errors are of type *Error: syntax errors first, then a
// negative limit. Of a repeated select, columns, on_conflict or order, the first counts; of a limit
// or offset, the last. All filters hold.
func Parse(rawQuery string, o Options) (*Query, error) {
	r := reader{Options: o}
	for rawQuery != "" {
		pair := rawQuery
		if i := strings.IndexAny(rawQuery, "&;"); i >= 0 {
			pair, rawQuery = rawQuery[:i], rawQuery[i+1:]
		} else {
			rawQuery = ""
		}

		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			continue
		}

		key, value = unescape(key), unescape(value)
		if strings.IndexByte(key, 0) >= 0 || strings.IndexByte(value, 0) >= 0 {
			return nil, &Error{Status: 400, Code: "22021", Message: `invalid byte sequence for encoding "UTF8": 0x00`}
		}

		if err := r.parameter(key, value); err != nil {
			return nil, err
		}
	}

	if r.negative {
		return nil, &Error{Status: 416, Code: "PGRST103", Message: "Requested range not satisfiable",
			Details: "Limit should be greater than or equal to zero."}
	}

	return &r.query, nil
}

// reader collects a query, parameter by parameter.
type reader struct {
	Options
	query    Query
	selects  bool // select was present
	negative bool // the top-level limit is negative
}

func (r *reader) parameter(key, value string) (err error) {
	q := &r.query
	switch key {
	case "select":
		if !r.selects {
			r.selects = true
			q.Select, err = parseSelect(value)
		}

		return err
	case "columns":
		if q.Columns == nil {
			p := parser{what: "columns parameter", text: value}
			q.Columns, err = p.names()
		}

		return err
	case "on_conflict":
		if q.OnConflict == nil {
			p := parser{what: "on_conflict parameter", text: value}
			q.OnConflict, err = p.names()
		}

		return err
	}

	switch word := key[1+strings.LastIndexByte(key, '.'):]; word {
	case "order":
		return r.order(key, value)
	case "limit", "offset":
		return r.limit(key, value, word == "limit")
	case "and", "or":
		return r.logic(key, value, word == "or")
	}

	return r.filter(key, value)
}

func (r *reader) order(key, value string) error {
	path, err := prefix(key)
	if err != nil {
		return err
	}

	terms, err := parseOrder(value)
	if err != nil {
		return err
	}

	q := &r.query
	if slices.ContainsFunc(q.Order, func(o Order) bool { return slices.Equal(o.Path, path) }) {
		return nil
	}
	if len(q.Order) == maxPaths {
		return tooMany(key)
	}

	q.Order = append(q.Order, Order{path, terms})
	return nil
}

func (r *reader) limit(key, value string, limit bool) error {
	path, err := prefix(key)
	if err != nil {
		return err
	}

	n, ok, err := number(value)
	if !ok {
		return err
	}

	top := len(path) == 0
	if top && !limit && n < 0 {
		return nil
	}

	if top && limit {
		r.negative = n < 0
	}

	q := &r.query
	i := slices.IndexFunc(q.Limits, func(l Limit) bool { return slices.Equal(l.Path, path) })
	if i < 0 {
		if len(q.Limits) == maxPaths {
			return tooMany(key)
		}

		i = len(q.Limits)
		q.Limits = append(q.Limits, Limit{Path: path})
	}

	if limit {
		q.Limits[i].Limit = &n
	} else {
		q.Limits[i].Offset = n
	}

	return nil
}

func (r *reader) logic(key, value string, or bool) error {
	path, not, err := logicPath(key)
	if err != nil {
		return err
	}

	g, err := parseLogic(value, not, or)
	if err != nil {
		return err
	}

	r.query.Filters = append(r.query.Filters, Filter{path, g})
	return nil
}

func (r *reader) filter(key, value string) error {
	path, field, err := treePath(key)
	if err != nil {
		return err
	}

	c := Comparison{Field: field}
	filter, err := parseFilter(value, &c, r.RPC)
	if err != nil {
		return err
	}

	q := &r.query
	if !filter {
		name := field.Name
		if path != nil || field.Path != nil {
			name = key
		}

		q.Params = append(q.Params, Param{name, value})
		return nil
	}

	q.Filters = append(q.Filters, Filter{path, &c})
	return nil
}

// treePath parses a filter's key: relations, and a field in the innermost one.
func treePath(key string) (path []string, f Field, err error) {
	p := parser{what: "tree path", text: key}
	if path, f.Name, err = p.dotted(); err != nil {
		return nil, f, err
	}

	if f.Path, err = p.jsonPath(); err != nil {
		return nil, f, err
	}

	p.skipIndex()

	if !p.done() {
		return nil, f, p.expected(`".", "->" or end of input`)
	}

	return path, f, nil
}

// skipIndex consumes the index that some clients append to repeated keys, as in name[0]=…&name[1]=…
func (p *parser) skipIndex() {
	if rest := p.text[p.pos:]; len(rest) >= len("[]") && rest[0] == '[' && rest[len(rest)-1] == ']' &&
		digits(rest[1:len(rest)-1]) {
		p.pos = len(p.text)
	}
}

// prefix parses the relations in a key before its last word.
func prefix(key string) ([]string, error) {
	if strings.IndexByte(key, '.') < 0 {
		return nil, nil
	}

	p := parser{what: "tree path", text: key}
	path, _, err := p.dotted()
	if err == nil && !p.done() {
		return nil, p.expected(`"." or end of input`)
	}

	return path, err
}

// dotted parses names separated by dots, and returns the last one apart.
func (p *parser) dotted() (path []string, last string, err error) {
	for {
		if last, err = p.identifier(); err != nil || !p.take('.') {
			return path, last, err
		}
		path = append(path, last)
	}
}

// logicPath parses the relations in a key before its last word, and whether a bare not is among
// them.
func logicPath(key string) (path []string, not bool, err error) {
	p := parser{what: "logic path", text: key}
	for {
		p.blanks()
		bare := !p.at('"')

		name, err := p.identifier()
		if err != nil {
			return nil, false, err
		}

		if !p.take('.') {
			break
		}

		if bare && name == "not" {
			not = true
			continue
		}

		path = append(path, name)
	}

	if !p.done() {
		return nil, false, p.expected(`"." or end of input`)
	}

	return path, not, nil
}

func tooMany(key string) error {
	return &Error{Status: 400,
		Code: "PGRST100", Message: `"failed to parse tree path (` + key + `)" (line 1, column 1)`,
		Details: "unexpected relation expecting at most " + strconv.Itoa(maxPaths) + " of them"}
}

// unescape decodes a query string: + is a blank, %XX a byte. An invalid escape stays as it is;
// invalid UTF-8 becomes U+FFFD.
func unescape(s string) string {
	if strings.IndexByte(s, '%') >= 0 || strings.IndexByte(s, '+') >= 0 {
		b := make([]byte, 0, len(s))
		for i := 0; i < len(s); i++ {
			c := s[i]
			if c == '+' {
				c = ' '
			} else if c == '%' && i+2 < len(s) {
				if high, low := hex(s[i+1]), hex(s[i+2]); high < 16 && low < 16 {
					c = high<<4 | low
					i += 2
				}
			}

			b = append(b, c)
		}

		s = string(b)
	}

	if utf8.ValidString(s) {
		return s
	}

	return strings.ToValidUTF8(s, "\uFFFD")
}

// hex returns the value of a hexadecimal digit, or 16 for any other character.
func hex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}

	return 16
}
