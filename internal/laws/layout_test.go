package laws

import (
	"bytes"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	maxCodeColumns    = 120
	maxCommentColumns = 100
	tabColumns        = 4

	// unsplittable is the length from which a string literal, also a struct tag, excuses its line:
	// a split literal can't be found by a search.
	unsplittable = 50
)

// TestLinesAreShort bounds the width of code and comments. SQL in raw strings is free to be wider.
// The linter lll can't do this: it does not tell raw strings from code.
func TestLinesAreShort(t *testing.T) {
	t.Parallel()

	for _, file := range goFiles(t) {
		text, err := os.ReadFile(filepath.Join(root(t), file))
		if err != nil {
			t.Fatal(err)
		}

		wide := wideLines(text)
		if len(wide) == 0 {
			continue // without the scanner
		}

		excused, comments := lineKinds(text)
		for number, line := range wide {
			limit := maxCodeColumns
			if comments[number] {
				limit = maxCommentColumns
			}

			if n := columns(line); n > limit && !excused[number] && !unwrappable.MatchString(line) {
				t.Errorf("%s:%d: %d columns, want at most %d", file, number, n, limit)
			}
		}
	}
}

// ofComment matches a comment behind code that begins with "of": the noun stands before the clause.
var ofComment = regexp.MustCompile(`\S\s+// of `)

// TestCommentsNameTheirSubject checks comments behind code, but for those of tests.
func TestCommentsNameTheirSubject(t *testing.T) {
	t.Parallel()

	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}

		text, err := os.ReadFile(filepath.Join(root(t), file))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text, []byte("// of ")) {
			continue
		}

		number := 0
		for line := range strings.Lines(string(text)) {
			if number++; ofComment.MatchString(line) {
				t.Errorf("%s:%d: the comment begins with \"of\", not with a noun", file, number)
			}
		}
	}
}

// wideLines returns the lines that are too wide, unless excused, by their number.
func wideLines(text []byte) map[int]string {
	wide := map[int]string{}
	blocks := bytes.Contains(text, []byte("/*")) // maybe comments whose lines have no //
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSuffix(line, "\n")
		if len(line)+(tabColumns-1)*strings.Count(line, "\t") <= maxCommentColumns {
			continue // nearly all lines, without the regular expression
		}

		limit := maxCodeColumns
		if blocks || strings.HasPrefix(strings.TrimSpace(line), "//") {
			limit = maxCommentColumns
		}

		if columns(line) > limit {
			wide[number] = line
		}
	}

	return wide
}

// columns returns the width of a line.
func columns(line string) int {
	line = aligned.ReplaceAllString(line, " ")
	return utf8.RuneCountInString(line) + (tabColumns-1)*strings.Count(line, "\t")
}

// aligned matches the spaces by which gofmt aligns values and comments, which count as one.
var aligned = regexp.MustCompile(` {2,}`)

// unwrappable matches a comment without a place to wrap: one word, a directive, or
// preformatted text.
var unwrappable = regexp.MustCompile(`^\s*//(\s*\S+$|\S|\t)`)

// lineKinds returns the lines of a file that hold an unsplittable string, and those that hold
// nothing but a comment.
func lineKinds(text []byte) (excused, comments map[int]bool) {
	excused, comments = map[int]bool{}, map[int]bool{}
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(text))

	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	for lastLine := 0; ; {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return excused, comments
		}

		line := file.Line(pos)
		end := line + strings.Count(literal, "\n")
		switch {
		case tok == token.COMMENT && line != lastLine:
			for l := line; l <= end; l++ {
				comments[l] = true
			}
		case tok == token.STRING && (end > line || utf8.RuneCountInString(literal) >= unsplittable):
			for l := line; l <= end; l++ {
				excused[l] = true
			}
		}

		if tok != token.SEMICOLON || literal != "\n" {
			lastLine = end
		}
	}
}

// goFiles lists the Go files of the tree, tests included, by their path in it.
func goFiles(t *testing.T) (files []string) {
	t.Helper()

	for _, dir := range []string{"bench", "client", "cmd", "console", "internal"} {
		err := filepath.WalkDir(filepath.Join(root(t), dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.Name() == "node_modules" {
				return fs.SkipDir
			}
			if strings.HasSuffix(path, ".go") {
				name, err := filepath.Rel(root(t), path)
				files = append(files, name)
				return err
			}

			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(files) < 500 {
		t.Fatalf("found %d Go files, want the whole tree", len(files))
	}

	return files
}
