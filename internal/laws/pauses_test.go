package laws

import (
	"go/ast"
	"strings"
	"testing"
)

// receives returns the expression that a case of a select receives from, or nil.
func receives(c ast.Stmt) ast.Expr {
	var from ast.Expr
	switch s := c.(*ast.CommClause).Comm.(type) {
	case *ast.ExprStmt:
		from = s.X
	case *ast.AssignStmt:
		from = s.Rhs[0]
	}

	if u, ok := from.(*ast.UnaryExpr); ok {
		return u.X
	}

	return nil
}

// calls reports whether an expression is a call of a method or function with this name.
func calls(e ast.Expr, name string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}

	selector, ok := call.Fun.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == name
}

// isPause reports whether a select waits for a context or a time, and for nothing else.
func isPause(s *ast.SelectStmt) bool {
	if len(s.Body.List) != 2 {
		return false
	}

	a, b := receives(s.Body.List[0]), receives(s.Body.List[1])
	return (calls(a, "Done") && isTime(b)) || (calls(b, "Done") && isTime(a))
}

// isTime reports whether an expression is a channel of package time: After's, or a timer's.
func isTime(e ast.Expr) bool {
	selector, ok := e.(*ast.SelectorExpr)
	return calls(e, "After") || (ok && selector.Sel.Name == "C")
}

// TestPausesAreTicks checks that whatever waits for a time or its end calls package tick, which
// does not wait for a context that has ended.
func TestPausesAreTicks(t *testing.T) {
	t.Parallel()

	parsed := syntax(t)
	for path, file := range parsed.of {
		name := strings.TrimPrefix(path, root(t)+"/")
		if !strings.HasPrefix(name, "internal/") || name == "internal/tick/tick.go" {
			continue
		}

		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectStmt); ok && isPause(s) {
				t.Errorf("%s: call tick.Pause, tick.Every or tick.Poll", parsed.files.Position(s.Pos()))
			}

			return true
		})
	}
}
