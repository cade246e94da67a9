package migration

import (
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/sqllex"
)

// table is pg_dump's CREATE TABLE statement, in parts.
type table struct {
	name        string // quoted and qualified
	head, tail  string // up to the name; after the columns: PARTITION BY, INHERITS, WITH
	columns     []column
	constraints map[string]string // CONSTRAINT name …, by name
	further     []string          // statements after CREATE TABLE, such as FORCE ROW LEVEL SECURITY
}

// column is a table's column. All texts are as pg_dump writes them.
type column struct {
	name      string // quoted if necessary
	text      string // whole definition
	typ       string
	collate   string // COLLATE …; "" for the type's own
	value     string // default expression
	generated string // GENERATED ALWAYS AS (…) STORED
	notNull   bool
}

// column returns the column with a name, or nil.
func (t table) column(name string) *column {
	if i := slices.IndexFunc(t.columns, func(c column) bool { return c.name == name }); i >= 0 {
		return &t.columns[i]
	}
	return nil
}

// sqlToken is a token with its text.
type sqlToken struct {
	sqllex.Token
	text  string
	depth int // number of parentheses and brackets around it
}

func (t sqlToken) is(texts ...string) bool { return slices.Contains(texts, t.text) }

// tokens returns a text's tokens without comments.
func tokens(text string) []sqlToken {
	var all []sqlToken
	depth := 0
	l := sqllex.New(text)
	for t, ok := l.Next(); ok; t, ok = l.Next() {
		if t.Kind == sqllex.Comment {
			continue
		}

		word := text[t.Start:t.End]
		if word == ")" || word == "]" {
			depth--
		}

		all = append(all, sqlToken{t, word, depth})
		if word == "(" || word == "[" {
			depth++
		}
	}

	return all
}

// parseTable reads a table's definition in a dump. It reports false for an unknown form.
func parseTable(definition string) (table, bool) {
	statements := sqllex.Split(definition)
	if len(statements) == 0 {
		return table{}, false
	}

	t := table{constraints: map[string]string{}}
	for _, s := range statements[1:] {
		t.further = append(t.further, strings.TrimSpace(s.Text))
	}

	text := statements[0].Text
	all := tokens(text)
	keyword := slices.IndexFunc(all, func(s sqlToken) bool { return s.is("TABLE") })
	open := slices.IndexFunc(all, func(s sqlToken) bool { return s.is("(") })
	if keyword < 0 || open < keyword {
		return t, false
	}

	end := slices.IndexFunc(all[open:], func(s sqlToken) bool { return s.is(")") && s.depth == 0 }) + open
	if end < open {
		return t, false
	}

	t.head = strings.TrimSpace(text[:all[keyword].End])
	t.name = strings.TrimSpace(text[all[keyword].End:all[open].Start])
	t.tail = strings.TrimSpace(text[all[end].End:])

	start := open + 1
	for i := start; i <= end; i++ {
		last := i == end
		if !last && (!all[i].is(",") || all[i].depth != 1) {
			continue
		}

		if i > start && !t.add(text[all[start].Start:all[i-1].End], all[start:i]) {
			return t, false
		}

		start = i + 1
	}

	return t, true
}

// add adds a column or a constraint.
func (t *table) add(text string, item []sqlToken) bool {
	if item[0].is("CONSTRAINT") && len(item) > 2 {
		t.constraints[item[1].text] = text
		return true
	}

	c := column{name: item[0].text, text: text}
	start := item[0].Start
	section := func(from, to int) string { return text[item[from].Start-start : item[to-1].End-start] }

	from := 1
	for from < len(item) {
		to := from + 1
		for to < len(item) && !startsSection(item[to]) {
			to++
		}

		switch part := section(from, to); {
		case from == 1:
			c.typ = part
		case item[from].is("COLLATE"):
			c.collate = part
		case item[from].is("DEFAULT"):
			c.value = strings.TrimSpace(strings.TrimPrefix(part, "DEFAULT"))
		case item[from].is("GENERATED"):
			c.generated = part
		case item[from].is("NOT"):
			c.notNull = true
		case item[from].is("CONSTRAINT"): // names a NOT NULL
		default:
			return false
		}

		from = to
	}

	t.columns = append(t.columns, c)
	return c.typ != ""
}

// startsSection reports whether a token starts a section in a column's definition. pg_dump writes
// keywords in capitals, and types in small letters.
func startsSection(t sqlToken) bool {
	return t.depth == 1 && t.Kind == sqllex.Word && t.is("COLLATE", "DEFAULT", "GENERATED", "NOT", "CONSTRAINT")
}
