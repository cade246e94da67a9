package migration

import (
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/sqllex"
)

// table is a CREATE TABLE statement of pg_dump, in parts.
type table struct {
	name        string // quoted and qualified
	head, tail  string // up to the name; after the columns: PARTITION BY, INHERITS, WITH
	columns     []column
	constraints map[string]string // CONSTRAINT name …, by name
	further     []string          // statements after CREATE TABLE, such as FORCE ROW LEVEL SECURITY
}

// column is a column of a table. All texts are as pg_dump writes them.
type column struct {
	name      string // quoted if necessary
	text      string // all of it
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

// tokens returns the tokens of a text without comments.
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

// parseTable reads the definition of a table in a dump. It reports false for a form that it does
// not know.
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
		case item[from].is("CONSTRAINT"): // the name of NOT NULL
		default:
			return false
		}

		from = to
	}

	t.columns = append(t.columns, c)
	return c.typ != ""
}

// startsSection reports whether a token starts a part of a column's definition. pg_dump writes
// keywords in capitals, and types in small letters.
func startsSection(t sqlToken) bool {
	return t.depth == 1 && t.Kind == sqllex.Word && t.is("COLLATE", "DEFAULT", "GENERATED", "NOT", "CONSTRAINT")
}

// alterTable returns the statements that turn one table into another, and the columns that change
// their type or go. Nothing can change its inheritance and partitioning: rest describes that.
func alterTable(from, to table, defaults func(column string) bool) (all []change, moved []string, rest string) {
	alter := "ALTER TABLE " + to.name + " "
	if from.tail != to.tail || from.head != to.head {
		rest = "its storage, inheritance or partitioning differs"
	}
	if inheritance(from.tail) != inheritance(to.tail) { // the list of columns omits inherited ones
		return nil, nil, rest
	}

	for _, name := range sortedKeys(from.constraints) {
		if from.constraints[name] != to.constraints[name] {
			all = append(all, change{sql: alter + "DROP CONSTRAINT " + name})
		}
	}

	for _, c := range to.columns {
		old := from.column(c.name)
		switch {
		case old == nil:
			all = append(all, addColumn(alter, c))
		case old.text != c.text && c.generated != "" && (old.generated != c.generated || old.typ != c.typ):
			all = append(all,
				change{sql: alter + "DROP COLUMN " + c.name, warning: warnRewrite},
				change{sql: alter + "ADD COLUMN " + c.text, warning: warnRewrite})
			moved = append(moved, c.name)
		case old.text != c.text:
			changes, retyped := alterColumn(alter, *old, c, defaults(c.name))
			all = append(all, changes...)
			if retyped {
				moved = append(moved, c.name)
			}
		}
	}

	for _, c := range from.columns {
		if to.column(c.name) == nil {
			all = append(all, change{sql: alter + "DROP COLUMN " + c.name, warning: warnLoss})
			moved = append(moved, c.name)
		}
	}

	for _, name := range sortedKeys(to.constraints) {
		if from.constraints[name] != to.constraints[name] {
			all = append(all, change{sql: alter + "ADD " + to.constraints[name], warning: warnScan})
		}
	}

	for _, s := range from.further {
		if slices.Contains(to.further, s) {
			continue
		}

		if undo := undoFurther(s); undo != "" {
			all = append(all, change{sql: undo})
		} else { // perhaps another value replaces it
			rest = "nothing undoes " + s
		}
	}

	for _, s := range to.further {
		if !slices.Contains(from.further, s) {
			all = append(all, change{sql: s})
		}
	}

	return all, moved, rest
}

// inheritance returns the INHERITS clause of the text after a table's columns.
func inheritance(tail string) string {
	list, inherits := strings.CutPrefix(tail, "INHERITS (")
	list, _, _ = strings.Cut(list, ")")
	if !inherits {
		return ""
	}

	return list
}

func addColumn(alter string, c column) change {
	added := change{sql: alter + "ADD COLUMN " + c.text}
	switch {
	case c.generated != "":
		added.warning = warnRewrite
	case c.notNull && c.value == "":
		added.warning = warnRows
	case strings.Contains(c.value, "("): // perhaps volatile: a value per row
		added.warning = warnRewrite
	}

	return added
}

// alterColumn returns the changes of a column, and whether its type changes. hasDefault tells that
// the default of the column is an entry of its own.
func alterColumn(alter string, from, to column, hasDefault bool) (all []change, retyped bool) {
	alter += "ALTER COLUMN " + to.name + " "
	retyped = from.typ != to.typ || from.collate != to.collate

	if from.generated != "" && to.generated == "" {
		all = append(all, change{sql: alter + "DROP EXPRESSION"})
	}

	value := from.value
	if retyped {
		if value != "" {
			all = append(all, change{sql: alter + "DROP DEFAULT"})
			value = ""
		}

		all = append(all, change{
			sql: strings.TrimSpace(alter+"TYPE "+to.typ+" "+to.collate) + " USING " + to.name + "::" + to.typ,

			warning: warnRewrite,
		})
	}

	if value != to.value && !hasDefault {
		if to.value == "" {
			all = append(all, change{sql: alter + "DROP DEFAULT"})
		} else {
			all = append(all, change{sql: alter + "SET DEFAULT " + to.value})
		}
	}

	switch {
	case !from.notNull && to.notNull:
		all = append(all, change{sql: alter + "SET NOT NULL", warning: warnScan})
	case from.notNull && !to.notNull:
		all = append(all, change{sql: alter + "DROP NOT NULL"})
	}

	return all, retyped
}

// undoFurther returns the statement that undoes one that pg_dump writes after CREATE TABLE, or ""
// if it is unknown.
func undoFurther(s string) string {
	for done, undo := range map[string]string{
		" FORCE ROW LEVEL SECURITY": " NO FORCE ROW LEVEL SECURITY",
	} {
		if before, ok := strings.CutSuffix(s, done); ok {
			return before + undo
		}
	}

	for mark, undo := range map[string]string{
		" REPLICA IDENTITY ": " REPLICA IDENTITY DEFAULT", " SET STATISTICS ": " SET STATISTICS -1",
		" SET COMPRESSION ": " SET COMPRESSION default",
	} {
		if before, _, ok := strings.Cut(s, mark); ok {
			return before + undo
		}
	}

	if before, options, ok := strings.Cut(strings.TrimSuffix(s, ")"), " SET ("); ok {
		names := strings.Split(options, ", ")
		for i, option := range names {
			names[i], _, _ = strings.Cut(option, "=")
		}

		return before + " RESET (" + strings.Join(names, ", ") + ")"
	}

	return ""
}
