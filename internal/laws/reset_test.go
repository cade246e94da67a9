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
	`(?i)\b(discard (all|temp|plans|sequences)|unlisten|close all|pg_advisory_unlock_all)\b`)

// TestSessionsAreResetInOnePlace checks that only package pg has the statements that clean a
// session.
func TestSessionsAreResetInOnePlace(t *testing.T) {
	t.Parallel()

	for path, file := range syntax(t).of {
		if strings.Contains(path, "/internal/pg/") || strings.Contains(path, "/internal/pgtest/") {
			continue
		}

		ast.Inspect(file, func(n ast.Node) bool {
			text, ok := n.(*ast.BasicLit)
			if ok && text.Kind == token.STRING && resetsSession.MatchString(text.Value) {
				t.Errorf("%s has %s: use pg.Reset or pg.ResetStatements", path, text.Value)
			}

			return true
		})
	}
}
