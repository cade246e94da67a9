// Package sqllex splits SQL text into tokens and statements by PostgreSQL's lexical rules (scan.l
// in version 18, with standard_conforming_strings on). It knows no grammar: whatever PostgreSQL's
// parser would reject is a token too.
package sqllex

import (
	"strings"
	"unicode/utf8"
)

// Kind is a token kind.
type Kind uint8

// Token kinds.
const (
	Word         Kind = iota + 1 // keyword or unquoted name
	QuotedName                   // "…" or U&"…"
	String                       // '…', also with a prefix: E, B, X, N or U&
	DollarString                 // $tag$…$tag$
	Number                       // with letters that directly follow it, which PostgreSQL rejects
	Parameter                    // $1
	Operator                     // operator characters, such as + or <>
	Punctuation                  // any other character; :: and .. are two
	Comment                      // to the line's end, or a block with nested blocks
)

// Token is a token in a text.
type Token struct {
	Kind       Kind
	Start, End int  // byte offsets in the text
	Char       int  // characters before Start; an invalid byte counts as one
	Open       bool // unclosed quote or comment
}

// Lexer returns a text's tokens, without the space between them.
type Lexer struct {
	text    string
	at      int // next byte to read
	charEnd int // first byte that chars does not include
	chars   int

	// A string continues in a quote on a further line. Each quote is a token, but all quotes in an
	// escape string have escapes.
	escapes bool // the previous token, apart from line comments, is an escape string
	newline bool // a line has ended since
}

// New returns a Lexer for a text.
func New(text string) *Lexer { return &Lexer{text: text} }

// Next returns the next token, or false after the last one.
func (l *Lexer) Next() (Token, bool) {
	l.skipSpace()
	if l.at == len(l.text) {
		return Token{}, false
	}

	l.chars += utf8.RuneCountInString(l.text[l.charEnd:l.at])
	l.charEnd = l.at

	t := Token{Start: l.at, Char: l.chars}
	isContinuation := l.escapes && l.newline && l.text[l.at] == '\''
	t.Kind, t.Open = l.readToken(isContinuation)
	t.End = l.at

	first := l.text[t.Start]
	switch {
	case t.Kind == Comment && first == '-':
	case t.Kind == String && (isContinuation || first == 'e' || first == 'E'):
		l.escapes, l.newline = true, false
	default:
		l.escapes = false
	}

	return t, true
}

func (l *Lexer) skipSpace() {
	for l.at < len(l.text) && isSpace(l.text[l.at]) {
		l.newline = l.newline || l.text[l.at] == '\n' || l.text[l.at] == '\r'
		l.at++
	}
}

// readToken reads a token. isContinuation is set if it continues an escape string.
func (l *Lexer) readToken(isContinuation bool) (kind Kind, open bool) {
	switch c := l.text[l.at]; {
	case c == '\'':
		return String, l.quoted(0, isContinuation)
	case c == '"':
		return QuotedName, l.quoted(0, false)
	case l.has("--"):
		l.skip(func(c byte) bool { return c != '\n' && c != '\r' })
		return Comment, false
	case l.has("/*"):
		return Comment, l.block()
	case c == '$':
		return l.dollar()
	case isDigit(c), c == '.' && isDigit(l.peek(1)):
		l.number()
		return Number, false
	case startsWord(c):
		return l.word()
	case isOperator(c):
		l.operator()
		return Operator, false
	}

	l.at++
	return Punctuation, false
}

// word reads a word, or a quote with a prefix.
func (l *Lexer) word() (kind Kind, open bool) {
	switch next := l.peek(1); l.text[l.at] {
	case 'e', 'E':
		if next == '\'' {
			return String, l.quoted(1, true)
		}
	case 'b', 'B', 'x', 'X', 'n', 'N':
		if next == '\'' {
			return String, l.quoted(1, false)
		}
	case 'u', 'U':
		switch {
		case next == '&' && l.peek(2) == '\'':
			return String, l.quoted(2, false)
		case next == '&' && l.peek(2) == '"':
			return QuotedName, l.quoted(2, false)
		}
	}

	l.skip(func(c byte) bool { return inWord(c) || c == '$' })
	return Word, false
}

