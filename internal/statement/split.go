package statement

import (
	"slices"
	"strings"
	"unicode/utf8"

	"socle/internal/fault"
)

// maxStatements is the maximum number of statements per query.
const maxStatements = 100

// piece is one statement of a query, without its final semicolon.
type piece struct {
	text  string
	start int      // characters of the query before it
	words []string // first words, in lower case
}

// forbiddenFirst are the first words of statements that would end the transaction or change the
// protocol.
var forbiddenFirst = []string{"begin", "start", "commit", "end", "abort", "rollback", "savepoint", "release", "copy"}

// split splits a query into its statements. It lexes quotes, comments and function bodies as
// PostgreSQL does, to find the end of each statement. Safety does not depend on that: PostgreSQL
// accepts a single statement at a time, and the state of the transaction is checked after each.
func split(query string) ([]piece, error) {
	s := &splitter{text: query}
	for s.at < len(s.text) {
		s.token()
	}

	s.endStatement(len(s.text))

	if len(s.pieces) == 0 {
		return nil, fault.OnField(fault.Unprocessable, "query", "required", "must contain a statement")
	}
	if len(s.pieces) > maxStatements {
		return nil, fault.OnField(fault.Unprocessable, "query", "too_many", "must be at most %d statements",
			maxStatements)
	}

	for _, p := range s.pieces {
		first := p.words[0]
		if slices.Contains(forbiddenFirst, first) || first == "prepare" &&
			len(p.words) > 1 && p.words[1] == "transaction" {
			return nil, fault.OnField(fault.Unprocessable, "query", "not_allowed",
				"must not contain %s: a query is one transaction; import and export bulk data separately",
				strings.ToUpper(first))
		}
	}

	return s.pieces, nil
}

// Complete reports whether every statement of a text ends with its semicolon.
func Complete(text string) bool {
	s := &splitter{text: text}
	for s.at < len(s.text) {
		s.token()
	}

	return !s.hasTokens
}

// splitter is the state of split.
type splitter struct {
	text      string
	at        int // next byte to read
	begin     int // first byte of the statement, with leading space
	parens    int
	blocks    int // open BEGIN ATOMIC and CASE in a function body
	words     []string
	hasTokens bool // the statement has tokens
	pieces    []piece

	counted, chars int // chars is the number of characters before byte counted
}

// leadingWords is the number of leading words that identify a statement: create or replace
// function.
const leadingWords = 4

// endStatement ends the statement before byte end.
func (s *splitter) endStatement(end int) {
	if s.hasTokens {
		s.chars += utf8.RuneCountInString(s.text[s.counted:s.begin])
		s.counted = s.begin
		words := s.words
		if len(words) == 0 {
			words = []string{""}
		}

		s.pieces = append(s.pieces, piece{text: s.text[s.begin:end], start: s.chars, words: words})
	}

	s.begin, s.parens, s.blocks, s.words, s.hasTokens = end+1, 0, 0, nil, false
}

// token reads a token, comment or space.
func (s *splitter) token() {
	switch c := s.text[s.at]; {
	case isSpace(c):
		s.at++
	case strings.HasPrefix(s.text[s.at:], "--"):
		s.lineComment()
	case strings.HasPrefix(s.text[s.at:], "/*"):
		s.comment()
	case c == ';':
		if s.parens == 0 && s.blocks == 0 {
			s.endStatement(s.at)
		}
		s.at++
	default:
		if !isWord(c) && !s.hasTokens {
			s.words = append(s.words, "") // the statement does not begin with a word
		}

		s.hasTokens = true
		s.statementToken(c)
	}
}

// statementToken reads a token that is part of a statement.
func (s *splitter) statementToken(c byte) {
	switch {
	case c == '\'':
		s.quoted(false)
	case c == '"':
		s.at++
		s.skipPast(`"`)
	case c == '$':
		s.dollar()
	case isDigit(c):
		s.skip(func(c byte) bool { return isWord(c) || isDigit(c) || c == '.' })
	case isWord(c):
		start := s.at
		s.skip(func(c byte) bool { return isWord(c) || isDigit(c) || c == '$' })

		word := strings.ToLower(s.text[start:s.at])
		if word == "e" && s.at < len(s.text) && s.text[s.at] == '\'' {
			s.quoted(true)
			return
		}

		s.word(word)
	default:
		if c == '(' {
			s.parens++
		}
		if c == ')' && s.parens > 0 {
			s.parens--
		}

		s.at++
	}
}

// word tracks the body of a function, in which semicolons end no statement.
func (s *splitter) word(word string) {
	if len(s.words) < leadingWords {
		s.words = append(s.words, word)
	}

	w := s.words
	routine := len(w) > 1 && w[0] == "create" && (w[1] == "function" || w[1] == "procedure" ||
		len(w) > 3 && w[1] == "or" && w[2] == "replace" && (w[3] == "function" || w[3] == "procedure"))
	switch {
	case !routine || s.parens > 0:
	case word == "begin", word == "case" && s.blocks > 0:
		s.blocks++
	case word == "end" && s.blocks > 0:
		s.blocks--
	}
}

func (s *splitter) skip(in func(byte) bool) {
	for s.at < len(s.text) && in(s.text[s.at]) {
		s.at++
	}
}

// skipPast moves after the next occurrence of a text, or to the end.
func (s *splitter) skipPast(text string) {
	if i := strings.Index(s.text[s.at:], text); i >= 0 {
		s.at += i + len(text)
		return
	}

	s.at = len(s.text)
}

func (s *splitter) lineComment() {
	s.skip(func(c byte) bool { return c != '\n' && c != '\r' })
}

// comment reads a block comment, which may be nested.
func (s *splitter) comment() {
	depth := 0
	for s.at < len(s.text) {
		switch rest := s.text[s.at:]; {
		case strings.HasPrefix(rest, "/*"):
			depth++
			s.at += 2
		case strings.HasPrefix(rest, "*/"):
			depth--
			s.at += 2
			if depth == 0 {
				return
			}
		default:
			s.at++
		}
	}
}

// quoted reads a string with its continuations on further lines. With escapes (E”), a backslash
// escapes.
func (s *splitter) quoted(escapes bool) {
	s.at++
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case escapes && c == '\\':
			s.at = min(s.at+2, len(s.text))
		case c != '\'':
			s.at++
		case s.at+1 < len(s.text) && s.text[s.at+1] == '\'':
			s.at += 2
		default:
			s.at++
			if !s.continuation() {
				return
			}
		}
	}
}

// continuation moves after the opening quote of a string's continuation on another line, if there
// is one.
func (s *splitter) continuation() bool {
	back := s.at
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case isSpace(c):
			s.at++
		case strings.HasPrefix(s.text[s.at:], "--"):
			s.lineComment()
		case c == '\'' && strings.ContainsAny(s.text[back:s.at], "\n\r"):
			s.at++
			return true
		default:
			s.at = back
			return false
		}
	}

	s.at = back
	return false
}

// dollar reads a dollar-quoted string or a parameter.
func (s *splitter) dollar() {
	start := s.at

	s.at++
	if s.at < len(s.text) && isDigit(s.text[s.at]) {
		s.skip(isDigit)
		return
	}

	s.skip(func(c byte) bool { return isWord(c) || isDigit(c) })

	if s.at < len(s.text) && s.text[s.at] == '$' {
		s.at++
		s.skipPast(s.text[start:s.at])
	}
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isWord reports whether a byte can begin a word.
func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= utf8.RuneSelf
}
