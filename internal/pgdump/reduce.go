package pgdump

import (
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/dialect"
)

// reduced returns a CREATE TABLE without the constraints and defaults that name left-out objects,
// so that the rows are kept, and a note for each. It returns "" if there are none, or if anything
// else names such an object: a column type, for example.
func (l *leftOut) reduced(sql string, s dialect.Subject) (string, []note) {
	ts := dialect.Tokenize(sql, 0)
	if s.Kind != "table" || s.Action != "create" || ts.Raw(s.After) != "(" {
		return "", nil
	}

	elements, end := elementsOf(ts, s.After+1)
	if end == len(ts.All) {
		return "", nil
	}

	var texts []string
	var notes []note
	for _, e := range elements {
		text, what := l.reduceElement(e)
		if what != "" {
			notes = append(notes, note{Changed, "table " + s.Describe() + " without " + what})
		}
		if text != "" {
			texts = append(texts, text)
		}
	}

	text := sql[:ts.All[s.After].End] + strings.Join(texts, ", ") + sql[ts.All[end].Start:]
	if len(notes) == 0 || l.isNamedIn(dialect.Tokenize(text, 0)) {
		return "", nil
	}

	return text, notes
}

// elementsOf returns the elements in a parenthesized list that begins at token i, and the closing
// parenthesis's index.
func elementsOf(ts dialect.Tokens, i int) (all []dialect.Tokens, end int) {
	depth, start := 0, i
	for ; i < len(ts.All); i++ {
		raw := ts.Raw(i)
		switch raw {
		case "(", "[":
			depth++
		case ")", "]":
			depth--
		}

		if depth < 0 || depth == 0 && raw == "," {
			all = append(all, dialect.Tokens{Text: ts.Text, All: ts.All[start:i]})
			start = i + 1
		}
		if depth < 0 {
			return all, i
		}
	}

	return all, i
}

// reduceElement returns a column's or constraint's text without the parts that name left-out
// objects, and describes those parts.
func (l *leftOut) reduceElement(e dialect.Tokens) (text, what string) {
	if len(e.All) == 0 {
		return "", ""
	}

	whole := e.Text[e.All[0].Start:e.All[len(e.All)-1].End]
	if !l.isNamedIn(e) {
		return whole, ""
	}

	switch e.Word(0) {
	case "constraint":
		return "", "constraint " + e.Identifier(1)
	case "check", "exclude":
		return "", "a constraint"
	}

	from := e.Find(1, "default")
	if from < 0 {
		return whole, ""
	}

	to := from + 1
	for depth := 0; to < len(e.All); to++ {
		switch e.Raw(to) {
		case "(", "[":
			depth++
		case ")", "]":
			depth--
		}

		if depth == 0 && slices.Contains([]string{"not", "null", "constraint", "check"}, e.Word(to)) {
			break
		}
	}

	if !l.isNamedIn(dialect.Tokens{Text: e.Text, All: e.All[from:to]}) {
		return whole, ""
	}

	text = e.Text[e.All[0].Start:e.All[from-1].End]
	if to < len(e.All) {
		text += " " + e.Text[e.All[to].Start:e.All[len(e.All)-1].End]
	}

	return text, "the default of column " + e.Identifier(0)
}
