package pgdump

import (
	"slices"
	"strings"
)

// reduced returns a CREATE TABLE without the constraints and defaults that name left-out objects,
// so that the rows are kept, and a note for each. It returns "" if there are none, or if more of
// the table names such an object: the type of a column, for example.
func (l *leftOut) reduced(sql string, s subject) (string, []note) {
	ts := tokenize(sql, 0)
	if s.kind != "table" || s.action != "create" || ts.raw(s.after) != "(" {
		return "", nil
	}

	elements, end := ts.elements(s.after + 1)
	if end == len(ts.all) {
		return "", nil
	}

	var kept []string
	var notes []note
	for _, e := range elements {
		text, what := l.reduceElement(e)
		if what != "" {
			notes = append(notes, note{Changed, "table " + s.describe() + " without " + what})
		}
		if text != "" {
			kept = append(kept, text)
		}
	}

	text := sql[:ts.all[s.after].End] + strings.Join(kept, ", ") + sql[ts.all[end].Start:]
	if len(notes) == 0 || l.named(tokenize(text, 0)) {
		return "", nil
	}

	return text, notes
}

// elements returns the parts of a list in parentheses that begins at token i, and the index of the
// parenthesis that closes it.
func (ts tokens) elements(i int) (all []tokens, end int) {
	depth, start := 0, i
	for ; i < len(ts.all); i++ {
		raw := ts.raw(i)
		switch raw {
		case "(", "[":
			depth++
		case ")", "]":
			depth--
		}

		if depth < 0 || depth == 0 && raw == "," {
			all = append(all, tokens{ts.text, ts.all[start:i]})
			start = i + 1
		}
		if depth < 0 {
			return all, i
		}
	}

	return all, i
}

// reduceElement returns the text of a column or constraint without what names left-out objects, and
// a description of that.
func (l *leftOut) reduceElement(e tokens) (text, what string) {
	if len(e.all) == 0 {
		return "", ""
	}

	whole := e.text[e.all[0].Start:e.all[len(e.all)-1].End]
	if !l.named(e) {
		return whole, ""
	}

	switch e.word(0) {
	case "constraint":
		return "", "constraint " + e.identifier(1)
	case "check", "exclude":
		return "", "a constraint"
	}

	from := e.find(1, "default")
	if from < 0 {
		return whole, ""
	}

	to := from + 1
	for depth := 0; to < len(e.all); to++ {
		switch e.raw(to) {
		case "(", "[":
			depth++
		case ")", "]":
			depth--
		}

		if depth == 0 && slices.Contains([]string{"not", "null", "constraint", "check"}, e.word(to)) {
			break
		}
	}

	if !l.named(tokens{e.text, e.all[from:to]}) {
		return whole, ""
	}

	text = e.text[e.all[0].Start:e.all[from-1].End]
	if to < len(e.all) {
		text += " " + e.text[e.all[to].Start:e.all[len(e.all)-1].End]
	}

	return text, "the default of column " + e.identifier(0)
}
