package standalone

import (
	"fmt"
	"strconv"
	"strings"
)

// parseFile parses a configuration file: one name = value per line, text in double quotes, numbers
// and booleans without, comments after #. In text, $(NAME) stands for an environment variable and
// $$ for a dollar sign. The last of several lines with the same name wins.
func parseFile(text string, env map[string]string) (map[string]string, error) {
	values := map[string]string{}
	number := 0
	for line := range strings.Lines(text) {
		number++

		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}

		name, rest, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("line %d is not name = value", number)
		}

		name = strings.TrimSpace(name)

		value, err := parseValue(strings.TrimSpace(rest), env)
		if err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", number, name, err)
		}

		values[name] = value
	}

	return values, nil
}

func parseValue(text string, env map[string]string) (string, error) {
	if !strings.HasPrefix(text, `"`) {
		unquoted, _, _ := strings.Cut(text, "#")
		unquoted = strings.TrimSpace(unquoted)
		if _, err := strconv.ParseFloat(unquoted, 64); err != nil {
			if _, err := boolean(unquoted); err != nil {
				return "", fmt.Errorf("text must be in double quotes")
			}
		}

		return unquoted, nil
	}

	quoted, err := strconv.QuotedPrefix(text)
	if err != nil {
		return "", fmt.Errorf("the text has no closing quote or an invalid escape")
	}

	if after := strings.TrimSpace(text[len(quoted):]); after != "" && after[0] != '#' {
		return "", fmt.Errorf("unexpected characters after the text")
	}

	value, err := strconv.Unquote(quoted)
	if err != nil {
		return "", err
	}

	return interpolate(value, env)
}

// interpolate replaces references to environment variables.
func interpolate(text string, env map[string]string) (string, error) {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(text, "$")
		b.WriteString(before)

		switch {
		case !ok:
			return b.String(), nil
		case strings.HasPrefix(after, "$"):
			b.WriteByte('$')
			text = after[1:]
		case strings.HasPrefix(after, "("):
			name, rest, ok := strings.Cut(after[1:], ")")
			value, exists := env[name]
			if !ok || !exists {
				return "", fmt.Errorf("environment variable $(%s) is not set", name)
			}

			b.WriteString(value)
			text = rest
		default:
			return "", fmt.Errorf("write a dollar sign as $$")
		}
	}
}
