package laws

import (
	"errors"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/tools/go/packages"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// statement is a constant SQL text in the tree.
type statement struct{ at, sql string }

// runners maps the functions that execute SQL to the index of their SQL argument.
var runners = map[string]int{"One": 2, "All": 2, "Value": 2, "Values": 2, "Exec": 2, "Query": 1, "QueryRow": 1}

// TestStatementsPrepare prepares every constant statement in a database with the current schema, so
// that a misspelt column fails without a test of its code path.
func TestStatementsPrepare(t *testing.T) {
	t.Parallel()

	a := apitest.New(t)
	databases := map[string]*pgx.Conn{
		"platform": connect(t, string(a.Config.DatabaseURL)), "project": connect(t, databaseURL(t, a))}

	of := map[string][]string{"platform": {"platform"}, "account": {"platform"}, "appkey": {"platform"},
		"requestlog": {"platform"},
		"queue":      {"platform"}, "server": {"platform"}, "projectdb": {"platform", "project"}, "cli": {"platform"},
		"schema": {"project"}, "form": {"project"}, "gateway": {"platform"}, "object": {"project"},
		"backup": {"platform", "project"}, "event": {"project"}, "webhook": {"platform", "project"},
		"broadcast": {"project"}, "httprequest": {"project"},
		"backup/extension": {"project"}, "migration": {"platform", "project"},
		"rest/catalog": {"project"}, "statement": {"project"}, "transfer": {"project"},
		"audit": {"platform", "project"}, "standalone": {"project"}, "oauth": {"project"}, "rest": {"project"},
		"pgproxy": {"platform"}, "enduser": {"platform", "project"}, "enduser/message": {"project"},
		"pgserver": {"platform"}, "pgcluster": {"platform", "project"}, "lifecycle": {"platform", "project"},
		"tablejob": {"platform"}, "vault": {"project"}, "fleet": {"platform"}, "schedule": {"platform", "project"},
		"function": {"project"}, "restapi": {"project"}, "replica": {"platform"}}
	var names []string
	for name := range tree(t) {
		if internal, ok := strings.CutPrefix(name, "internal/"); ok && !slices.Contains(testOnly, name) {
			names = append(names, internal)
		}
	}

	found := statements(t, names)
	for name := range found {
		if of[name] == nil {
			t.Errorf("%s has SQL: add the databases that it runs in to this test", name)
		}
	}

	for name, where := range of {
		if len(found[name]) == 0 {
			t.Errorf("no statement found in %s", name)
		}

		for _, s := range found[name] {
			if strings.Contains(s.sql, "text::bytea") {
				t.Errorf("%s: a cast of text to bytea reads backslashes as escapes: use convert_to, or read jsonb as it is",
					s.at)
			}
			if !strings.HasPrefix(s.sql, "select") && !strings.HasPrefix(s.sql, "insert") &&
				!strings.HasPrefix(s.sql, "update") && !strings.HasPrefix(s.sql, "delete") &&
				!strings.HasPrefix(s.sql, "with") {
				continue // PostgreSQL can't prepare utility statements
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

// statements returns the constant SQL texts of packages. It reads their imports from the build
// cache: with the GOFLAGS of the tests' build nothing has to be compiled.
func statements(t *testing.T, names []string) map[string][]statement {
	t.Helper()

	internal := modulePath(t) + "/internal/"
	var paths []string
	for _, name := range names {
		paths = append(paths, internal+name)
	}

	parsed := syntax(t)
	loaded, err := packages.Load(&packages.Config{Context: t.Context(), Dir: root(t), Fset: parsed.files,
		ParseFile: func(_ *token.FileSet, path string, _ []byte) (*ast.File, error) {
			return withStatements(parsed.of[path]), nil
		},
		Mode: packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo |
			packages.NeedImports}, paths...)
	if err != nil {
		t.Fatal(err)
	}

	found := map[string][]statement{}
	for _, p := range loaded {
		name := strings.TrimPrefix(p.PkgPath, internal)
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					i, ok := runners[calledName(n)]
					if !ok || i >= len(n.Args) {
						break
					}

					if sql, ok := text(p.TypesInfo, n.Args[i]); ok {
						at := p.Fset.Position(n.Pos()).String()
						found[name] = append(found[name], statement{at, strings.TrimSpace(sql)})
					}
				case *ast.CompositeLit:
					assemble := assembled[typeName(p.TypesInfo, n, internal)]
					if assemble == nil {
						break
					}

					at := p.Fset.Position(n.Pos()).String()
					texts, ok := assemble(p.TypesInfo, n)
					if !ok {
						t.Errorf("%s: the texts of SQL must be constants", at)
					}

					for _, sql := range texts {
						found[name] = append(found[name], statement{at, sql})
					}
				}

				return true
			})
		}
	}

	return found
}

// withStatements returns a file without the bodies of functions that have no statement, since types
// are resolved in all bodies.
func withStatements(file *ast.File) *ast.File {
	reduced := *file
	reduced.Decls = nil

	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && !hasStatement(f.Body) {
			bodiless := *f
			bodiless.Body = nil
			d = &bodiless
		}

		reduced.Decls = append(reduced.Decls, d)
	}

	return &reduced
}

