package laws

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// keyTables matches SQL on the keys of applications.
var keyTables = regexp.MustCompile(`\bplatform\.(project_keys|s3_keys|project_jwt_keys)\b`)

// keyReaders are the packages that may call a function of package appkey whose name begins with
// Find. Package submission knows the form of a respondent, but not yet the project.
var keyReaders = map[string][]string{
	"FindProjectKey":  {"internal/gateway"},
	"FindS3Key":       {"internal/gateway"},
	"FindFormProject": {"internal/submission"},
}

// TestGatewayReadsKeys checks that only package gateway reads the keys of projects for requests.
// Another reader would have its own idea of revoked keys, of paused projects and of the cache.
func TestGatewayReadsKeys(t *testing.T) {
	t.Parallel()

	readers := map[string][]string{}
	parsed := syntax(t)
	for path, p := range tree(t) {
		for _, name := range p.GoFiles {
			ast.Inspect(parsed.of[filepath.Join(p.Dir, name)], func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.BasicLit:
					if n.Kind == token.STRING && keyTables.MatchString(n.Value) && path != "internal/appkey" &&
						path != "internal/gateway" {
						t.Errorf("%s/%s has SQL on keys of projects: use package appkey", path, name)
					}
				case *ast.SelectorExpr:
					owner, ok := n.X.(*ast.Ident)
					if ok && owner.Name == "appkey" && strings.HasPrefix(n.Sel.Name, "Find") {
						readers[n.Sel.Name] = append(readers[n.Sel.Name], path)
					}
				}

				return true
			})
		}
	}

	for name, got := range readers {
		if !slices.Equal(got, keyReaders[name]) {
			t.Errorf("appkey.%s is called by %v, want %v", name, got, keyReaders[name])
		}
	}
	if len(readers) != len(keyReaders) {
		t.Errorf("found calls of %d functions, want %d", len(readers), len(keyReaders))
	}
}
