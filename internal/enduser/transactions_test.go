package enduser

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// changesUsers matches statements that run triggers of the project, and cascades into its tables.
var changesUsers = regexp.MustCompile(`(?i)\b(insert\s+into|update|delete\s+from|merge\s+into|truncate)\s+(only\s+)?auth\.users\b`)

// TestUsersChangeInTransactions checks that each change of auth.users runs in a transaction, whose
// time is bounded: [Directory.Rows] is only for statements that run no user code. Its result is no
// pgx.Tx, so an argument tx cannot be it.
func TestUsersChangeInTransactions(t *testing.T) {
	t.Parallel()

	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}

	inTx, all := 0, 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}

		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}

		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if changesUsers.MatchString(n.Value) {
					all++
				}
			case *ast.CallExpr:
				if len(n.Args) < 3 {
					return true
				}
				if tx, ok := n.Args[1].(*ast.Ident); !ok || tx.Name != "tx" {
					return true
				}

				ast.Inspect(n.Args[2], func(n ast.Node) bool {
					if text, ok := n.(*ast.BasicLit); ok && changesUsers.MatchString(text.Value) {
						inTx++
					}
					return true
				})
			}

			return true
		})
	}

	if all == 0 || inTx != all {
		t.Errorf("%d of %d statements that change auth.users are arguments beside a transaction tx", inTx, all)
	}
}
