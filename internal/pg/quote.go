package pg

import (
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/sqllex"
)

// Quote returns a possibly qualified identifier as SQL text: Quote("public", "a\"b") is
// "public"."a""b". All identifiers in SQL text must pass through it.
func Quote(parts ...string) string { return pgx.Identifier(parts).Sanitize() }

// Literal returns s as an SQL literal, for statements that take no arguments (utility statements
// such as CREATE FUNCTION). The literal means the same under any setting of
// standard_conforming_strings. Like [Quote] it drops NUL characters, which have no literal; callers
// reject them before.
func Literal(s string) string { return sqllex.Literal(s) }
