package schema

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/sqllex"
)

// typeSpec is a client's type, parsed and rebuilt as SQL.
type typeSpec struct {
	sql         string    // the type; for an unqualified name, pg_catalog's
	fallbacks   fallbacks // used if sql names no type
	identity    bool      // serial types: an identity column with an integer type
	hasModifier bool
}

// fallbacks are other types that a name may mean, in order: for an unqualified name, in public and
// in the extensions schema, then those with the client's capitals. "" is none.
type fallbacks [4]string

func (f fallbacks) with(suffix string) fallbacks {
	for i := range f {
		if f[i] != "" {
			f[i] += suffix
		}
	}
	return f
}

const (
	maxTypeText   = 10_000 // bytes, also for a list of types
	maxDimensions = 2
	maxPrecision  = 6 // fractional digits of a second; PostgreSQL reduces larger values silently
)

// spellings maps SQL's type names to the catalog's. Words neither here nor in parseBase are type
// names.
var spellings = map[string]string{
	"int": "int4", "integer": "int4", "smallint": "int2", "bigint": "int8", "real": "float4", "boolean": "bool",
	"dec": "numeric", "decimal": "numeric", "numeric": "numeric", "varchar": "varchar", "varbit": "varbit",
}

var serials = map[string]string{
	"serial": "int4", "serial4": "int4", "bigserial": "int8", "serial8": "int8",
	"smallserial": "int2", "serial2": "int2",
}

var (
	errType      = errors.New("must be a type such as integer, varchar(80), numeric(10,2), text[] or app.mood")
	errModifier  = errors.New("has a modifier that this type does not support")
	errDimension = errors.New("has more than " + strconv.Itoa(maxDimensions) + " array dimensions")
)

// parseType parses a text as one type. Its errors are texts for the client.
func parseType(text string) (typeSpec, error) {
	p, err := newTypeParser(text)
	if err != nil {
		return typeSpec{}, err
	}

	t, err := p.parse()
	if err == nil && !p.done() {
		err = errType
	}

	return t, err
}

// parseTypes parses a comma-separated type list; blank text is an empty list.
func parseTypes(text string) ([]typeSpec, error) {
	p, err := newTypeParser(text)
	if err != nil || p.done() {
		return nil, err
	}

	return p.parseList()
}

// typeParser consumes a type's tokens: words in lower case, quoted names with their quotes,
// unsigned numbers, and single punctuation characters.
type typeParser struct {
	tokens    []string
	originals []string // all tokens with their capitals
}

var (
	typeWord   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	typeNumber = regexp.MustCompile(`^[0-9]{1,9}$`)
)

func newTypeParser(text string) (*typeParser, error) {
	if len(text) > maxTypeText || !pg.Storable(text) {
		return nil, errType
	}

	p := &typeParser{}
	l := sqllex.New(text)
	for t, ok := l.Next(); ok; t, ok = l.Next() {
		token := text[t.Start:t.End]
		p.originals = append(p.originals, token)
		switch {
		case t.Kind == sqllex.Word && typeWord.MatchString(token):
			token = strings.ToLower(token)
		case t.Kind == sqllex.QuotedName && token[0] == '"' && len(token) > len(`""`) && !t.Open:
		case t.Kind == sqllex.Number, token == "-":
		case t.Kind == sqllex.Punctuation && strings.Contains("[](),.", token):
		default:
			return nil, errType
		}

		p.tokens = append(p.tokens, token)
	}

	return p, nil
}

func (p *typeParser) done() bool { return len(p.tokens) == 0 }

func (p *typeParser) peek() string {
	if p.done() {
		return ""
	}
	return p.tokens[0]
}

// peekOriginal returns the next token with capitals.
func (p *typeParser) peekOriginal() string {
	if p.done() {
		return ""
	}
	return p.originals[len(p.originals)-len(p.tokens)]
}

func (p *typeParser) next() string {
	token := p.peek()
	if token != "" {
		p.tokens = p.tokens[1:]
	}

	return token
}

