package requestlog

import (
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of texts in bytes.
const (
	maxQuery   = 1000 // as stored
	maxTarget  = 100
	maxMessage = 300
	maxWord    = 63 // letters and digits in a row, as in an identifier; a longer word may be a token
)

// cutMark stands for a value that was cut.
const cutMark = "…"

// cutQuery returns a query string without the values in it. Names of parameters stay; of the rows
// API also columns, operators and the numbers of limit and offset.
func cutQuery(raw string, rows bool) string {
	if raw == "" {
		return ""
	}

	var b strings.Builder
	for pair := range strings.SplitSeq(raw, "&") {
		if b.Len() > 0 {
			b.WriteByte('&')
		}
		if b.Len() > maxQuery {
			b.WriteString(cutMark)
			break
		}

		escapedName, escapedValue, hasValue := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(escapedName)
		if err != nil || !hasValue || !isName(name) {
			b.WriteString(cutMark)
			continue
		}

		b.WriteString(name)
		b.WriteByte('=')

		value, err := url.QueryUnescape(escapedValue)
		if err != nil || !rows {
			value = cutMark
		}

		b.WriteString(cutParameter(name, value))
	}

	return b.String()
}

// cutParameter returns the value of a parameter of the rows API without values of columns.
func cutParameter(name, value string) string {
	path, last := "", name
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		path, last = name[:i], name[i+1:]
	}

	switch last {
	case "select", "columns", "on_conflict", "order":
		if isNames(value) {
			return clip(value, maxQuery)
		}
	case "limit", "offset":
		if len(value) < 10 && strings.Trim(value, "0123456789") == "" {
			return value
		}
	case "and", "or":
		if path == "" || isName(path) {
			return cutGroup(value, 0)
		}
	default:
		return cutFilter(value)
	}

	return cutMark
}

// operators are those of filters, without not.
var operators = []string{
	"eq", "gt", "gte", "lt", "lte", "neq", "like", "ilike", "match", "imatch", "in", "is", "isdistinct", "fts",
	"plfts", "phfts", "wfts", "cs", "cd", "ov", "sl", "sr", "nxr", "nxl", "adj",
}

// cutFilter returns operator.value without the value. A text without an operator is one value.
func cutFilter(text string) string {
	rest, negated := strings.CutPrefix(text, "not.")
	head, value, ok := strings.Cut(rest, ".")
	operator, quantifier, quantified := strings.Cut(head, "(")
	if !ok || !slices.Contains(operators, operator) {
		return cutMark
	}

	switch {
	case quantified && (quantifier == "any)" || quantifier == "all)"):
		operator = head
	case quantified:
		operator += "(" + cutMark + ")"
	}

	if operator != "is" || (value != "null" && value != "not_null") {
		value = cutMark
	}
	if negated {
		operator = "not." + operator
	}

	return operator + "." + value
}

// maxDepth bounds the nesting of groups that are shown.
const maxDepth = 10

// cutGroup returns the conditions of and(…) or or(…) without values.
func cutGroup(text string, depth int) string {
	inner, opened := strings.CutPrefix(text, "(")
	inner, closed := strings.CutSuffix(inner, ")")
	if !opened || !closed || depth > maxDepth {
		return cutMark
	}

	var conditions []string
	for _, c := range splitConditions(inner) {
		conditions = append(conditions, cutCondition(c, depth))
	}

	return "(" + strings.Join(conditions, ",") + ")"
}

func cutCondition(text string, depth int) string {
	for _, word := range []string{"and", "or", "not.and", "not.or"} {
		if group, ok := strings.CutPrefix(text, word); ok && strings.HasPrefix(group, "(") {
			return word + cutGroup(group, depth+1)
		}
	}

	for i, c := range text {
		if c != '.' {
			continue
		}
		if filter := cutFilter(text[i+1:]); filter != cutMark && isColumn(text[:i]) {
			return text[:i] + "." + filter
		}
	}

	return cutMark
}

