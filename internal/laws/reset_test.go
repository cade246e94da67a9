package laws

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// resetsSession matches SQL that cleans a session. A second list would forget what the first has.
var resetsSession = regexp.MustCompile(
	`(?i)\b(discard (all|temp|plans|sequences)|unlisten|close all|pg_advisory_unlock_all|setseed)\b`)

// resetters are the identifiers of package pg with a part of that SQL. Package pg resets the
// sessions of its pools, package actor those of statements that run as a caller.
var resetters = map[string]bool{"ResetStatements": true, "UnlockAdvisory": true, "Reseed": true}

// TestSessionsAreResetInOnePlace checks that only package pg has the statements that clean a
// session, and that only package actor takes them from there.
func TestSessionsAreResetInOnePlace(t *testing.T) {
	t.Parallel()

	for path, file := range syntax(t).of {
		if strings.Contains(path, "/internal/pg/") || strings.Contains(path, "/internal/pgtest/") {
			continue
		}

		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if n.Kind == token.STRING && resetsSession.MatchString(n.Value) {
					t.Errorf("%s has %s: use pg.Reset or actor.ResetStatements", path, n.Value)
				}
			case *ast.SelectorExpr:
				from, ok := n.X.(*ast.Ident)
				if ok && from.Name == "pg" && resetters[n.Sel.Name] && !strings.Contains(path, "/internal/actor/") {
					t.Errorf("%s uses pg.%s: take it from package actor", path, n.Sel.Name)
				}
			}

			return true
		})
	}
}
