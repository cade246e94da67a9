package dialect

import (
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/sqllex"
)

// Tokens are a statement's tokens, without comments.
type Tokens struct {
	Text string
	All  []sqllex.Token
}

// Tokenize returns a text's first tokens, or all if limit is 0.
func Tokenize(text string, limit int) Tokens {
	ts := Tokens{Text: text}
	l := sqllex.New(text)
	for t, ok := l.Next(); ok && (limit == 0 || len(ts.All) < limit); t, ok = l.Next() {
		if t.Kind != sqllex.Comment {
			ts.All = append(ts.All, t)
		}
	}

	return ts
}

// Raw returns a token's text, or "" beyond the last one.
func (ts Tokens) Raw(i int) string {
	if i < 0 || i >= len(ts.All) {
		return ""
	}
	return ts.Text[ts.All[i].Start:ts.All[i].End]
}

// Kind returns a token's kind, or 0 beyond the last one.
func (ts Tokens) Kind(i int) sqllex.Kind {
	if i < 0 || i >= len(ts.All) {
		return 0
	}
	return ts.All[i].Kind
}

// Word returns a keyword or unquoted name in lower case, or "" for any other token.
func (ts Tokens) Word(i int) string {
	if ts.Kind(i) != sqllex.Word {
		return ""
	}
	return strings.ToLower(ts.Raw(i))
}

// Has reports whether the words from i on are a phrase.
func (ts Tokens) Has(i int, phrase ...string) bool {
	for n, w := range phrase {
		if ts.Word(i+n) != w {
			return false
		}
	}
	return true
}

// Skip returns the index after a phrase, or i if the words from i on are others.
func (ts Tokens) Skip(i int, phrase ...string) int {
	if ts.Has(i, phrase...) {
		return i + len(phrase)
	}
	return i
}

// SkipAny returns the index of the first token from i on that is not in words.
func (ts Tokens) SkipAny(i int, words ...string) int {
	for ts.Word(i) != "" && slices.Contains(words, ts.Word(i)) {
		i++
	}
	return i
}

// Find returns a word's index outside parentheses, from i on, or -1.
func (ts Tokens) Find(i int, word string) int {
	depth := 0
	for ; i < len(ts.All); i++ {
		switch ts.Raw(i) {
		case "(":
			depth++
		case ")":
			depth--
		}
		if depth == 0 && ts.Word(i) == word {
			return i
		}
	}

	return -1
}

// Identifier returns a token's name as PostgreSQL stores it, or "" if the token is no name.
func (ts Tokens) Identifier(i int) string {
	switch raw := ts.Raw(i); ts.Kind(i) {
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

// Name is a qualified name: schema, name, and perhaps more.
type Name []string

// Schema returns "" for a name that is not qualified.
func (n Name) Schema() string {
	if len(n) < 2 {
		return ""
	}
	return n[0]
}

func (n Name) String() string { return strings.Join(n, ".") }

// Name returns the name at i and the index after it. An operator needs a qualified name.
func (ts Tokens) Name(i int) (Name, int) {
	var n Name
	for {
		part := ts.Identifier(i)
		if part == "" && ts.Kind(i) == sqllex.Operator && len(n) > 0 {
			return append(n, ts.Raw(i)), i + 1
		}
		if part == "" {
			return n, i
		}

		n = append(n, part)
		if ts.Raw(i+1) != "." {
			return n, i + 1
		}

		i += 2
	}
}
