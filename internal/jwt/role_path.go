package jwt

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// roleStep is a step of a role path.
type roleStep struct {
	key   string
	index int               // array index, if key is ""
	match func(string) bool // filter condition
}

// rolePath parses a path such as .role, ."a.b".roles[0] or its JSONPath form with a leading dollar.
// A filter as the last step selects an array's first matching string.
func rolePath(text string) ([]roleStep, error) {
	if text == "" {
		text = ".role"
	}

	rest := strings.TrimPrefix(text, "$")
	var path []roleStep
	for rest != "" {
		if delimiter := quotedStep(rest); delimiter != "" {
			key, after, ok := strings.Cut(rest[2:], delimiter)
			if !ok {
				return nil, fmt.Errorf("parse role path %q: unterminated quote", text)
			}

			path, rest = append(path, roleStep{key: key}), after
			continue
		}

		switch {
		case rest[0] == '.':
			end := strings.IndexAny(rest[1:], ".[") + 1
			if end == 0 {
				end = len(rest)
			}

			if end == 1 {
				return nil, fmt.Errorf("parse role path %q: empty name", text)
			}

			path, rest = append(path, roleStep{key: rest[1:end]}), rest[end:]
		case strings.HasPrefix(rest, "[?"):
			match, err := roleFilter(rest)
			if err != nil {
				return nil, fmt.Errorf("parse role path %q: %w", text, err)
			}

			path, rest = append(path, roleStep{match: match}), ""
		case rest[0] == '[':
			digits, after, ok := strings.Cut(rest[1:], "]")
			n, err := strconv.Atoi(digits)
			if !ok || err != nil || n < 0 {
				return nil, fmt.Errorf("parse role path %q: invalid index", text)
			}

			path, rest = append(path, roleStep{index: n}), after
		default:
			return nil, fmt.Errorf("parse role path %q: unexpected character", text)
		}
	}

	return path, nil
}

// quotedStep returns the closing delimiter if path starts with a quoted step, or "".
func quotedStep(path string) string {
	switch path[:min(2, len(path))] {
	case `."`:
		return `"`
	case "['":
		return "']"
	case `["`:
		return `"]`
	}

	return ""
}

// Filter forms: a comparison, or a regular expression search.
var (
	comparePattern = regexp.MustCompile(`^\[\?\(?\s*@\s*(==\^|==|!=|\^==|\*==)\s*(?:"([^"]*)"|'([^']*)')\s*\)?\]$`)
	searchPattern  = regexp.MustCompile(`^\[\?\(?\s*search\(\s*@\s*,\s*(?:"([^"]*)"|'([^']*)')\s*\)\s*\)?\]$`)
)

// roleFilter parses a filter such as [?(@ == "editor")] or [?search(@, "^edit")].
func roleFilter(text string) (func(string) bool, error) {
	if m := searchPattern.FindStringSubmatch(text); m != nil {
		pattern, err := regexp.Compile(m[1] + m[2])
		if err != nil {
			return nil, err
		}

		return pattern.MatchString, nil
	}

	m := comparePattern.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("invalid filter %q, or not the last step", text)
	}

	operand := m[2] + m[3]
	switch m[1] {
	case "==":
		return func(s string) bool { return s == operand }, nil
	case "!=":
		return func(s string) bool { return s != operand }, nil
	case "^==":
		return func(s string) bool { return strings.HasPrefix(s, operand) }, nil
	case "==^":
		return func(s string) bool { return strings.HasSuffix(s, operand) }, nil
	}

	return func(s string) bool { return strings.Contains(s, operand) }, nil
}

// roleAt returns the string at a path, or "" if there is nothing. It returns other values, null
// included, as JSON, which PostgreSQL refuses as a role.
func roleAt(v any, path []roleStep) string {
	for _, step := range path {
		switch in := v.(type) {
		case map[string]any:
			if step.match != nil {
				return ""
			}

			var ok bool
			if v, ok = in[step.key]; !ok {
				return ""
			}
		case []any:
			if step.match != nil {
				i := slices.IndexFunc(in, func(one any) bool {
					text, ok := one.(string)
					return ok && step.match(text)
				})
				if i < 0 {
					return ""
				}

				v = in[i]
				continue
			}

			if step.key != "" || step.index >= len(in) {
				return ""
			}

			v = in[step.index]
		default:
			return ""
		}
	}

	if role, ok := v.(string); ok {
		return role
	}

	text, _ := json.Marshal(v) // decoded JSON has no error
	return string(text)
}
