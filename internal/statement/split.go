package statement

import (
	"slices"
	"strings"
	"unicode/utf8"

	"socle/internal/fault"
)

// maxStatements is how many statements one query has at most.
const maxStatements = 100

// piece is one statement of a query, without the semicolon at its end.
type piece struct {
	text  string
	start int      // characters of the query before it
	words []string // its first words, in lower case
}

// refusedFirst are the words that begin what would end our transaction, or speak a protocol of its own.
var refusedFirst = []string{"begin", "start", "commit", "end", "abort", "rollback", "savepoint", "release", "copy"}

// split cuts a query into its statements. It reads quotes, comments and bodies as PostgreSQL does, so that a statement is
// found whole; but nothing rests on that: the server takes one statement at a time, and what that does to the
// transaction is looked at after each.
func split(query string) ([]piece, error) {
	s := &splitter{text: query}
	for s.at < len(s.text) {
		s.token()
	}

	s.cut(len(s.text))

	if len(s.pieces) == 0 {
		return nil, fault.OnField(fault.Unprocessable, "query", "required", "must have a statement in it")
	}
	if len(s.pieces) > maxStatements {
		return nil, fault.OnField(fault.Unprocessable, "query", "too_many", "must be at most %d statements",
			maxStatements)
	}

	for _, p := range s.pieces {
		first := p.words[0]
		if slices.Contains(refusedFirst, first) || first == "prepare" &&
			len(p.words) > 1 && p.words[1] == "transaction" {
			return nil, fault.OnField(fault.Unprocessable, "query", "not_allowed",
				"must not contain %s: all of it is one transaction, and rows in bulk are imported and exported by operations of their own", strings.ToUpper(first))
		}
	}

	return s.pieces, nil
}

// splitter is a query that is being cut.
type splitter struct {
	text   string
	at     int // byte that is read next
	begin  int // first byte of the statement, or of the space before it
	parens int
	blocks int // open BEGIN ATOMIC and CASE of a function's body
	words  []string
	other  bool // the statement has tokens
	pieces []piece

	counted, chars int // chars is the number of characters before byte counted
}

// keptWords is how many words of a statement are looked at: create or replace function.
const keptWords = 4

// cut ends the statement before a byte.
func (s *splitter) cut(end int) {
	if s.other {
		s.chars += utf8.RuneCountInString(s.text[s.counted:s.begin])
		s.counted = s.begin
		words := s.words
		if len(words) == 0 {
			words = []string{""}
		}

		s.pieces = append(s.pieces, piece{text: s.text[s.begin:end], start: s.chars, words: words})
	}

	s.begin, s.parens, s.blocks, s.words, s.other = end+1, 0, 0, nil, false
}

// token reads a token, a comment or a space.
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
			s.cut(s.at)
		}
		s.at++
	default:
		if !isWord(c) && !s.other {
			s.words = append(s.words, "") // it begins with no word, whatever comes
		}

		s.other = true
		s.solid(c)
	}
}

// solid reads a token that is part of a statement.
func (s *splitter) solid(c byte) {
	switch {
	case c == '\'':
		s.quoted(false)
	case c == '"':
		s.at++
		s.until(`"`)
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

// word keeps account of the body of a function, in which semicolons end nothing.
func (s *splitter) word(word string) {
	if len(s.words) < keptWords {
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

// until moves behind the next occurrence of a text, or to the end.
func (s *splitter) until(text string) {
	if i := strings.Index(s.text[s.at:], text); i >= 0 {
		s.at += i + len(text)
		return
	}

	s.at = len(s.text)
}

func (s *splitter) lineComment() {
	s.skip(func(c byte) bool { return c != '\n' && c != '\r' })
}

// comment reads a comment, which may have others in it.
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

// quoted reads a string, in which a backslash escapes if it began with E. It goes on in the quotes of another line.
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
			if !s.continued() {
				return
			}
		}
	}
}

// continued moves behind the quote with which a string goes on in another line, if it does.
func (s *splitter) continued() bool {
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

// dollar reads a string between dollar signs, or a parameter.
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
		s.until(s.text[start:s.at])
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
