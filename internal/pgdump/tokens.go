package pgdump

import (
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/sqllex"
)

// maxHead is the number of tokens that rules look at in statements with data.
const maxHead = 64

// tokens are the tokens of a statement, without comments.
type tokens struct {
	text string
	all  []sqllex.Token
}

// tokenize returns the first tokens of a text, or all if limit is 0.
func tokenize(text string, limit int) tokens {
	ts := tokens{text: text}
	l := sqllex.New(text)
	for t, ok := l.Next(); ok && (limit == 0 || len(ts.all) < limit); t, ok = l.Next() {
		if t.Kind != sqllex.Comment {
			ts.all = append(ts.all, t)
		}
	}

	return ts
}

// raw returns the text of a token, or "" beyond the last one.
func (ts tokens) raw(i int) string {
	if i < 0 || i >= len(ts.all) {
		return ""
	}
	return ts.text[ts.all[i].Start:ts.all[i].End]
}

func (ts tokens) kind(i int) sqllex.Kind {
	if i < 0 || i >= len(ts.all) {
		return 0
	}
	return ts.all[i].Kind
}

// word returns a keyword or unquoted name in lower case, or "" for any other token.
func (ts tokens) word(i int) string {
	if ts.kind(i) != sqllex.Word {
		return ""
	}
	return strings.ToLower(ts.raw(i))
}

// has reports whether the words from i on are those of a phrase.
func (ts tokens) has(i int, phrase ...string) bool {
	for n, w := range phrase {
		if ts.word(i+n) != w {
			return false
		}
	}
	return true
}

// skip returns the index after a phrase, or i if the words from i on are others.
func (ts tokens) skip(i int, phrase ...string) int {
	if ts.has(i, phrase...) {
		return i + len(phrase)
	}
	return i
}

// skipAny returns the index of the first token from i on that is none of some words.
func (ts tokens) skipAny(i int, words ...string) int {
	for ts.word(i) != "" && slices.Contains(words, ts.word(i)) {
		i++
	}
	return i
}

// find returns the index of a word outside parentheses, from i on, or -1.
func (ts tokens) find(i int, word string) int {
	depth := 0
	for ; i < len(ts.all); i++ {
		switch ts.raw(i) {
		case "(":
			depth++
		case ")":
			depth--
		}
		if depth == 0 && ts.word(i) == word {
			return i
		}
	}

	return -1
}

// identifier returns the name of a token as PostgreSQL stores it, or "" if the token is none.
func (ts tokens) identifier(i int) string {
	switch raw := ts.raw(i); ts.kind(i) {
	case sqllex.Word:
		return strings.ToLower(raw)
	case sqllex.QuotedName:
		if !strings.HasPrefix(raw, `"`) || len(raw) < 2 { // U&"…"
			return raw
		}
		return strings.ReplaceAll(raw[1:len(raw)-1], `""`, `"`)
	}

	return ""
}

// name is a qualified name: schema, name, and perhaps more.
type name []string

// schema returns "" for a name that is not qualified.
func (n name) schema() string {
	if len(n) < 2 {
		return ""
	}
	return n[0]
}

func (n name) String() string { return strings.Join(n, ".") }

// name returns the name at i, of an operator only if it is qualified, and the index after it.
func (ts tokens) name(i int) (name, int) {
	var n name
	for {
		part := ts.identifier(i)
		if part == "" && ts.kind(i) == sqllex.Operator && len(n) > 0 {
			return append(n, ts.raw(i)), i + 1
		}
		if part == "" {
			return n, i
		}

		n = append(n, part)
		if ts.raw(i+1) != "." {
			return n, i + 1
		}

		i += 2
	}
}
