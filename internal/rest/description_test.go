package rest

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/rest/catalog"
)

// description returns the description for a role.
func (a *api) description(role string) map[string]any {
	a.Helper()

	got := a.do("GET", "/", "", "Authorization", "Bearer "+role+":")
	if got.status != 200 {
		a.Fatalf("GET / as %s: got %d %s", role, got.status, got.body)
	}

	var d map[string]any
	if err := json.Unmarshal([]byte(got.body), &d); err != nil {
		a.Fatalf("%v in %s", err, got.body)
	}

	return d
}

// at returns the member of a description at a path of names.
func at(t testing.TB, d any, names ...string) any {
	t.Helper()

	for _, name := range names {
		d = d.(map[string]any)[name]
	}

	return d
}

// parse returns decoded JSON for comparisons.
func parse(t testing.TB, text string) any {
	t.Helper()

	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}

	return v
}

// librarySQL creates the described schema.
const librarySQL = `
	comment on schema public is E'Library\n\nBooks, and\nwho wrote them';
	create type mood as enum ('glad', 'sad');
	create domain code as varchar(4) default 'none';
	create table authors (id int primary key, name text not null);
	create table books (id bigint generated always as identity primary key, title varchar(80) not null default 'it''s "new"', author int references authors,
		price numeric(8, 2) default 9.5, stock int default '-1', free boolean default false, seen timestamp(3) default now(), mood mood default 'glad',
		kind code, mark char(2), tags text[] default '{}', sizes numeric(3)[], data jsonb default '{"a":1}', "odd/name ~" bit(3));
	comment on table books is E'All books\n\nAs they are\non the shelf';
	comment on column books.id is 'The number';
	comment on column books.title is 'As printed';
	create view titles as select id, title, author from books;
	create view counted as select author, count(*) from books group by author;
	create function find(word text, most int default 10) returns setof books language sql stable as 'select * from books';
	comment on function find is E'Finds books\nby a word';
	create function sell(id bigint, moods mood[]) returns void language sql as '';
	create function total(variadic n int[]) returns int language sql immutable as 'select 1';
	create function take(json) returns json language sql immutable as 'select $1';
	create function double(a int) returns int language sql as 'select 1';
	create function double(b text) returns int language sql as 'select 1';
	revoke execute on all functions in schema public from public;
	grant select on authors, books to anon, authenticated;
	grant insert (title), update (title) on books to authenticated;
	grant delete on titles to authenticated;
	grant select, insert, update, delete on counted to service_role;
	grant execute on function find, sell, total, take, double(text) to authenticated;
	grant execute on function total to anon`