// accept consumes the tokens if they are next.
func (p *typeParser) accept(tokens ...string) bool {
	if len(p.tokens) < len(tokens) || !slices.Equal(p.tokens[:len(tokens)], tokens) {
		return false
	}

	p.tokens = p.tokens[len(tokens):]
	return true
}

// parseList parses comma-separated types, to the end of the text.
func (p *typeParser) parseList() ([]typeSpec, error) {
	var types []typeSpec
	for {
		t, err := p.parse()
		if err != nil {
			return nil, err
		}

		types = append(types, t)
		if p.done() {
			return types, nil
		}
		if !p.accept(",") {
			return nil, errType
		}
	}
}

// parse parses one type with its array brackets and leaves the rest.
func (p *typeParser) parse() (typeSpec, error) {
	t, err := p.parseBase()
	if err != nil {
		return t, err
	}

	var brackets string
	for n := 1; p.accept("["); n++ {
		if n > maxDimensions {
			return t, errDimension
		}

		if isNumber(p.peek()) {
			p.next() // PostgreSQL ignores array sizes
		}

		if !p.accept("]") || t.identity {
			return t, errType
		}

		brackets += "[]"
	}

	t.sql += brackets
	t.fallbacks = t.fallbacks.with(brackets)

	return t, nil
}

func (p *typeParser) parseBase() (typeSpec, error) {
	capital := unquoted(p.peekOriginal())
	word, ok := p.name()
	if !ok {
		return typeSpec{}, errType
	}

	if p.accept(".") {
		schema, capitalSchema := unquoted(word), capital

		capital = unquoted(p.peekOriginal())
		if word, ok = p.name(); !ok {
			return typeSpec{}, errType
		}

		word = unquoted(word)
		return p.withModifiers(pg.Quote(schema, word),
			fallbacks{pg.Quote(schema, capital), pg.Quote(capitalSchema, word), pg.Quote(capitalSchema, capital)})
	}

	if base, ok := serials[word]; ok {
		return typeSpec{sql: builtin(base), identity: true}, nil
	}
	if base, ok := spellings[word]; ok {
		return p.withModifiers(builtin(base), fallbacks{})
	}

	switch word {
	case "double":
		if !p.accept("precision") {
			return typeSpec{}, errType
		}
		return typeSpec{sql: builtin("float8")}, nil
	case "float":
		return p.floatType()
	case "character", "char":
		if p.accept("varying") {
			return p.withModifiers(builtin("varchar"), fallbacks{})
		}
		return p.withDefaultModifiers(builtin("bpchar"), "(1)")
	case "bit":
		if p.accept("varying") {
			return p.withModifiers(builtin("varbit"), fallbacks{})
		}
		return p.withDefaultModifiers(builtin("bit"), "(1)")
	case "time", "timestamp", "timetz", "timestamptz":
		return p.timeType(word)
	case "interval":
		return p.intervalType()
	}

	return p.withModifiers(builtin(unquoted(word)),
		fallbacks{pg.Quote(public, unquoted(word)), pg.Quote(ExtensionsSchema, unquoted(word)),
			pg.Quote(public, capital), pg.Quote(ExtensionsSchema, capital)})
}

// floatType parses float's optional precision, in bits, which selects the type.
func (p *typeParser) floatType() (typeSpec, error) {
	mods, err := p.integers()
	if err != nil || mods == nil {
		return typeSpec{sql: builtin("float8")}, err
	}

	switch bits := mods[0]; {
	case len(mods) > 1 || bits < 1 || bits > 53:
		return typeSpec{}, errModifier
	case bits < 25:
		return typeSpec{sql: builtin("float4")}, nil
	}

	return typeSpec{sql: builtin("float8")}, nil
}

// timeType parses the optional precision and time zone after time or timestamp.
func (p *typeParser) timeType(word string) (typeSpec, error) {
	precision, err := p.precision()
	if err != nil {
		return typeSpec{}, err
	}

	if !strings.HasSuffix(word, "tz") && !p.accept("without", "time", "zone") && p.accept("with", "time", "zone") {
		word += "tz"
	}

	return typeSpec{sql: builtin(word) + precision, hasModifier: precision != ""}, nil
}

