package laws

import (
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

		excused, comments := lineKinds(text)
		for i, line := range strings.Split(string(text), "\n") {
			limit := maxCodeColumns
			if comments[i+1] {
				limit = maxCommentColumns
			}

			if len(line)+(tabColumns-1)*strings.Count(line, "\t") <= limit {
				continue // nearly all lines, without the regular expression
			}

			line = aligned.ReplaceAllString(line, " ")
			columns := utf8.RuneCountInString(line) + (tabColumns-1)*strings.Count(line, "\t")
			if columns > limit && !excused[i+1] {
				t.Errorf("%s:%d: %d columns, want at most %d", file, i+1, columns, limit)
			}
		}
	}
}

// aligned matches the spaces by which gofmt aligns values and comments, which count as one.
var aligned = regexp.MustCompile(` {2,}`)

// unwrappable matches a comment without a place to wrap: one word, a directive, or
// preformatted text.
var unwrappable = regexp.MustCompile(`^//\s*\S+$|^//\S|^//\t`)

// lineKinds returns the lines of a file that hold an unsplittable string or comment, and those that
// hold nothing but a comment.
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
			excused[line] = excused[line] || unwrappable.MatchString(literal)
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

	for _, dir := range []string{"bench", "client", "cmd", "internal"} {
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