func TestDescription(t *testing.T) {
	t.Parallel()

	a := newAPI(t, librarySQL)
	d := a.description("authenticated")
	for _, test := range []struct{ name, want string }{
		{"swagger", `"2.0"`}, {"host", `"example.com"`}, {"basePath", `"/"`}, {"schemes", `["http"]`},
		{"info", `{"title": "Library", "description": "Books, and\nwho wrote them", "version": "14"}`},
		{"security", `null`}, {"securityDefinitions", `null`},
		{"definitions authors", `{"type": "object", "required": ["id", "name"], "properties": {
			"id": {"type": "integer", "format": "int32", "description": "Note:\nThis is a Primary Key.<pk/>"}, "name": {"type": "string", "format": "text"}}}`},
		{"definitions books description", `"All books\n\nAs they are\non the shelf"`},
		{"definitions books required", `["id", "title"]`},
		{"definitions books properties", `{
			"id": {"type": "integer", "format": "int64", "description": "The number\n\nNote:\nThis is a Primary Key.<pk/>"},
			"title": {"type": "string", "format": "character varying", "maxLength": 80, "default": "it's \"new\"", "description": "As printed"},
			"author": {"type": "integer", "format": "int32", "description": "Note:\nThis is a Foreign Key to ` + "`authors.id`" + `.<fk table='authors' column='id'/>"},
			"price": {"type": "number", "format": "numeric", "default": 9.5}, "stock": {"type": "integer", "format": "int32", "default": -1},
			"free": {"type": "boolean", "format": "boolean", "default": false},
			"seen": {"type": "string", "format": "timestamp without time zone", "default": "now()"},
			"mood": {"type": "string", "format": "public.mood", "enum": ["glad", "sad"], "default": "glad"},
			"kind": {"type": "string", "format": "character varying", "maxLength": 4, "default": "none"},
			"mark": {"type": "string", "format": "character", "maxLength": 2},
			"tags": {"type": "array", "format": "text[]", "items": {"type": "string"}}, "sizes": {"type": "array", "format": "numeric[]", "items": {"type": "number"}},
			"data": {"format": "jsonb", "default": {"a": 1}}, "odd/name ~": {"type": "string", "format": "bit", "maxLength": 3}}`},
		{"parameters rowFilter.books.title",
			`{"name": "title", "in": "query", "required": false, "type": "string", "description": "As printed"}`},
		{"parameters body.books",
			`{"name": "books", "in": "body", "required": false, "description": "books", "schema": {"$ref": "#/definitions/books"}}`},
		{"parameters rangeUnit default", `"items"`},
		{"parameters preferPost enum",
			`["return=representation", "return=minimal", "return=none", "resolution=ignore-duplicates", "resolution=merge-duplicates"]`},
		{"paths / get tags", `["Introspection"]`},
		{"paths /authors get",
			`{"tags": ["authors"], "parameters": [{"$ref": "#/parameters/rowFilter.authors.id"}, {"$ref": "#/parameters/rowFilter.authors.name"},
			{"$ref": "#/parameters/select"}, {"$ref": "#/parameters/order"}, {"$ref": "#/parameters/range"}, {"$ref": "#/parameters/rangeUnit"},
			{"$ref": "#/parameters/offset"}, {"$ref": "#/parameters/limit"}, {"$ref": "#/parameters/preferCount"}],
			"responses": {"200": {"description": "OK", "schema": {"type": "array", "items": {"$ref": "#/definitions/authors"}}}, "206": {"description": "Partial Content"}}}`},
		{"paths /books post", `{"tags": ["books"], "summary": "All books", "description": "As they are\non the shelf",
			"parameters": [{"$ref": "#/parameters/body.books"}, {"$ref": "#/parameters/select"}, {"$ref": "#/parameters/preferPost"}], "responses": {"201": {"description": "Created"}}}`},
		{"paths /titles delete responses", `{"204": {"description": "No Content"}}`},
		{"paths /rpc/find get", `{"tags": ["(rpc) find"], "summary": "Finds books", "description": "by a word",
			"produces": ["application/json", "application/vnd.pgrst.object+json;nulls=stripped", "application/vnd.pgrst.object+json"],
			"parameters": [{"name": "word", "in": "query", "required": true, "type": "string", "format": "text"}, {"name": "most", "in": "query", "required": false, "type": "integer", "format": "int32"}],
			"responses": {"200": {"description": "OK"}}}`},
		{"paths /rpc/find post parameters",
			`[{"name": "args", "in": "body", "required": true, "schema": {"type": "object", "description": "Finds books\nby a word", "required": ["word"],
			"properties": {"word": {"type": "string", "format": "text"}, "most": {"type": "integer", "format": "int32"}}}}, {"$ref": "#/parameters/preferParams"}]`},
		{"paths /rpc/total get parameters",
			`[{"name": "n", "in": "query", "required": true, "type": "array", "collectionFormat": "multi", "items": {"type": "integer", "format": "int32"}}]`},
		{"paths /rpc/take post parameters",
			`[{"name": "args", "in": "body", "required": true, "schema": {"format": "json"}}, {"$ref": "#/parameters/preferParams"}]`},
	} {
		if diff := cmp.Diff(at(t, d, strings.Split(test.name, " ")...), parse(t, test.want)); diff != "" {
			t.Errorf("%s (-got +want):\n%s", test.name, diff)
		}
	}

	filters := at(t, d, "paths", "/books", "patch", "parameters").([]any)
	if ref := at(t, filters[13], "$ref"); ref != "#/parameters/rowFilter.books.odd~1name ~0" {
		t.Errorf("reference to a name with ~ and /: got %v", ref)
	}
}

