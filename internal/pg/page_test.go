package pg_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// TestList checks pages, the total of the filtered rows, and that the connection is released.
func TestList(t *testing.T) {
	t.Parallel()

	type item struct {
		N    int
		Text string
	}

	listing := pg.Listing{
		Columns: `n, @prefix || n::text as text`,
		From:    `pg_catalog.generate_series(1, @last::int) n where n <> 3`,
		Sorts:   map[string]string{"parity": "n % 2"},
		Tie:     "n",
	}

	pool := connect(t)
	args := pgx.StrictNamedArgs{"prefix": "#", "last": 6}

	for range int(pool.Config().MaxConns) + 1 {
		got, total, err := pg.List[item](t.Context(), pool, listing, pg.Page{Number: 2, Limit: 2, Sort: "parity"}, args)
		want := []item{{6, "#6"}, {1, "#1"}}
		if diff := cmp.Diff(want, got); err != nil || total != 5 || diff != "" {
			t.Errorf("got %v, total %d, error %v, want %v of 5\n%s", got, total, err, want, diff)
		}
	}

	all, total, err := pg.List[item](t.Context(), pool, listing,
		pg.Page{Number: 1, Limit: pg.DefaultPageLimit, Sort: "parity", Descending: true}, args)
	want := []item{{5, "#5"}, {1, "#1"}, {6, "#6"}, {4, "#4"}, {2, "#2"}}
	if diff := cmp.Diff(want, all); err != nil || total != 5 || diff != "" {
		t.Errorf("default page: got %v, total %d, error %v, want %v of 5\n%s", all, total, err, want, diff)
	}

	beyond, total, err := pg.List[item](t.Context(), pool, listing, pg.Page{Number: 9, Limit: 2, Sort: "parity"}, args)
	if err != nil || total != 5 || beyond == nil || len(beyond) != 0 {
		t.Errorf("got %#v, total %d, error %v, want an empty page of 5", beyond, total, err)
	}
}

// TestPagesAreOneStatement checks that a page and the total are one statement, and that a client
// that turns pages fills no cache of statements.
func TestPagesAreOneStatement(t *testing.T) {
	t.Parallel()

	conn, err := connect(t).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()

	listing := pg.Listing{
		Columns: "n", From: "pg_catalog.generate_series(1, 100) n", Sorts: map[string]string{"n": "n"}, Tie: "n",
	}
	for n := range 5 {
		page := pg.Page{Number: 1 + n, Limit: 10 - n, Sort: "n"}
		if _, _, err := pg.List[struct{ N int }](t.Context(), conn, listing, page, nil); err != nil {
			t.Fatal(err)
		}
	}

	prepared, err := pg.Value[int](t.Context(), conn, `
		select count(*) from pg_catalog.pg_prepared_statements where strpos(statement, @from) > 0`,
		pgx.StrictNamedArgs{"from": listing.From})
	if err != nil || prepared != 1 {
		t.Errorf("got %d prepared statements, %v, want 1", prepared, err)
	}
}

// TestListFails checks the errors of both statements and of arguments.
func TestListFails(t *testing.T) {
	t.Parallel()

	page := pg.Page{Number: 1, Limit: 1, Sort: "n"}
	sorts := map[string]string{"n": "n"}
	pool := connect(t)

	for name, c := range map[string]struct {
		columns, from string
		args          pgx.StrictNamedArgs
	}{
		"count":       {columns: "n", from: "pg_catalog.missing n"},
		"page":        {columns: "missing", from: "pg_catalog.generate_series(1, 2) n"},
		"missing":     {columns: "n", from: "pg_catalog.generate_series(1, @last) n"},
		"superfluous": {columns: "n", from: "pg_catalog.generate_series(1, 2) n", args: pgx.StrictNamedArgs{"last": 2}},
	} {
		listing := pg.Listing{Columns: c.columns, From: c.from, Sorts: sorts, Tie: "n"}
		if got, _, err := pg.List[struct{ N int }](t.Context(), pool, listing, page, c.args); err == nil {
			t.Errorf("%s: got %v, want an error", name, got)
		}
	}

	if _, _, err := pg.List[struct{ N int }](t.Context(), pool, pg.Listing{
		Columns: "n", From: "pg_catalog.generate_series(1, 2) n", Sorts: sorts, Tie: "n",
	}, page, nil); err != nil {
		t.Errorf("the pool is unusable afterwards: %v", err)
	}
}
