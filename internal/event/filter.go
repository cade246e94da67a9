package event

import (
	"fmt"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

const (
	maxFilters     = 20       // per binding
	maxFilterSize  = 16 << 10 // bytes per binding
	maxFilterItems = 100      // values in one in-list, as at Supabase
)

// filter is a condition on a column.
type filter struct {
	column   string
	operator string
	negated  bool
	values   []string // one, or those of in
}

// operators are the operators of filters, in SQL. in and is have rules of their own.
var operators = map[string]string{
	"eq": "=", "neq": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">=",
	"like": "like", "ilike": "ilike", "match": "~", "imatch": "~*", "isdistinct": "is distinct from",
	"in": "in", "is": "is",
}

// isValues are the values of the operator is.
var isValues = map[string]string{"null": "is null", "not_null": "is not null", "true": "is true", "false": "is false",
	"unknown": "is unknown"}

// parseFilters parses column=operator.value conditions, joined with commas. A value in double
// quotes may have commas; a backslash escapes in it.
func parseFilters(text string) ([]filter, error) {
	if len(text) > maxFilterSize {
		return nil, fault.New(fault.Invalid, "filter has more than %d bytes", maxFilterSize)
	}

	var filters []filter
	for _, part := range splitTop(text) {
		if len(filters) == maxFilters {
			return nil, fault.New(fault.Invalid, "filter has more than %d conditions", maxFilters)
		}

		f, err := parseFilter(part)
		if err != nil {
			return nil, err
		}
		filters = append(filters, f)
	}

	return filters, nil
}

func parseFilter(text string) (filter, error) {
	malformed := fault.New(fault.Invalid, "filter %q must have the form column=operator.value", text)
	column, rest, ok := strings.Cut(text, "=")
	if !ok || strings.TrimSpace(column) == "" {
		return filter{}, malformed
	}

	f := filter{column: strings.TrimSpace(column)}
	rest, f.negated = strings.CutPrefix(strings.TrimSpace(rest), "not.")

	operator, value, ok := strings.Cut(rest, ".")
	if !ok {
		return filter{}, malformed
	}
	if operators[operator] == "" {
		return filter{}, fault.New(fault.Invalid, "filter %q has the unknown operator %s", text, operator)
	}
	f.operator = operator

	switch operator {
	case "in":
		inner, isList := strings.CutPrefix(value, "(")
		inner, closed := strings.CutSuffix(inner, ")")
		if !isList || !closed {
			return filter{}, fault.New(fault.Invalid, "filter %q must list its values in parentheses", text)
		}
		for _, item := range splitTop(inner) {
			f.values = append(f.values, unquote(item))
		}
		if len(f.values) > maxFilterItems {
			return filter{}, fault.New(fault.Invalid, "filter on %s has more than %d values", f.column, maxFilterItems)
		}
	case "is":
		if isValues[strings.ToLower(value)] == "" {
			return filter{}, fault.New(fault.Invalid, "filter %q must compare with null, not_null, true, false or unknown", text)
		}
		f.values = []string{strings.ToLower(value)}
	default:
		f.values = []string{unquote(value)}
	}

	return f, nil
}

// splitTop splits at commas outside double quotes and parentheses.
func splitTop(text string) []string {
	if text == "" {
		return nil
	}

	var parts []string
	depth, quoted, start := 0, false, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth <= 0:
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}

	return append(parts, text[start:])
}

// unquote removes the double quotes around a value, and the backslashes in them.
func unquote(text string) string {
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return text
	}

	var b strings.Builder
	inner := text[1 : len(text)-1]
	for i := 0; i < len(inner); i++ {
		if inner[i] == '\\' && i+1 < len(inner) {
			i++
		}
		b.WriteByte(inner[i])
	}

	return b.String()
}

// parameters returns n parameters in SQL from number first on, which are texts of a type.
func parameters(first, n int, sqlType string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("$%d::text::%s", first+i, sqlType)
	}

	return strings.Join(all, ", ")
}

// sql returns the condition on a column of a row, with the values as text parameters from number
// first on.
func (f filter) sql(row string, c *relationColumn, first int) string {
	column := row + "." + pg.Quote(f.column)
	var condition string

	switch f.operator {
	case "is":
		condition = column + " " + isValues[f.values[0]]
	case "in":
		condition = column + " = any(array[" + parameters(first, len(f.values), c.SQLType) + "]::" + c.SQLType + "[])"
	case "like", "ilike", "match", "imatch":
		condition = column + "::text " + operators[f.operator] + " " + parameters(first, 1, "text")
	default:
		condition = column + " " + operators[f.operator] + " " + parameters(first, 1, c.SQLType)
	}

	if f.negated {
		return "not (" + condition + ")"
	}

	return condition
}

// arguments returns the values that [filter.sql] passes as parameters.
func (f filter) arguments() []string {
	if f.operator == "is" {
		return nil
	}
	return f.values
}

// plainTypes are types whose JSON text, without quotes, is equal exactly if the values are.
var plainTypes = []string{"int2", "int4", "int8", "bool", "text", "varchar", "uuid", "name", "oid"}

// isPlain reports whether a condition can be decided by comparing texts.
func (f filter) isPlain(c *relationColumn) bool {
	return slices.Contains(plainTypes, c.Type) && (f.operator == "eq" || f.operator == "in" || f.operator == "neq")
}

// holds decides a plain condition on a value; present is false for null.
func (f filter) holds(value string, present bool) bool {
	if !present {
		return false
	}

	return slices.Contains(f.values, value) == (f.operator != "neq") != f.negated
}