// hasStatement reports whether a function body calls a runner by name or names an assembled type.
func hasStatement(body *ast.BlockStmt) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			i, ok := runners[calledName(n)]
			found = found || (ok && i < len(n.Args))
		case *ast.Ident:
			found = found || n.Name == "Listing" || n.Name == "Change"
		}

		return !found
	})

	return found
}

// text returns the value of a constant string.
func text(info *types.Info, e ast.Expr) (string, bool) {
	v := info.Types[e].Value
	if v == nil || v.Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(v), true
}

// assembled are the types whose literals have parts of statements.
var assembled = map[string]func(*types.Info, *ast.CompositeLit) (sql []string, ok bool){
	"pg.Listing": listingSQL, "audit.Change": changeSQL,
}

// typeName returns the type of an expression without the path of this tree.
func typeName(info *types.Info, e ast.Expr, internal string) string {
	t := info.TypeOf(e)
	if t == nil {
		return ""
	}

	return strings.TrimPrefix(t.String(), internal)
}

// changeSQL returns the statements of an audit.Change. It reports false unless they are constants.
func changeSQL(info *types.Info, literal *ast.CompositeLit) (sql []string, ok bool) {
	fields := map[string]string{}
	for _, e := range literal.Elts {
		field := e.(*ast.KeyValueExpr)
		switch name := field.Key.(*ast.Ident).Name; name {
		case "With", "SQL", "Check":
			if fields[name], ok = text(info, field.Value); !ok {
				return nil, false
			}
		}
	}

	with := "with "
	if fields["With"] != "" {
		with += fields["With"] + ", "
	}

	sql = []string{with + "changed as (" + fields["SQL"] + ") select changed.* from changed"}
	if fields["Check"] != "" {
		sql = append(sql, fields["Check"])
	}

	return sql, true
}

// listingSQL returns the statement of a pg.Listing, ordered by all its sorts. It reports false
// unless all fields are constants.
func listingSQL(info *types.Info, literal *ast.CompositeLit) (sql []string, ok bool) {
	fields := map[string]string{}
	var order []string
	for _, e := range literal.Elts {
		field := e.(*ast.KeyValueExpr)
		name := field.Key.(*ast.Ident).Name
		if name != "Sorts" {
			if fields[name], ok = text(info, field.Value); !ok {
				return nil, false
			}
			continue
		}

		sorts, ok := field.Value.(*ast.CompositeLit)
		if !ok {
			return nil, false
		}

		for _, s := range sorts.Elts {
			expression, ok := text(info, s.(*ast.KeyValueExpr).Value)
			if !ok {
				return nil, false
			}

			order = append(order, expression)
		}
	}

	order = append(order, fields["Tie"])
	return []string{
		"select " + fields["Columns"] + " from " + fields["From"] + " order by " + strings.Join(order, ", "),
	}, true
}

// calledName returns the name of the called function, without its package and type arguments.
func calledName(call *ast.CallExpr) string {
	f := call.Fun
	if index, ok := f.(*ast.IndexExpr); ok {
		f = index.X
	}

	if s, ok := f.(*ast.SelectorExpr); ok {
		return s.Sel.Name
	}

	return ""
}