// splitConditions splits at the commas that stand in no quotes, parentheses and braces.
func splitConditions(text string) []string {
	var parts []string
	start, depth, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(', c == '{':
			depth++
		case c == ')', c == '}':
			depth--
		case c == ',' && depth == 0:
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}

	return append(parts, text[start:])
}

// isName reports whether a text can be the name of a parameter: a path of identifiers.
func isName(text string) bool { return text != "" && isWords(text, "_-.>:$!\"") }

// isColumn reports whether a text can be a column of a condition: dots stand in quotes only, or
// else they would end the name.
func isColumn(text string) bool {
	for n, part := range strings.Split(text, `"`) {
		if n%2 == 0 && strings.Contains(part, ".") { // outside of quotes
			return false
		}
	}

	return isName(text)
}

// isNames reports whether a text can be a list of columns, with embedded relations and orders.
func isNames(text string) bool { return isWords(text, "_-.>:$!\",()* ") }

// isWords reports whether a text consists of words that are no longer than identifiers, and of
// other characters.
func isWords(text, others string) bool {
	length := 0
	for _, c := range text {
		switch {
		case c == utf8.RuneError:
			return false
		case unicode.IsLetter(c), unicode.IsDigit(c):
			length += utf8.RuneLen(c)
		case c == '_', c == '-': // also part of words
			length++
		case strings.ContainsRune(others, c):
			length = 0
		default:
			return false
		}

		if length > maxWord {
			return false
		}
	}

	return true
}

// routeOf returns the route of a request: the pattern, of the interfaces of applications with the
// name of the table, function or bucket.
func routeOf(r *record) string {
	pattern := stripMethod(r.route)
	if r.prefix == "" {
		return pattern
	}

	route := strings.TrimPrefix(pattern, "/projects/{projectUUID}")
	target, err := url.PathUnescape(strings.Trim(r.target, "/"))
	switch {
	case err != nil, strings.ContainsFunc(target, func(c rune) bool { return !unicode.IsPrint(c) }):
		target = cutMark
	case target == "":
		return route
	}

	first, rest, nested := strings.Cut(target, "/")
	if nested && (first != "rpc" || strings.Contains(rest, "/")) {
		target = first + "/" + cutMark
	}

	return route + "/" + clip(target, maxTarget)
}

// stripMethod returns a route without its optional method.
func stripMethod(route string) string {
	for i := range len(route) {
		switch route[i] {
		case ' ':
			return route[i+1:]
		case '/':
			return route
		}
	}

	return route
}

// cutMessage returns the text of a failure without values of the client. PostgreSQL quotes names in
// most of its messages, but values where they break the rules of their type; so do the grammar of
// the rows API and other interfaces.
func cutMessage(code, text string) string {
	text, _, _ = strings.Cut(text, "\n")
	state := len(code) == 5
	dataException := state && code[:2] == "22"
	syntaxError := code == "42601" // a function parses values, such as a tsquery

	switch {
	case code == "RouteNotFound": // "Route GET:/path not found"
		return cutBetween(text, ":", " not found")
	case (state && !dataException && !syntaxError) || strings.HasPrefix(code, "PGRST2"):
		return clip(text, maxMessage)
	case dataException || code == "PGRST107" || code == "PGRST121":
		if head, _, ok := strings.Cut(text, ": "); ok {
			text = head + ": " + cutMark
		}
	case code == "PGRST100": // "failed to parse filter (value)" (line 1, column 1)
		return clip(cutBetween(text, "(", `)"`), maxMessage)
	}

	return clip(cutBetween(text, `"`, `"`), maxMessage)
}

// cutBetween cuts the text between the first left and the last right.
func cutBetween(text, left, right string) string {
	head, rest, ok := strings.Cut(text, left)
	if !ok {
		return text
	}

	tail := ""
	if i := strings.LastIndex(rest, right); i >= 0 {
		tail = rest[i:]
	}

	return head + left + cutMark + tail
}

// clip returns the first bytes of a text, without a part of a character at the end.
func clip(text string, size int) string {
	if len(text) <= size {
		return strings.ToValidUTF8(text, "")
	}

	return strings.ToValidUTF8(text[:size-len(cutMark)], "") + cutMark
}