// uses returns the paths of a description with their methods.
func uses(t testing.TB, d any) []string {
	t.Helper()

	var all []string
	for path, item := range at(t, d, "paths").(map[string]any) {
		all = append(all, path+" "+strings.Join(slices.Sorted(maps.Keys(item.(map[string]any))), ","))
	}

	slices.Sort(all)
	return all
}

func TestDescriptionFollowsPrivileges(t *testing.T) {
	t.Parallel()

	const closed = "revoke all on clients, projects, notes, parents, children from anon, authenticated, service_role;"
	a := newAPI(t, librarySQL+";"+closed)
	for role, want := range map[string][]string{
		"anon": {"/ get", "/authors get", "/books get", "/rpc/total get,post"},
		"authenticated": {"/ get", "/authors get", "/books get,patch,post", "/rpc/double post", "/rpc/find get,post",
			"/rpc/sell post", "/rpc/take post", "/rpc/total get,post", "/titles delete"},
		"service_role": {"/ get", "/counted get"}, // a view that cannot be written
	} {
		d := a.description(role)
		if diff := cmp.Diff(uses(t, d), want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", role, diff)
		}

		for name := range at(t, d, "definitions").(map[string]any) {
			if at(t, d, "paths", "/"+name) == nil {
				t.Errorf("%s: got a definition of %s, which it cannot use", role, name)
			}
		}
	}

	double := at(t, a.description("authenticated"), "paths", "/rpc/double", "post", "parameters").([]any)[0]
	if diff := cmp.Diff(at(t, double, "schema", "required"), []any{"b"}); diff != "" {
		t.Errorf("overload that the role can call (-got +want):\n%s", diff)
	}

	if _, err := a.admin.Exec(t.Context(), "revoke usage on schema public from public, anon"); err != nil {
		t.Fatal(err)
	}

	a.server.descriptions.ttl = 0

	if diff := cmp.Diff(uses(t, a.description("anon")), []string{"/ get"}); diff != "" {
		t.Errorf("a schema without usage (-got +want):\n%s", diff)
	}

	a.server.OpenAPI.Mode = "ignore-privileges"

	if got, want := uses(t, a.description("anon")), "/books delete,get,patch,post"; !slices.Contains(got, want) {
		t.Errorf("ignoring privileges: got %v, want %s", got, want)
	}
}

func TestDescriptionIsCached(t *testing.T) {
	t.Parallel()

	a := newAPI(t, "")
	a.server.descriptions.ttl = time.Hour
	a.description("anon") // the first request makes the cache listen and then read the catalog again

	a.await(func() bool {
		cache := a.server.Catalog
		cache.mu.Lock()
		defer cache.mu.Unlock()

		return cache.listener.listening.Load() && cache.loading == nil
	})

	old := uses(t, a.description("anon"))

	if _, err := a.admin.Exec(t.Context(), "grant insert on public.clients to anon"); err != nil {
		t.Fatal(err)
	}

	if diff := cmp.Diff(uses(t, a.description("anon")), old); diff != "" {
		t.Errorf("cached description (-got +want):\n%s", diff)
	}
	if got, want := uses(t, a.description("service_role")), "/clients delete,get,patch,post"; !slices.Contains(got,
		want) {
		t.Errorf("another role: got %v, want %s", got, want)
	}

	a.server.descriptions.ttl = 0

	if got, want := uses(t, a.description("anon")), "/clients get,post"; !slices.Contains(got, want) {
		t.Errorf("after the TTL: got %v, want %s", got, want)
	}
	if kept := len(a.server.descriptions.entries); kept != 1 {
		t.Errorf("got %d cached descriptions, want 1: the others are outdated", kept)
	}
}

