package laws

import (
	"errors"
	"go/ast"
	"go/constant"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/tools/go/packages"

	"socle/internal/api/apitest"
)

// statement is a constant SQL text in the tree.
type statement struct{ at, sql string }

// runners are the functions that take SQL as their argument of this index.
var runners = map[string]int{"One": 2, "All": 2, "Value": 2, "Values": 2, "Exec": 2, "Query": 1, "QueryRow": 1}

// TestStatementsPrepare hands every constant statement to a database with the migrated schema: a misspelt
// column fails here, whichever path of the code it stands on.
func TestStatementsPrepare(t *testing.T) {
	t.Parallel()
	a := apitest.New(t)
	databases := map[string]*pgx.Conn{
		"platform": connect(t, string(a.Config.DatabaseURL)), "project": connect(t, databaseURL(t, a))}
	for name, where := range map[string][]string{"platform": {"platform"}, "job": {"platform"}, "server": {"platform"}, "tenant": {"platform", "project"},
		"cli": {"platform"}, "schema": {"project"}, "form": {"project"}, "object": {"project"}, "backup": {"project"}, "rest/catalog": {"project"},
		"statement": {"project"}} {
		found := statements(t, "socle/internal/"+name)
		if len(found) == 0 {
			t.Errorf("no statement found in %s", name)
		}
		for _, s := range found {
			if !strings.HasPrefix(s.sql, "select") && !strings.HasPrefix(s.sql, "insert") && !strings.HasPrefix(s.sql, "update") &&
				!strings.HasPrefix(s.sql, "delete") && !strings.HasPrefix(s.sql, "with") {
				continue // what PostgreSQL calls utility statements can't be prepared
			}
			var errs []error
			for _, database := range where {
				errs = append(errs, prepare(t, databases[database], s.sql))
			}
			if !slices.Contains(errs, nil) {
				t.Errorf("%s: %v\n%s", s.at, errors.Join(errs...), s.sql)
			}
		}
	}
}

func prepare(t *testing.T, database *pgx.Conn, sql string) error {
	sql, _, err := pgx.NamedArgs{}.RewriteQuery(t.Context(), database, sql, nil)
	if err != nil {
		return err
	}
	_, err = database.Prepare(t.Context(), "", sql)
	return err
}

// statements returns the constant SQL texts of a package.
func statements(t *testing.T, path string) []statement {
	t.Helper()
	loaded, err := packages.Load(&packages.Config{Context: t.Context(), Dir: root(t),
		Mode: packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports}, path)
	if err != nil {
		t.Fatal(err)
	}
	var found []statement
	for _, p := range loaded {
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				i, ok := runners[called(call)]
				if !ok || i >= len(call.Args) {
					return true
				}
				if v := p.TypesInfo.Types[call.Args[i]].Value; v != nil && v.Kind() == constant.String {
					found = append(found, statement{p.Fset.Position(call.Pos()).String(), strings.TrimSpace(constant.StringVal(v))})
				}
				return true
			})
		}
	}
	return found
}

// called returns the name of the function that is called, without its package and type arguments.
func called(call *ast.CallExpr) string {
	f := call.Fun
	if index, ok := f.(*ast.IndexExpr); ok {
		f = index.X
	}
	if s, ok := f.(*ast.SelectorExpr); ok {
		return s.Sel.Name
	}
	return ""
}