// intervalFields are interval's field restrictions.
var intervalFields = [][]string{
	{"year", "to", "month"}, {"day", "to", "hour"}, {"day", "to", "minute"}, {"day", "to", "second"},
	{"hour", "to", "minute"}, {"hour", "to", "second"}, {"minute", "to", "second"}, {"year"}, {"month"}, {"day"},
	{"hour"}, {"minute"}, {"second"},
}

// intervalType parses interval's optional fields and precision. Only the SQL keyword accepts
// fields, so the type keeps that spelling.
func (p *typeParser) intervalType() (typeSpec, error) {
	sql := "interval"
	for _, fields := range intervalFields {
		if p.accept(fields...) {
			sql += " " + strings.Join(fields, " ")
			break
		}
	}

	if sql != "interval" && !strings.HasSuffix(sql, "second") {
		return typeSpec{sql: sql, hasModifier: true}, nil
	}

	precision, err := p.precision()
	return typeSpec{sql: sql + precision, hasModifier: sql+precision != "interval"}, err
}

// precision parses an optional precision in fractional digits of a second.
func (p *typeParser) precision() (string, error) {
	mods, err := p.integers()
	if err != nil || mods == nil {
		return "", err
	}
	if len(mods) > 1 || mods[0] < 0 || mods[0] > maxPrecision {
		return "", errModifier
	}

	return "(" + strconv.Itoa(mods[0]) + ")", nil
}

// withModifiers parses a type's optional modifiers.
func (p *typeParser) withModifiers(sql string, others fallbacks) (typeSpec, error) {
	mods, err := p.modifiers()
	if err != nil || mods == nil {
		return typeSpec{sql: sql, fallbacks: others}, err
	}

	list := "(" + strings.Join(mods, ",") + ")"
	return typeSpec{sql: sql + list, fallbacks: others.with(list), hasModifier: true}, nil
}

// withDefaultModifiers is withModifiers for a type with default modifiers.
func (p *typeParser) withDefaultModifiers(sql, defaults string) (typeSpec, error) {
	t, err := p.withModifiers(sql, fallbacks{})
	if err == nil && !t.hasModifier {
		t.sql += defaults
	}

	return t, err
}

// modifiers parses an optional parenthesized list of integers and words, such as (10,-2) or
// (Point,4326), to SQL. It returns nil without a list.
func (p *typeParser) modifiers() ([]string, error) {
	if !p.accept("(") {
		return nil, nil
	}

	var mods []string
	for {
		sign := ""
		if p.accept("-") {
			sign = "-"
		}

		token := p.next()
		switch {
		case isNumber(token):
			mods = append(mods, sign+token)
		case sign == "" && modifierWord.MatchString(token):
			mods = append(mods, pg.Literal(token))
		default:
			return nil, errModifier
		}

		if p.accept(")") {
			return mods, nil
		}
		if !p.accept(",") {
			return nil, errModifier
		}
	}
}

var modifierWord = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// integers is modifiers restricted to integers.
func (p *typeParser) integers() ([]int, error) {
	mods, err := p.modifiers()
	if err != nil {
		return nil, err
	}

	var all []int
	for _, m := range mods {
		n, err := strconv.Atoi(m)
		if err != nil {
			return nil, errModifier
		}

		all = append(all, n)
	}

	return all, nil
}

// name consumes the next token if it is a word or a quoted name.
func (p *typeParser) name() (string, bool) {
	token := p.peek()
	if token == "" || !(token[0] == '"' || token[0] == '_' || token[0] >= 'a' && token[0] <= 'z') ||
		len(unquoted(token)) > 63 {
		return "", false
	}

	return p.next(), true
}

func isNumber(token string) bool { return typeNumber.MatchString(token) }

func unquoted(token string) string {
	if strings.HasPrefix(token, `"`) {
		return strings.ReplaceAll(token[1:len(token)-1], `""`, `"`)
	}
	return token
}

func builtin(name string) string { return pg.Quote("pg_catalog", name) }
