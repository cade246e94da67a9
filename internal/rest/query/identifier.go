package query

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxDepth is the maximum nesting of relations and groups.
const maxDepth = 64

const fieldName = "field name (* or [a..z0..9_$])"

// parser reads one text from left to right. Its methods leave pos after the parsed text, or at the
// unexpected character.
type parser struct {
	what  string // the text's role, for messages
	text  string
	pos   int
	shift int // characters before the text that message columns include
	depth int
}

// expected returns the syntax error for missing grammar at pos.
func (p *parser) expected(want string) error {
	before := p.text[:p.pos]
	line := 1 + strings.Count(before, "\n")
	column := 1 + utf8.RuneCountInString(before[1+strings.LastIndexByte(before, '\n'):])
	if line == 1 {
		column += p.shift
	}

	token := "end of input"
	if !p.done() {
		quote := `"`
		if strings.HasSuffix(want, "end of input") {
			quote = "'"
		}

		_, n := utf8.DecodeRuneInString(p.text[p.pos:])
		token = quote + p.text[p.pos:p.pos+n] + quote
	}

	return &Error{
		Status: 400,
		Code:   "PGRST100",
		Message: `"failed to parse ` + p.what + " (" + p.text + `)" (line ` +
			strconv.Itoa(line) + ", column " + strconv.Itoa(column) + ")",
		Details: "unexpected " + token + " expecting " + want,
	}
}

func (p *parser) done() bool { return p.pos == len(p.text) }

// at reports whether the next character is c.
func (p *parser) at(c byte) bool { return p.pos < len(p.text) && p.text[p.pos] == c }

// ahead reports whether the text continues with s.
func (p *parser) ahead(s string) bool { return strings.HasPrefix(p.text[p.pos:], s) }

// take consumes c if it is next.
func (p *parser) take(c byte) bool {
	if !p.at(c) {
		return false
	}

	p.pos++
	return true
}

// takeText consumes s if it is next.
func (p *parser) takeText(s string) bool {
	if !p.ahead(s) {
		return false
	}

	p.pos += len(s)
	return true
}

func (p *parser) blanks() {
	for p.pos < len(p.text) {
		switch p.text[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// enter descends one level of nesting; leave returns.
func (p *parser) enter() error {
	if p.depth == maxDepth {
		return p.expected("at most " + strconv.Itoa(maxDepth) + " levels")
	}

	p.depth++
	return nil
}

func (p *parser) leave() { p.depth-- }

// end accepts the text's end, or superfluous closing parentheses: clients that build trees from
// text are known to write too many.
func (p *parser) end(want string) error {
	for p.blanks(); p.take(')'); p.blanks() {
	}

	if !p.done() {
		return p.expected(want)
	}

	return nil
}

// identifier parses a bare or quoted name and the blanks around it.
func (p *parser) identifier() (string, error) {
	p.blanks()

	if !p.at('"') {
		return p.bare()
	}

	start := p.pos

	name, err := p.quoted()
	if err != nil {
		return "", err
	}

	if name == "" {
		p.pos = start
		return "", p.expected(fieldName)
	}

	p.blanks()
	return name, nil
}

// reservedKeys are the keys of parameters that are not filters by a column with that name, or that
// the server reserves.
var reservedKeys = []string{"and", "apikey", "columns", "limit", "not", "offset", "on_conflict", "or", "order",
	"select"}

// QuoteName returns the key for a filter by a column: its name, in quotes if the name would be read
// differently.
func QuoteName(name string) string {
	p := parser{text: name}
	if plain, err := p.bare(); err == nil && p.done() && plain == name && !slices.Contains(reservedKeys, name) {
		return name
	}

	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(name) + `"`
}

// bare parses an unquoted name: letters, digits, _, $, inner blanks and single dashes. It drops
// blanks beside a dash.
func (p *parser) bare() (string, error) {
	start, dash := p.pos, false
	for {
		segment := p.pos
		p.nameCharacters()

		if strings.Trim(p.text[segment:p.pos], " ") == "" {
			return "", p.expected(fieldName)
		}
		if !p.at('-') || p.ahead("->") {
			break
		}

		dash = true
		p.pos++
	}

	name := strings.Trim(p.text[start:p.pos], " ")
	if !dash || !strings.Contains(name, " -") && !strings.Contains(name, "- ") {
		return name, nil
	}

	segments := strings.Split(name, "-")
	for i, s := range segments {
		segments[i] = strings.Trim(s, " ")
	}

	return strings.Join(segments, "-"), nil
}

func (p *parser) nameCharacters() {
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == ' ', c == '$':
			p.pos++
		case c < utf8.RuneSelf:
			return
		default:
			r, n := utf8.DecodeRuneInString(p.text[p.pos:])
			if !unicode.In(r, unicode.L, unicode.Nd, unicode.M) {
				return
			}

			p.pos += n
		}
	}
}

// quoted parses a double-quoted text with backslash escapes. The caller has seen the opening quote.
func (p *parser) quoted() (string, error) {
	start, escaped := p.pos+1, false
	for i := start; i < len(p.text); i++ {
		switch p.text[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			p.pos = i + 1

			if escaped {
				return unescapeQuoted(p.text[start:i]), nil
			}

			return p.text[start:i], nil
		}
	}

	p.pos = len(p.text)
	return "", p.expected(`"\""`)
}

func unescapeQuoted(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			i++
		}
		b = append(b, s[i])
	}

	return string(b)
}

