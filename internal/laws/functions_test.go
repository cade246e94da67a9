package laws

import (
	"go/ast"
	"path/filepath"
	"testing"
)

// maxFunction is the maximum number of lines of a function. It may only shrink.
const maxFunction = 80

// TestFunctionsAreShort: a function fits a screen.
func TestFunctionsAreShort(t *testing.T) {
	t.Parallel()

	parsed := syntax(t)
	for path, p := range tree(t) {
		for _, name := range p.GoFiles {
			for _, d := range parsed.of[filepath.Join(p.Dir, name)].Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}

				n := parsed.files.Position(f.End()).Line - parsed.files.Position(f.Pos()).Line + 1
				if n > maxFunction {
					t.Errorf("%s: %s has %d lines, want at most %d", path, f.Name.Name, n, maxFunction)
				}
			}
		}
	}
}