func TestDescriptionFollowsCatalog(t *testing.T) {
	t.Parallel()

	d := descriptions{ttl: time.Hour}
	old, current := &catalog.Catalog{}, &catalog.Catalog{}
	d.put(descriptionKey{old, "anon", "public"}, []byte("old"))

	if got := d.get(descriptionKey{current, "anon", "public"}); got != nil {
		t.Errorf("got %s for another catalog, want none", got)
	}

	d.put(descriptionKey{current, "anon", "public"}, []byte("new"))

	if got := d.get(descriptionKey{old, "anon", "public"}); got != nil {
		t.Errorf("got %s of a replaced catalog, want none", got)
	}

	for i := range 2 * maxDescriptions {
		d.put(descriptionKey{current, strings.Repeat("x", i), "public"}, []byte("new"))
		if len(d.entries) > maxDescriptions {
			t.Fatalf("got %d cached descriptions, want at most %d", len(d.entries), maxDescriptions)
		}
	}
}

func TestDescriptionSettings(t *testing.T) {
	t.Parallel()

	a := newAPI(t, `create function refuse() returns void language plpgsql as $$ begin
			if current_setting('request.headers')::json ->> 'x-refuse' is not null then raise sqlstate 'PT403' using message = 'not you'; end if;
			perform set_config('response.headers', '[{"X-Seen":"yes"}]', true); end $$`,
		func(c *Config) {
			c.OpenAPI.Security, c.OpenAPI.Server = true, "https://api.example.org:8443/books/"
			c.PreRequest = catalog.Name{Schema: "public", Name: "refuse"}
		})

	d := a.description("anon")
	for name, want := range map[string]string{
		"host": `"api.example.org:8443"`, "basePath": `"/books"`, "schemes": `["https"]`, "security": `[{"JWT": []}]`,
		"externalDocs":        `{"description": "PostgREST Documentation", "url": "https://postgrest.org/en/v14/references/api.html"}`,
		"securityDefinitions": `{"JWT": {"type": "apiKey", "name": "Authorization", "in": "header", "description": "Add the token prepending \"Bearer \" (without quotes) to it"}}`,
	} {
		if diff := cmp.Diff(at(t, d, name), parse(t, want)); diff != "" {
			t.Errorf("%s (-got +want):\n%s", name, diff)
		}
	}

	for _, test := range []struct {
		method, accept, refuse string
		status                 int
		kind, want             string
	}{
		{"GET", "application/openapi+json", "", 200, openAPIType, `{"swagger":"2.0"`},
		{"GET", "text/html, */*;q=0.1", "", 200, openAPIType, `{"swagger":"2.0"`},
		{"GET", "application/json", "", 200, jsonType, `{"swagger":"2.0"`},
		{"GET", "text/csv", "", 406, jsonType, "PGRST107"},
		{"HEAD", "*/*", "", 200, openAPIType, ""},
		{"GET", "*/*", "yes", 403, jsonType, "not you"},
		{"POST", "*/*", "", 405, jsonType, "PGRST117"},
	} {
		got := a.do(test.method, "/", "", "Accept", test.accept, "X-Refuse", test.refuse)
		if got.status != test.status || got.header.Get("Content-Type") != test.kind ||
			!strings.Contains(got.body, test.want) || (test.method == "HEAD" && got.body != "") {
			t.Errorf("%s / as %s: got %d %s %s, want %d %s %s", test.method, test.accept, got.status,
				got.header.Get("Content-Type"), got.body, test.status, test.kind, test.want)
		}

		if seen := got.header.Get("X-Seen"); got.status == 200 && seen != "yes" {
			t.Errorf("%s / as %s: got no call of the pre-request function", test.method, test.accept)
		}
	}
}

func TestDescriptionDisabled(t *testing.T) {
	t.Parallel()

	root := func(c *Config) { c.RootSpec = catalog.Name{Schema: "public", Name: "root"} }
	const sql = `create function root() returns json language sql as $$ select '{"swagger":"1.2"}'::json $$`
	if got := newAPI(t, sql, root).do("GET", "/", ""); got.status != http.StatusOK || got.body != `{"swagger":"1.2"}` {
		t.Errorf("root function: got %d %s", got.status, got.body)
	}

	disabled := newAPI(t, sql, root, func(c *Config) { c.OpenAPI.Mode = "disabled" }).do("GET", "/", "")
	if disabled.status != http.StatusNotFound || !strings.Contains(disabled.body, "PGRST126") {
		t.Errorf("disabled: got %d %s, want 404 PGRST126", disabled.status, disabled.body)
	}
}
