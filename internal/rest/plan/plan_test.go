package plan_test

import (
	"context"
	_ "embed"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/plan"
	"github.com/socle-dev/socle/internal/rest/query"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

//go:embed testdata/schema.sql
var schema string

// database is a copy of the database in testdata/schema.sql, with its catalog.
type database struct {
	t       testing.TB
	conn    *pgx.Conn
	catalog *catalog.Catalog
}

// open returns a new database after running further statements in it.
func open(t testing.TB, further ...string) *database {
	t.Helper()

	url := pgtest.Clone(t, "plan", func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}

		_, err = conn.Exec(ctx, schema)
		return errors.Join(err, conn.Close(ctx))
	})

	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	d := &database{t: t, conn: conn}
	for _, sql := range further {
		d.exec("set search_path = test, public; " + sql)
	}

	d.exec("set search_path = pg_catalog, pg_temp")
	if d.catalog, err = catalog.Read(t.Context(), conn, catalog.Options{Schemas: []string{"test"}}); err != nil {
		t.Fatal(err)
	}

	d.exec("set search_path = test, public")
	return d
}

func (d *database) exec(sql string) {
	d.t.Helper()

	if _, err := d.conn.Exec(d.t.Context(), sql); err != nil {
		d.t.Fatal(err)
	}
}

// answer is the row that a plan's statement returns.
type answer struct{ total, page, body, location, inserted string }

// run runs a plan in a transaction of its own and rolls it back.
func (d *database) run(p *plan.Plan) (answer, error) {
	d.exec("begin")
	defer d.exec("rollback")

	r := d.conn.PgConn().ExecParams(d.t.Context(), p.SQL, texts(p.Args), nil, nil, nil).Read()
	if r.Err != nil {
		return answer{}, r.Err
	}

	if len(r.Rows) != 1 || len(r.Rows[0]) != 7 {
		d.t.Fatalf("%d rows of an answer: %s", len(r.Rows), p.SQL)
	}

	row := r.Rows[0]
	return answer{string(row[0]), string(row[1]), string(row[6]), string(row[2]), string(row[5])}, nil
}

func texts(args []any) [][]byte {
	values := make([][]byte, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case string:
			values[i] = []byte(a)
		case []byte:
			values[i] = a
		}
	}

	return values
}

// planner is one of this package's functions that plan for a relation.
type planner func(*catalog.Catalog, *plan.Request) (*plan.Plan, error)

// request returns the request for a URL of the form target?query.
func (d *database) request(t testing.TB, url string) *plan.Request {
	t.Helper()

	target, text, _ := strings.Cut(url, "?")
	q, err := query.Parse(text, query.Options{})
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}

	r := &plan.Request{Target: catalog.Name{Schema: "test", Name: target}, Query: q, Aggregates: true}
	for _, l := range q.Limits {
		if len(l.Path) == 0 {
			r.Range = l
		}
	}

	return r
}

// do plans and runs a request.
func (d *database) do(f planner, r *plan.Request) (answer, error) {
	p, err := f(d.catalog, r)
	if err != nil {
		return answer{}, err
	}

	a, err := d.run(p)
	if err != nil {
		err = &failure{err, p.SQL}
	}

	return a, err
}

// failure is an error of PostgreSQL with its statement.
type failure struct {
	error
	sql string
}

func (f *failure) Unwrap() error { return f.error }
func (f *failure) Error() string { return f.error.Error() + "\n" + f.sql }

// compact removes the white space that json_agg writes between rows.
func compact(s string) string { return strings.ReplaceAll(s, ", \n ", ",") }

func code(err error) string {
	if pe, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pe.Code
	}
	if qe, ok := errors.AsType[*query.Error](err); ok {
		return qe.Code
	}

	return ""
}
