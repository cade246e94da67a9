package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestGrantHints checks the hints of the rows API against PostgreSQL's messages for each kind of
// object: the command of a hint mends the request.
func TestGrantHints(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Post("/sql", sqlBody(`
		create schema shop;
		create table books (id serial primary key, title text);
		create view best as select title from books;
		create materialized view "All" as select 1 as n;
		create function add(a int, b int) returns int stable language sql as 'select a + b';
		create table shop.hidden (id int);
		create function look() returns bigint stable language sql as 'select count(*) from shop.hidden';
		grant insert, select (title) on books to anon`, writing)).Want(200)
	created := a.Post("/projects/"+a.Project+"/keys", `{"name": "web", "kind": "publishable"}`).Want(201)
	key := created.Metadata("key").(string)

	hint := func(method, path, body string) string {
		r := a.Anonymous().Send(method, "/projects/"+a.Project+"/rest/v1/"+path, body, "apikey: "+key)
		var failure struct{ Hint string }
		_ = json.Unmarshal(r.Body, &failure) // a success has none

		return failure.Hint
	}

	const query = "socle sql run --read-only=false --query '"
	for _, test := range []struct{ method, path, body, command string }{
		{"GET", "best?select=title", "", "grant select on table best to anon"},
		{"GET", "All?select=n", "", `grant select on table "All" to anon`},
		{"POST", "books", `{"title": "x"}`, "grant usage on sequence books_id_seq to anon"},
		{"GET", "rpc/add?a=1&b=2", "", "grant execute on function add to anon"},
		{"GET", "rpc/look", "", "grant execute on function look to anon"},
		{"GET", "rpc/look", "", "grant usage on schema shop to anon"},
	} {
		before := hint(test.method, test.path, test.body)
		if !strings.HasSuffix(before, query+test.command+"'") {
			t.Errorf("%s: got the hint %q, want the command %q", test.path, before, test.command)
		}

		a.Post("/sql", sqlBody(test.command, writing)).Want(200)
		if after := hint(test.method, test.path, test.body); after == before {
			t.Errorf("%s: got the hint %q after its command", test.path, after)
		}
	}
}
