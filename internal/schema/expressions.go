package schema

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/sqllex"
)

const maxExpression = 10_000 // bytes

// parseExpression checks that a text is lexically unambiguous and can't escape from the parentheses
// around it: brackets are paired and quotes are closed. It rejects everything that PostgreSQL might
// lex differently: comments, other quotes and statement ends. Its errors are texts for the client.
func parseExpression(text string) error {
	if len(text) > maxExpression || !pg.Storable(text) {
		return errors.New("must be text of at most 10000 bytes without a NUL")
	}

	var open []byte // brackets
	l := sqllex.New(text)
	for t, ok := l.Next(); ok; t, ok = l.Next() {
		switch c := text[t.Start]; t.Kind {
		case sqllex.Comment:
			return errors.New("has a comment")
		case sqllex.String, sqllex.QuotedName:
			if (c != '\'' && c != '"') || (t.Start > 0 && joinsQuote(text[t.Start-1])) {
				return errors.New(
					"has a quote directly after a word: insert a space; only '…' and \"…\" are supported as quotes",
				)
			}
			if t.Open {
				return errors.New("has an unclosed quote")
			}
		case sqllex.Punctuation:
			switch c {
			case '(', '[':
				open = append(open, c)
			case ')', ']':
				if len(open) == 0 || open[len(open)-1] != map[byte]byte{')': '(', ']': '['}[c] {
					return errors.New("closes a bracket that is not open")
				}
				open = open[:len(open)-1]
			}
		}

		if t.Kind != sqllex.String && t.Kind != sqllex.QuotedName {
			if i := strings.IndexAny(text[t.Start:t.End], ";$\\"); i >= 0 {
				return errors.New("has a character that is not allowed outside of quotes: " + text[t.Start+i:][:1])
			}
		}
	}

	if len(open) > 0 {
		return errors.New("has an unclosed bracket")
	}

	return nil
}

// joinsQuote reports whether a byte can change the kind of a quote after it, or make that quote
// part of a word.
func joinsQuote(c byte) bool {
	return c == '_' || c == '$' || c == '&' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
		c >= utf8.RuneSelf
}

// condition returns a client's text as a parenthesized condition on rows of a table. This package
// lexes the text; then PostgreSQL parses it as the owner, without running it. It fails with
// Unprocessable on the field. Names resolve as in [withSearchPath], so the condition is for a
// statement within it.
func condition(ctx context.Context, tx pgx.Tx, t Table, field, text string) (string, error) {
	return conditionOn(ctx, tx, " from only "+pg.Quote(t.Schema, t.Name), field, text)
}

// conditionOn is condition for rows from a trusted from clause.
func conditionOn(ctx context.Context, tx pgx.Tx, from, field, text string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", fault.OnField(fault.Unprocessable, field, "required", "must not be empty")
	}

	if err := parseExpression(text); err != nil {
		return "", fault.OnField(fault.Unprocessable, field, "invalid_expression", "%s", err)
	}

	// Parentheses alone would accept a subquery; nullif accepts exactly one expression.
	head := "select" + from + " where nullif("
	_, err := tx.Conn().PgConn().Prepare(ctx, "", head+text+", null)", nil)

	return "(" + strings.TrimSpace(text) + ")", translateExpression(err, field, head, text)
}

// translateExpression translates PostgreSQL's error for an expression after head in a statement.
func translateExpression(err error, field, head, text string) error {
	return translateText(err, fragment{before: head, text: text}, func(state string) *fault.Error {
		if !blamesUser(state) {
			return nil
		}
		return badExpression(field, state)
	})
}

// badExpression translates an SQLSTATE for a condition.
func badExpression(field, state string) *fault.Error {
	code, message := "invalid_expression", "is not a condition on rows of the table"
	switch state {
	case "42601": // syntax_error
		code, message = "syntax_error", "has a syntax error"
	// undefined table, column, function, object or schema
	case "42P01", "42703", "42883", "42704", "3F000":
		code, message = "unknown_name", "uses a name that does not exist, or not for these types"
	case "42804", "22P02": // datatype_mismatch, invalid_text_representation
		code, message = "invalid_type", "is not a boolean, or has a value of the wrong type"
	case "42501": // insufficient_privilege
		code, message = "not_allowed", "uses an object without the required privileges"
		// feature_not_supported (subquery), aggregate, window function, not immutable, recursive
	case "0A000", "42803", "42P20", "42P17":
		code, message = "not_supported", "contains an expression that conditions do not support"
	}

	return onText(field, code, message)
}

// withSearchPath runs f with a search_path of catalog, schema, public and extensions, in this
// order. So user objects can't shadow those in the catalog.
func withSearchPath(ctx context.Context, tx pgx.Tx, schema string, f func() error) error {
	set := func(path string) error {
		_, err := pg.Exec(ctx, tx, `select pg_catalog.set_config('search_path', @path, true)`,
			pgx.StrictNamedArgs{"path": path})
		return err
	}
	if err := set(searchPath(schema)); err != nil {
		return err
	}

	if err := f(); err != nil {
		return err // search_path stays, since the transaction rolls back
	}

	return set("pg_catalog, pg_temp")
}

// searchPath returns the search path for user expressions on a schema's tables.
func searchPath(schema string) string {
	return "pg_catalog, " + pg.Quote(schema) + ", public, " + ExtensionsSchema + ", pg_temp"
}