// quoted reads a quote after a prefix. A doubled quote is part of it; with escapes, a backslash
// escapes.
func (l *Lexer) quoted(prefix int, escapes bool) (open bool) {
	l.at += prefix
	quote := l.text[l.at]

	for l.at++; l.at < len(l.text); {
		switch c := l.text[l.at]; {
		case c == '\\' && escapes:
			l.at = min(l.at+2, len(l.text))
		case c != quote:
			l.at++
		case l.peek(1) == quote:
			l.at += 2
		default:
			l.at++
			return false
		}
	}

	return true
}

// dollar reads a dollar-quoted string, a parameter, or a lone dollar sign.
func (l *Lexer) dollar() (kind Kind, open bool) {
	start := l.at

	l.at++
	if isDigit(l.peek(0)) {
		l.skip(isDigit)
		return Parameter, false
	}

	l.skip(inWord)
	if l.peek(0) != '$' {
		l.at = start + 1
		return Punctuation, false
	}

	l.at++
	tag := l.text[start:l.at]

	end := strings.Index(l.text[l.at:], tag)
	if end < 0 {
		l.at = len(l.text)
		return DollarString, true
	}

	l.at += end + len(tag)
	return DollarString, false
}

// block reads a block comment with nested blocks.
func (l *Lexer) block() (open bool) {
	for depth := 0; l.at < len(l.text); {
		switch {
		case l.has("/*"):
			depth++
			l.at += 2
		case l.has("*/"):
			depth--
			l.at += 2

			if depth == 0 {
				return false
			}
		default:
			l.at++
		}
	}

	return true
}

// number reads a number: 1, 1_000, 0xff, 1.5, .5, 1e-3.
func (l *Lexer) number() {
	digits := func(c byte) bool { return isDigit(c) || c == '_' }
	l.skip(digits)

	if l.peek(0) == '.' && l.peek(1) != '.' { // 1..2 has two numbers
		l.at++
		l.skip(digits)
	}

	exponent := l.peek(0) == 'e' || l.peek(0) == 'E'
	if sign := l.peek(1); exponent && (sign == '+' || sign == '-') && isDigit(l.peek(2)) {
		l.at += 2
	}

	l.skip(inWord)
}

// operator reads an operator. It ends before a comment, and before a final + or - unless it has a
// character that no standard SQL operator has.
func (l *Lexer) operator() {
	start := l.at
	for l.at < len(l.text) && isOperator(l.text[l.at]) && !l.has("--") && !l.has("/*") {
		l.at++
	}

	for l.at > start+1 && (l.text[l.at-1] == '+' || l.text[l.at-1] == '-') &&
		!strings.ContainsAny(l.text[start:l.at], "~!@#^&|`?%") {
		l.at--
	}
}

// has reports whether the rest of the text begins with a prefix.
func (l *Lexer) has(prefix string) bool { return strings.HasPrefix(l.text[l.at:], prefix) }

// peek returns the byte n bytes ahead, or 0 after the end.
func (l *Lexer) peek(n int) byte {
	if l.at+n >= len(l.text) {
		return 0
	}
	return l.text[l.at+n]
}

func (l *Lexer) skip(in func(byte) bool) {
	for l.at < len(l.text) && in(l.text[l.at]) {
		l.at++
	}
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func startsWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= utf8.RuneSelf
}

// inWord reports whether a byte can be in a word or in a dollar quote's tag. A word may have a
// dollar sign too.
func inWord(c byte) bool { return startsWord(c) || isDigit(c) }

func isOperator(c byte) bool { return strings.IndexByte("~!@#^&|`?+-*/%<>=", c) >= 0 }
