package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestExportTable(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	asOwner(t, a, `create table public.odd (b int, "a,""x" text, n numeric, j json, primary key (n, b));
		insert into public.odd values (2, '=1+1', -5, E'{"a":\n 1}'), (1, '', 7, null), (1, null, -5, '[]'), (3, E'@x\n"y"', -5, '-1')`)

	r := a.Get("/tables/odd/export").Want(200)
	const csv = "b,\"a,\"\"x\",n,j\n1,,-5,[]\n2,=1+1,-5,\"{\"\"a\"\":\n 1}\"\n3,\"@x\n\"\"y\"\"\",-5,-1\n1,\"\",7,\n"
	if got := string(r.Body); got != csv {
		t.Errorf("got\n%s\nwant\n%s", got, csv)
	}
	if got := r.Header.Get("Content-Disposition") + " " +
		r.Header.Get("Content-Type"); got != "attachment; filename=odd.csv text/csv; charset=utf-8" {
		t.Errorf("got headers %s", got)
	}

	want := "b,\"a,\"\"x\",n,j\n1,,-5,[]\n2,'=1+1,-5,\"{\"\"a\"\":\n 1}\"\n3,\"'@x\n\"\"y\"\"\",-5,'-1\n1,\"\",7,\n"
	if got := string(a.Get("/tables/odd/export?spreadsheet=true").Want(200).Body); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	want = `{"b":1,"a,\"x":null,"n":-5,"j":[]}` + "\n" + `{"b":2,"a,\"x":"=1+1","n":-5,"j":{"a":  1}}` + "\n"
	if got := string(a.Get("/tables/odd/export?format=jsonl").Want(200).Body); !strings.HasPrefix(got, want) ||
		strings.Count(got, "\n") != 4 {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	if got := string(a.Get("/tables/odd/export?format=tsv&columns=n,b").Want(200).Body); !strings.HasPrefix(got,
		"n\tb\n-5\t1\n") {
		t.Errorf("got %q", got)
	}

	a.CreateTable("empty")

	if got := a.Get("/tables/empty/export?format=jsonl").Want(200); len(got.Body) != 0 ||
		got.Header.Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("got %q", got.Body)
	}

	asOwner(t, a, `create table public."x""; drop table odd; é" (id int)`)
	uuid := a.Get("/tables?sort=id&order=desc&limit=1").Want(200).Get("0.id")
	if got := a.Get("/tables/" + uuid.(interface{ String() string }).String() + "/export").
		Want(200).Header.Get("Content-Disposition"); strings.ContainsAny(got, "\r\n") ||
		!strings.Contains(got, "filename*=utf-8''") {
		t.Errorf("got header %s", got)
	}

	for _, bad := range []string{
		"columns=nope", "columns=b,b", "columns=b;drop", "format=xml", "spreadsheet=1",
		"format=csv&format=tsv", "order=b",
	} {
		a.Get("/tables/odd/export?" + bad).Want(400)
	}

	a.Get("/tables/missing/export").Want(404)
	a.Get("/tables/pg_catalog.pg_class/export").Want(400)
	a.Member(5).Get("/tables/odd/export").Want(403)
	a.OtherUser().Get("/tables/odd/export").Want(401)
}

// TestExportOfAnyName exports a table whose columns have the names of aliases.
func TestExportOfAnyName(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	asOwner(t, a, `create type public.pair as (x int, y int); create table public.aliases (r public.pair, t public.pair);
		insert into public.aliases values ((1, 2), (3, 4))`)

	for format, want := range map[string]string{
		"csv": "r,t\n\"(1,2)\",\"(3,4)\"\n", "jsonl": `{"r":{"x":1,"y":2},"t":{"x":3,"y":4}}` + "\n",
	} {
		if got := string(a.Get("/tables/aliases/export?format=" + format).Want(200).Body); got != want {
			t.Errorf("%s: got %q, want %q", format, got, want)
		}
	}
}

// TestExportCutOff checks that an export with an error in the middle cannot pass for a complete
// file.
func TestExportCutOff(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	asOwner(t, a,
		`create table public.big (id int primary key, note text); insert into public.big select n, repeat('x', 1000) from generate_series(1, 5000) n`)

	if got := a.Get("/tables/big/export").Want(200); strings.Count(string(got.Body), "\n") != 5001 {
		t.Errorf("got %d bytes", len(got.Body))
	}

	// A policy that applies to the owner fails at one row.
	a.Exec("alter role " + pgx.Identifier{a.DatabaseName() + "_owner"}.Sanitize() + " nobypassrls")
	asOwner(t, a,
		`alter table public.big force row level security; create policy p on public.big using (1 / (id - 4000) is not null)`)

	res, err := http.DefaultTransport.RoundTrip(a.Request("GET", "/tables/big/export", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()

	if _, err := io.Copy(io.Discard, res.Body); err == nil {
		t.Errorf("got status %d and a complete body, want a truncated one", res.StatusCode)
	}

	asOwner(t, a, `drop policy p on public.big; create policy p on public.big using (1 / (id - 1) is not null)`)
	a.Get("/tables/big/export").Want(400).Code("refused")
	a.CreateTable("as_ever")
}
