package sqllex

import "strings"

// Literal returns s as an SQL literal, which means the same under any setting of
// standard_conforming_strings. It drops NUL characters, which have no literal; callers reject them
// before.
func Literal(s string) string {
	s = strings.ReplaceAll(s, "\x00", "")
	literal := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if strings.Contains(s, `\`) {
		return " E" + strings.ReplaceAll(literal, `\`, `\\`)
	}

	return literal
}
