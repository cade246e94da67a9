package pg

import (
	"strings"

	"github.com/jackc/pgx/v5"
)

// Quote returns a possibly qualified identifier as SQL text: Quote("public", "a\"b") is
// "public"."a""b". Identifiers reach SQL text in no other way.
func Quote(parts ...string) string { return pgx.Identifier(parts).Sanitize() }

// Literal returns a string as an SQL literal, for the statements that take no arguments
// (utility statements such as CREATE FUNCTION). The literal means the same under any
// setting of standard_conforming_strings. Text with a NUL has no literal: the NUL is dropped,
// as by [Quote]; callers refuse it before.
func Literal(s string) string {
	s = strings.ReplaceAll(s, "\x00", "")
	quoted := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if strings.Contains(s, `\`) {
		return " E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}

	return quoted
}
