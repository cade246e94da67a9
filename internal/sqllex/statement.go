package sqllex

import "strings"

// Statement is a statement in a text.
type Statement struct {
	Text  string   // without its semicolon, with the space and comments before it
	Char  int      // characters before it
	Words []string // the first words in lower case; the first is "" for another token
}

// FirstChar returns the number of characters in the text before the statement's first token.
func (s Statement) FirstChar() int {
	l := New(s.Text)
	for t, ok := l.Next(); ok; t, ok = l.Next() {
		if t.Kind != Comment {
			return s.Char + t.Char
		}
	}

	return s.Char
}

// leadingWords is how many words identify a statement: create or replace function.
const leadingWords = 4

// Split splits a text into its statements at semicolons, as psql does: not in quotes, comments,
// parentheses and function bodies. It omits empty statements.
func Split(text string) []Statement {
	var all []Statement
	l := New(text)
	for start, char := 0, 0; ; {
		words, semicolon, ok := l.statement()
		end := len(text)
		if ok {
			end = semicolon.Start
		}

		if len(words) > 0 {
			all = append(all, Statement{Text: text[start:end], Char: char, Words: words})
		}
		if !ok {
			return all
		}

		start, char = semicolon.End, semicolon.Char+1
	}
}

// Cut returns a text's first statement and the text after its semicolon. It returns false if no
// semicolon ends the statement, which then is the whole text. An empty statement has no words.
func Cut(text string) (s Statement, rest string, ok bool) {
	words, semicolon, ok := New(text).statement()
	if !ok {
		return Statement{Text: text, Words: words}, "", false
	}

	return Statement{Text: text[:semicolon.Start], Words: words}, text[semicolon.End:], true
}

// Complete reports whether every statement in a text ends with its semicolon.
func Complete(text string) bool {
	l := New(text)
	for {
		if words, _, ok := l.statement(); !ok {
			return len(words) == 0
		}
	}
}

// ScanStatement is a [bufio.SplitFunc] for the statements in a stream, as [Split] returns them. The
// scanner's buffer bounds the statement size.
func ScanStatement(data []byte, atEOF bool) (advance int, token []byte, err error) {
	words, semicolon, ok := New(string(data)).statement()
	advance = semicolon.End
	if !ok {
		if !atEOF {
			return 0, nil, nil
		}

		advance, semicolon.Start = len(data), len(data)
	}

	if len(words) == 0 {
		return advance, nil, nil
	}

	return advance, data[:semicolon.Start], nil
}

// statement reads to the end of a statement. It returns the first words, none if it is empty, and
// the semicolon that ends it, or false at the end of the text.
func (l *Lexer) statement() (words []string, semicolon Token, ok bool) {
	parens, blocks := 0, 0 // open parentheses; open BEGIN ATOMIC and CASE in a function body
	for {
		t, ok := l.Next()
		if !ok {
			return words, Token{}, false
		}
		if t.Kind == Comment {
			continue
		}

		text := l.text[t.Start:t.End]
		if text == ";" && parens == 0 && blocks == 0 {
			return words, t, true
		}

		if len(words) == 0 && t.Kind != Word {
			words = append(words, "")
		}

		switch {
		case text == "(":
			parens++
		case text == ")" && parens > 0:
			parens--
		case t.Kind == Word:
			word := strings.ToLower(text)
			if len(words) < leadingWords {
				words = append(words, word)
			}

			if parens == 0 && isRoutine(words) {
				blocks += nesting(word, blocks)
			}
		}
	}
}

// isRoutine reports whether a statement's first words create a function or procedure.
func isRoutine(words []string) bool {
	if len(words) > 3 && words[1] == "or" && words[2] == "replace" {
		words = []string{words[0], words[3]}
	}
	return len(words) > 1 && words[0] == "create" && (words[1] == "function" || words[1] == "procedure")
}

// nesting returns by how much a word changes the number of open blocks in a function body.
func nesting(word string, blocks int) int {
	switch {
	case word == "begin", word == "case" && blocks > 0:
		return 1
	case word == "end" && blocks > 0:
		return -1
	}

	return 0
}
