package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/sqllex"
)

// columnFlag is the flag --column, which takes columns as SQL writes them: 'id bigint primary key'.
type columnFlag []column

// column is a column in the form of the API.
type column struct {
	Name            string `json:"name"`
	Type            string `json:"type"`
	Primary         bool   `json:"primary,omitempty"`
	NotNull         bool   `json:"notNull,omitempty"`
	Unique          bool   `json:"unique,omitempty"`
	DefaultValue    string `json:"defaultValue,omitempty"`
	ReferenceTable  string `json:"referenceTable,omitempty"`
	ReferenceColumn string `json:"referenceColumn,omitempty"`
}

// String returns no default for help.
func (f *columnFlag) String() string { return "" }

// Type returns the name of the type in help.
func (f *columnFlag) Type() string { return "sql" }

// Set adds a column.
func (f *columnFlag) Set(text string) error {
	c, err := parseColumn(text)
	if err != nil {
		return err
	}

	*f = append(*f, c)
	return nil
}

// hasColumns reports whether the body has new columns of a table.
func (r *remote) hasColumns() bool {
	s, ok := r.body.Properties["columns"]
	if !ok {
		return false
	}

	item := itemOf(r.document, r.document.resolve(s))
	return slices.Contains(item.Required, "name") && slices.Contains(item.Required, "type")
}

// columnWords begin a clause of a column's definition.
var columnWords = []string{"primary", "not", "null", "unique", "default", "references", "check", "generated", "collate",
	"constraint", "on", "deferrable", "initially"}

// columnParser reads the definition of a column.
type columnParser struct {
	text   string
	tokens []sqllex.Token
}

// parseColumn parses a column's definition in SQL.
func parseColumn(text string) (column, error) {
	p := columnParser{text: text}
	for l := sqllex.New(text); ; {
		token, ok := l.Next()
		if !ok {
			break
		}
		if token.Open {
			return column{}, errors.New("has a quote without an end")
		}

		p.tokens = append(p.tokens, token)
	}

	c := column{Name: p.identifier()}
	c.Type = p.until(0)
	if c.Name == "" || c.Type == "" {
		return c, errors.New("takes a name and a type: 'id bigint primary key'")
	}

	for len(p.tokens) > 0 {
		if err := p.clause(&c); err != nil {
			return c, err
		}
	}

	return c, nil
}

// clause reads a clause into a column.
func (p *columnParser) clause(c *column) error {
	switch {
	case p.skip("primary", "key"):
		c.Primary = true
	case p.skip("not", "null"):
		c.NotNull = true
	case p.skip("null"):
	case p.skip("unique"):
		c.Unique = true
	case p.skip("default"):
		c.DefaultValue = p.until(1) // default null
	case p.skip("references"):
		table, key, ok := strings.Cut(strings.TrimSuffix(p.until(0), ")"), "(")
		if !ok {
			return errors.New("needs the column after references: 'author bigint references authors (id)'")
		}
		c.ReferenceTable, c.ReferenceColumn = strings.TrimSpace(table), strings.TrimSpace(key)
	default:
		return fmt.Errorf("takes no %q; socle sql run takes any SQL", p.peek())
	}

	return nil
}

// peek returns the next token in lower case; "" at the end.
func (p *columnParser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return strings.ToLower(p.text[p.tokens[0].Start:p.tokens[0].End])
}

// identifier reads a name, without its quotes.
func (p *columnParser) identifier() string {
	if len(p.tokens) == 0 {
		return ""
	}

	name := p.text[p.tokens[0].Start:p.tokens[0].End]
	p.tokens = p.tokens[1:]
	if inner, ok := strings.CutPrefix(name, `"`); ok {
		return strings.ReplaceAll(strings.TrimSuffix(inner, `"`), `""`, `"`)
	}

	return strings.ToLower(name)
}

// skip reads words, or nothing if others follow.
func (p *columnParser) skip(words ...string) bool {
	rest := columnParser{p.text, p.tokens}
	for _, w := range words {
		if rest.peek() != w {
			return false
		}

		rest.tokens = rest.tokens[1:]
	}

	p.tokens = rest.tokens
	return true
}

// until reads at least a number of tokens, and further ones until a word outside of parentheses
// begins a clause.
func (p *columnParser) until(least int) string {
	depth, n := 0, 0
	for ; n < len(p.tokens); n++ {
		word := strings.ToLower(p.text[p.tokens[n].Start:p.tokens[n].End])
		if depth == 0 && n >= least && slices.Contains(columnWords, word) {
			break
		}

		depth += strings.Count(word, "(") - strings.Count(word, ")")
	}
	if n == 0 {
		return ""
	}

	text := p.text[p.tokens[0].Start:p.tokens[n-1].End]
	p.tokens = p.tokens[n:]

	return text
}
