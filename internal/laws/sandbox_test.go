package laws

import (
	"go/ast"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fixedTypes lists the files that set a content type by a variable, and that need no sandbox, with
// the reason: no user chooses the content, or no browser shows it.
var fixedTypes = map[string]string{
	"internal/api/rows/export.go":  "a type of a list, as an attachment",
	"internal/cli/rows.go":         "a request",
	"internal/cli/upload.go":       "requests",
	"internal/console/files.go":    "files of the binary",
	"internal/rest/description.go": "the OpenAPI document; setSandbox is called after it",
	"internal/rest/response.go":    "setSandbox is called after it",
	"internal/server/docs.go":      "files of the binary",
	"internal/server/routes.go":    "files of the binary, JSON of the server",
	"internal/web/render.go":       "files of the binary",
}

// TestStoredContentIsSandboxed checks that each response with a content type that is no literal has
// the policy [httpx.Sandbox]: a file, or what a function returns, never runs on the console's
// origin.
func TestStoredContentIsSandboxed(t *testing.T) {
	t.Parallel()

	found := map[string]bool{}
	parsed := syntax(t)
	for path, p := range tree(t) {
		if strings.HasPrefix(path, "bench/") || slices.Contains(testOnly, path) {
			continue
		}

		for _, name := range p.GoFiles {
			source := parsed.of[filepath.Join(p.Dir, name)]
			if !setsVariableType(source) {
				continue
			}

			file := filepath.ToSlash(filepath.Join(path, name))
			found[file] = true
			if fixedTypes[file] == "" && !mentions(source, "Sandbox") {
				t.Errorf("%s sets a content type that may be a user's, without httpx.Sandbox", file)
			}
		}
	}

	for file := range fixedTypes {
		if !found[file] {
			t.Errorf("%s sets no such content type: remove it from the list", file)
		}
	}
	if len(found) < len(fixedTypes)+3 { // files of the API and of Storage, of S3, logos of forms
		t.Errorf("found only the files %v", found)
	}
}

// setsVariableType reports whether a file sets a content type that is no literal, by a call such as
// Set or by an assignment.
func setsVariableType(source *ast.File) (found bool) {
	ast.Inspect(source, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			for i, argument := range n.Args[:max(len(n.Args)-1, 0)] {
				found = found || (isText(argument, `"Content-Type"`) && !isText(n.Args[i+1], ""))
			}
		case *ast.AssignStmt:
			for _, target := range n.Lhs {
				index, ok := target.(*ast.IndexExpr)
				found = found || (ok && isText(index.Index, `"Content-Type"`))
			}
		}

		return true
	})

	return found
}

// isText reports whether an expression is this string literal, or any if text is "".
func isText(e ast.Expr, text string) bool {
	literal, ok := e.(*ast.BasicLit)
	return ok && (text == "" || literal.Value == text)
}

// mentions reports whether a file uses a name.
func mentions(source *ast.File, name string) (found bool) {
	ast.Inspect(source, func(n ast.Node) bool {
		ident, ok := n.(*ast.Ident)
		found = found || (ok && ident.Name == name)

		return true
	})

	return found
}
