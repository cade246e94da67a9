package requestlog

import (
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text bounds in bytes.
const (
	maxQuery   = 1000 // as stored
	maxTarget  = 100
	maxMessage = 300
	maxWord    = 63 // letters and digits in a row, as in an identifier; a longer word may be a token
)

// cutMark stands for a value that was cut.
const cutMark = "…"

// cutQuery cuts the values from a query string. Parameter names stay; for the rows API also
// columns, operators and the numbers in limit and offset.
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

// cutParameter cuts column values from a rows API parameter.
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

// operators are the filter operators, without not.
var operators = []string{
	"eq", "gt", "gte", "lt", "lte", "neq", "like", "ilike", "match", "imatch", "in", "is", "isdistinct", "fts",
	"plfts", "phfts", "wfts", "cs", "cd", "ov", "sl", "sr", "nxr", "nxl", "adj",
}

// cutFilter cuts the value from operator.value. A text without an operator is one value.
func cutFilter(text string) string {
	rest, isNegated := strings.CutPrefix(text, "not.")
	head, value, ok := strings.Cut(rest, ".")
	operator, quantifier, hasQuantifier := strings.Cut(head, "(")
	if !ok || !slices.Contains(operators, operator) {
		return cutMark
	}

	switch {
	case hasQuantifier && (quantifier == "any)" || quantifier == "all)"):
		operator = head
	case hasQuantifier:
		operator += "(" + cutMark + ")"
	}

	if operator != "is" || (value != "null" && value != "not_null") {
		value = cutMark
	}
	if isNegated {
		operator = "not." + operator
	}

	return operator + "." + value
}

// maxDepth bounds the nesting of groups that the log shows.
const maxDepth = 10

// cutGroup cuts the values from the conditions in and(…) or or(…).
func cutGroup(text string, depth int) string {
	inner, hasStart := strings.CutPrefix(text, "(")
	inner, hasEnd := strings.CutSuffix(inner, ")")
	if !hasStart || !hasEnd || depth > maxDepth {
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

// splitConditions splits at the commas outside quotes, parentheses and braces.
func splitConditions(text string) []string {
	var parts []string
	start, depth, inQuotes := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && inQuotes:
			i++
		case c == '"':
			inQuotes = !inQuotes
		case inQuotes:
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

// isName reports whether a text can be a parameter name: a path of identifiers.
func isName(text string) bool { return text != "" && isWords(text, "_-.>:$!\"") }

// isColumn reports whether a text can be the column of a condition: dots may stand in quotes only,
// because others would end the name.
func isColumn(text string) bool {
	for n, part := range strings.Split(text, `"`) {
		if n%2 == 0 && strings.Contains(part, ".") { // outside quotes
			return false
		}
	}

	return isName(text)
}

// isNames reports whether a text can be a list of columns, with embedded relations and orders.
func isNames(text string) bool { return isWords(text, "_-.>:$!\",()* ") }

// isWords reports whether a text consists of words no longer than identifiers, and of others.
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

// routeOf returns a request's route: the pattern, for application interfaces with the table,
// function or bucket name.
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

	first, rest, hasRest := strings.Cut(target, "/")
	if hasRest && (first != "rpc" || strings.Contains(rest, "/")) {
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

// cutMessage cuts the client's values from a failure's text. PostgreSQL quotes names in most
// messages, but values where they break the rules of their type; so do the rows API's grammar and
// other interfaces.
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

// cutBetween cuts the text between the first prefix and the last suffix.
func cutBetween(text, prefix, suffix string) string {
	head, rest, ok := strings.Cut(text, prefix)
	if !ok {
		return text
	}

	tail := ""
	if i := strings.LastIndex(rest, suffix); i >= 0 {
		tail = rest[i:]
	}

	return head + prefix + cutMark + tail
}

// clip returns the first bytes of a text, without a partial character at the end.
func clip(text string, size int) string {
	if len(text) <= size {
		return strings.ToValidUTF8(text, "")
	}

	return strings.ToValidUTF8(text[:size-len(cutMark)], "") + cutMark
}
