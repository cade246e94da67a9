package laws

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unshared lists the files with a pool of places that is none of package fair, with the reason why
// no account can take it from another one.
var unshared = map[string]string{
	"internal/cli/functionsdeploy.go": "the functions of one user's own command",
	"internal/cli/dbproxy.go":         "the connections of one user's own command",
	"internal/pg/supervisor.go":       "the platform's own statements, of milliseconds",
}

// TestPoolsAreFair checks that pools of work are shared by account: a semaphore, or a channel as
// one, is first come, first served and knows no owner.
func TestPoolsAreFair(t *testing.T) {
	t.Parallel()

	found := map[string]bool{}
	parsed := syntax(t)
	for path, p := range tree(t) {
		if strings.HasPrefix(path, "bench/") || slices.Contains(testOnly, path) {
			continue
		}

		for _, name := range p.GoFiles {
			file := filepath.ToSlash(filepath.Join(path, name))
			if !hasPool(parsed.of[filepath.Join(p.Dir, name)]) {
				continue
			}

			found[file] = true
			if unshared[file] == "" {
				t.Errorf("%s has a pool of its own: use package fair, or say here why it needs no shares", file)
			}
		}
	}

	for file := range unshared {
		if !found[file] {
			t.Errorf("%s has no pool of its own any more: remove it from the list", file)
		}
	}
}

// hasPool reports whether a file imports semaphores, or makes a channel of tokens with room for
// more than one.
func hasPool(file *ast.File) bool {
	for _, i := range file.Imports {
		if i.Path.Value == `"golang.org/x/sync/semaphore"` {
			return true
		}
	}

	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}

		name, _ := call.Fun.(*ast.Ident)
		channel, _ := call.Args[0].(*ast.ChanType)
		if name == nil || name.Name != "make" || channel == nil {
			return true
		}

		size, _ := call.Args[1].(*ast.BasicLit)
		element, _ := channel.Value.(*ast.StructType)
		if element != nil && (size == nil || size.Kind != token.INT || size.Value != "1") {
			found = true
		}

		return true
	})

	return found
}