// field parses a column name and its JSON path.
func (p *parser) field() (f Field, err error) {
	if f.Name, err = p.identifier(); err != nil {
		return f, err
	}

	f.Path, err = p.jsonPath()
	return f, err
}

// jsonPath parses a path's steps, if any.
func (p *parser) jsonPath() (steps []Step, err error) {
	for p.takeText("->") {
		step := Step{Text: p.take('>')}
		if err := p.operand(&step); err != nil {
			return nil, err
		}

		steps = append(steps, step)
	}

	return steps, nil
}

// operand parses an index or a key after an arrow. Digits are an index if nothing else follows in
// the operand.
func (p *parser) operand(s *Step) error {
	p.blanks()

	if p.at('"') {
		key, err := p.quoted()
		s.Key, s.IsKey = key, true
		p.blanks()

		return err
	}

	start := p.pos
	negative := p.take('-')
	digits := p.pos

	for p.pos < len(p.text) && '0' <= p.text[p.pos] && p.text[p.pos] <= '9' {
		p.pos++
	}

	if p.pos > digits && p.operandEnds() {
		index, err := strconv.ParseInt(p.text[start:p.pos], 10, 32)
		if err != nil {
			return outOfRange(p.text[start:p.pos], "integer")
		}

		s.Index = int(index)
		p.blanks()

		return nil
	}

	if negative {
		return p.expected("digit")
	}

	p.pos = start
	s.IsKey = true

	for {
		segment := p.pos

		if n := strings.IndexAny(p.text[p.pos:], "(-:.,>)"); n >= 0 {
			p.pos += n
		} else {
			p.pos = len(p.text)
		}

		if strings.Trim(p.text[segment:p.pos], " ") == "" {
			const key = "any non reserved character different from: .,>()"
			if segment == start && p.pos == start {
				return p.expected(`"-", digit or ` + key)
			}

			return p.expected(key)
		}

		if !p.at('-') || p.ahead("->") {
			break
		}

		p.pos++
	}

	s.Key = strings.Trim(p.text[start:p.pos], " ")
	return nil
}

// operandEnds reports whether the operand ends at pos.
func (p *parser) operandEnds() bool {
	rest := strings.TrimLeft(p.text[p.pos:], " ")
	if rest == "" || strings.HasPrefix(rest, "->") || strings.HasPrefix(rest, "::") {
		return true
	}

	return rest[0] == '.' || rest[0] == ',' || rest[0] == ')'
}

// names parses comma-separated names up to the end.
func (p *parser) names() ([]string, error) {
	names := make([]string, 0, 1+strings.Count(p.text, ","))
	for {
		name, err := p.identifier()
		if err != nil {
			return nil, err
		}

		names = append(names, name)

		if !p.take(',') {
			break
		}
	}

	if !p.done() {
		return nil, p.expected(`"," or end of input`)
	}

	return names, nil
}

// number parses a row count. ok is false if text is not a number. It fails for a number beyond
// bigint.
func number(text string) (n int64, ok bool, err error) {
	text = strings.TrimSpace(text)
	n, err = strconv.ParseInt(text, 10, 64)
	switch {
	case err == nil:
		return n, true, nil
	case n == math.MaxInt64 || n == math.MinInt64:
		return 0, false, outOfRange(text, "bigint")
	}

	return 0, false, nil
}

// outOfRange returns PostgreSQL's error for a number beyond a type's range.
func outOfRange(text, typ string) error {
	return &Error{Status: 400, Code: "22003", Message: `value "` + text + `" is out of range for type ` + typ}
}
