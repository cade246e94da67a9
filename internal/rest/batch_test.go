package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/rest/catalog"
)

func transactions(c *Config) { c.Features.Transactions = true }

// batchSQL has what tests of batches and keys call.
const batchSQL = `create schema other;
	create table other.places (id int primary key);
	create table tags (id text primary key, note jsonb);
	create function whoami() returns json language sql volatile as $$ select json_build_object('user', current_user,
		'method', current_setting('request.method'), 'path', current_setting('request.path'), 'search_path', current_setting('search_path'),
		'status', current_setting('response.status', true), 'work_mem', current_setting('work_mem')) $$;
	create function tuned() returns int language sql volatile set work_mem = '9MB' as 'select 1';
	grant usage on schema other to authenticated; grant all on tags, other.places to authenticated`

// batch sends operations. It returns the status and the answer.
func (a *api) batch(operations string, headers ...string) reply {
	a.Helper()

	return a.do("POST", "/", `{"operations": [`+operations+`]}`,
		append([]string{"Content-Type", "application/json"}, headers...)...)
}

func (a *api) value(sql string) string {
	a.Helper()

	return pgtest.Value[string](a, a.admin, sql)
}

func TestBatch(t *testing.T) {
	t.Parallel()

	a := newAPI(t, batchSQL, transactions)
	got := a.batch(`
		{"id": "client", "method": "POST", "path": "/clients?select=id,name", "headers": {"prefer": "return=representation"}, "body": {"id": 7, "name": "Eve & (x),y"}},
		{"method": "POST", "path": "projects", "body": [{"name": "one", "client_id": {"$ref": "client.0.id"}}, {"name": "two", "client_id": {"$ref": "client.0.id"}}]},
		{"id": "own", "method": "GET", "path": "/projects?select=name&client_id=eq.${client.0.id}&order=name", "headers": {"Prefer": "count=exact"}},
		{"method": "GET", "path": "/clients?select=id&name=eq.${client.0.name}", "headers": {"Accept": "application/vnd.pgrst.object+json"}},
		{"method": "PATCH", "path": "/projects?name=eq.${own.1.name}", "body": {"budget": 5}},
		{"method": "DELETE", "path": "/projects?name=eq.one"},
		{"method": "POST", "path": "/rpc/add", "body": {"a": {"$ref":"client.0.id"}, "b": 1}},
		{"method": "GET", "path": "/rpc/add?a=${client.0.id}&b=3"},
		{"method": "POST", "path": "/tags", "body": {"id": "literal", "note": {"a": {"\u0024ref": "x"}, "all": {"$ref": "own"}, "b": "{\"$ref\": \"client\"}"}}},
		{"method": "GET", "path": "/clients?select=id&id=eq.1", "headers": {"Accept": "text/csv"}}`)
	if got.status != 200 || got.header.Get("Content-Type") != "application/json; charset=utf-8" {
		t.Fatalf("got %d %s", got.status, got.body)
	}

	var answers []struct {
		ID      string
		Status  int
		Headers map[string]string
		Body    json.RawMessage
	}
	if err := json.Unmarshal([]byte(got.body), &answers); err != nil {
		t.Fatal(err)
	}

	var lines []string
	for _, one := range answers {
		lines = append(lines, fmt.Sprintf("%s %d %s %s", one.ID, one.Status, one.Headers["Content-Range"], one.Body))
	}
	want := []string{`client 201 */* [{"id":7,"name":"Eve & (x),y"}]`, ` 201 */* null`,
		`own 200 0-1/2 [{"name":"one"}, ` + "\n" + ` {"name":"two"}]`, ` 200 0-0/* {"id":7}`, ` 204 0-0/* null`,
		` 204 */* null`, ` 200 0-0/* 8`, ` 200 0-0/* 10`, ` 201 */* null`, ` 200 0-0/* "id\n1"`}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("the answers (-want +got):\n%s", diff)
	}

	if got, want := a.value(`select string_agg(name || coalesce(budget::text, ''), ',') from public.projects where client_id = 7`), "two5"; got != want {
		t.Errorf("got the projects %s, want %s", got, want)
	}
	if got, want := a.value(`select note::text from public.tags`),
		`{"a": {"$ref": "x"}, "b": "{\"$ref\": \"client\"}", "all": [{"name": "one"}, {"name": "two"}]}`; got != want {
		t.Errorf("got the note %s, want %s", got, want)
	}
}

// TestBatchFails checks that a failure names its operation and undoes all of them.
func TestBatchFails(t *testing.T) {
	t.Parallel()

	a := newAPI(t, batchSQL, transactions)
	const insert = `{"id": "a", "method": "POST", "path": "/clients", "headers": {"Prefer": "return=representation"}, "body": {"id": 8, "name": "Flo"}},`
	tooMany := strings.TrimSuffix(strings.Repeat(`{"method": "GET", "path": "/clients"},`, 101), ",")
	long := strings.Repeat("x", maxOperationHead+1)
	for operations, want := range map[string]string{
		tooMany: `400 invalid_batch <nil>`,
		`{"method": "GET", "path": "/clients?name=eq.` + long + `"}`:                                                                               `400 invalid_batch 0`,
		`{"method": "GET", "path": "/clients", "headers": {"Prefer": "` + long + `"}}`:                                                             `400 invalid_batch 0`,
		insert + `{"method": "GET", "path": "/clients?name=eq.%00"}`:                                                                               `400 22021 1`,
		insert + `{"method": "POST", "path": "/clients", "body": {"id": 8, "name": "again"}}`:                                                      `409 23505 1`,
		insert + `{"method": "POST", "path": "/clients", "body": {"id": "x"}}`:                                                                     `400 22P02 1`,
		insert + `{"method": "POST", "path": "/unknown", "body": {}}`:                                                                              `404 PGRST205 1`,
		insert + `{"method": "GET", "path": "/clients?unknown=eq.1"}`:                                                                              `400 42703 1`,
		insert + `{"method": "GET", "path": "/clients?id=eq.999", "headers": {"Accept": "application/vnd.pgrst.object+json"}}`:                     `406 PGRST116 1`,
		insert + `{"method": "POST", "path": "/rpc/teapot"}`:                                                                                       `418 PT418 1`,
		insert + `{"method": "POST", "path": "/children", "body": {"id": 1, "parent": 99}}`:                                                        `409 23503 <nil>`,
		insert + `{"method": "GET", "path": "/rpc/cookie"}`:                                                                                        `405 25006 1`,
		insert + `{"method": "PATCH", "path": "/clients?id=gt.0", "headers": {"Prefer": "handling=strict,max-affected=1"}, "body": {"name": "x"}}`: `400 PGRST124 1`,
		insert + `{"method": "PATCH", "path": "/clients?id=eq.${b.0.id}", "body": {"name": "x"}}`:                                                  `400 invalid_batch 1`,
		insert + `{"method": "PATCH", "path": "/clients?id=eq.${a.1.id}", "body": {"name": "x"}}`:                                                  `400 invalid_batch 1`,
		insert + `{"method": "PATCH", "path": "/clients?id=eq.${a.0}", "body": {"name": "x"}}`:                                                     `400 invalid_batch 1`,
		insert + `{"method": "PATCH", "path": "/clients?id=in.(${a.0.id})", "body": {"name": "x"}}`:                                                `400 invalid_batch 1`,
		insert + `{"method": "PATCH", "path": "/clients?or=(id.eq.${a.0.id})", "body": {"name": "x"}}`:                                             `400 invalid_batch 1`,
		insert + `{"method": "GET", "path": "/${a.0.name}"}`:                                                                                       `400 invalid_batch 1`,
		insert + `{"method": "POST", "path": "/tags", "body": {"id": {"$ref": "a.0.unknown"}}}`:                                                    `400 invalid_batch 1`,
		insert + `{"method": "POST", "path": "/tags", "headers": {"Prefer": "tx=rollback"}, "body": {}}`:                                           `400 invalid_batch 1`,
		insert + `{"method": "GET", "path": "/other/x"}`:                                                                                           `404 PGRST125 1`,
		insert + `{"method": "GET", "path": "/places", "headers": {"Accept-Profile": "none"}}`:                                                     `406 PGRST106 1`,
		insert + `{"method": "POST", "path": "/notes", "body": {"id": 9, "owner": "ben"}}`:                                                         `403 42501 1`,
		insert + `{"method": "GET", "path": "/clients", "headers": {"Authorization": "x"}}`:                                                        `400 invalid_batch 1`,
		insert + `{"method": "OPTIONS", "path": "/clients"}`:                                                                                       `400 invalid_batch 1`,
		insert + `{"method": "GET", "path": "/"}`:                                                                                                  `400 invalid_batch 1`,
		insert + `{"method": "GET", "path": "/clients", "body": {}}`:                                                                               `400 invalid_batch 1`,
		insert + `{"id": "a", "method": "GET", "path": "/clients"}`:                                                                                `400 invalid_batch 1`,
		`{"id": "1", "method": "GET", "path": "/clients"}`:                                                                                         `400 invalid_batch 0`,
		`{"method": "GET", "path": "/clients", "other": 1}`:                                                                                        `400 invalid_batch <nil>`,
		``: `400 invalid_batch <nil>`,
	} {
		got := a.batch(operations)
		var body struct {
			Code      string
			Operation *int
		}
		_ = json.Unmarshal([]byte(got.body), &body)
		index := "<nil>"
		if body.Operation != nil {
			index = fmt.Sprint(*body.Operation)
		}
		if line := fmt.Sprintf("%d %s %s", got.status, body.Code, index); line != want {
			t.Errorf("%s:\ngot %s, want %s: %s", operations, line, want, got.body)
		}
	}

	if n := a.value(`select count(*)::text from public.clients`); n != "3" {
		t.Errorf("%s clients remain, want 3", n)
	}
	if got := a.batch(`{"method": "POST", "path": "/clients", "body": {"id": 9, "name": "Gil"}}`, "Prefer", "tx=rollback"); got.status != 200 {
		t.Errorf("tx=rollback without the feature: got %d %s", got.status, got.body)
	}
}

// TestBatchState checks what the operations of a batch see of each other's state.
func TestBatchState(t *testing.T) {
	t.Parallel()

	a := newAPI(t, batchSQL, transactions, func(c *Config) {
		c.Schemas = []string{"public", "other"}
		source := Source{Pool: c.Catalog.source.Pool, Options: catalog.Options{Schemas: c.Schemas}}
		c.Catalog = NewCache(source, c.Catalog.log)
	})
	got := a.batch(`{"method": "POST", "path": "/rpc/cookie"},
		{"method": "POST", "path": "/places", "headers": {"Content-Profile": "other"}, "body": {"id": 1}},
		{"method": "POST", "path": "/rpc/tuned"},
		{"method": "POST", "path": "/rpc/whoami"}`)
	var answers []struct {
		Status  int
		Headers map[string]string
		Body    any
	}
	if err := json.Unmarshal([]byte(got.body), &answers); err != nil || len(answers) != 4 {
		t.Fatalf("%v: got %d %s", err, got.status, got.body)
	}

	if answers[0].Status != 299 || answers[0].Headers["Cache-Control"] != "no-store" || answers[3].Status != 200 ||
		answers[3].Headers["Cache-Control"] != "" {
		t.Errorf("got %+v", answers)
	}
	want := map[string]any{"user": "authenticated", "method": "POST", "path": "/rpc/whoami", "search_path": `"public"`,
		"status": "", "work_mem": "4MB"}
	if diff := cmp.Diff(any(want), answers[3].Body); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	got = a.batch(`{"method": "POST", "path": "/places", "body": {"id": 2}}, {"method": "GET", "path": "/places?id=eq.2"},
		{"method": "POST", "path": "/rpc/setting", "headers": {"Content-Profile": "public"}, "body": {"name": "TimeZone"}}`,
		"Content-Profile", "other", "Prefer", "timezone=Europe/Berlin")
	if !strings.Contains(got.body, `[{"id":2}]`) || !strings.Contains(got.body, `"Europe/Berlin"`) {
		t.Errorf("schema and time zone of a batch: got %d %s", got.status, got.body)
	}

	if got := a.do("POST", "/rpc/residue", ""); got.status != 200 {
		t.Errorf("after a batch: got %d %s", got.status, got.body)
	}
}

// TestBatchIsNoOther checks that a POST to the root is a batch only with JSON, and where batches
// are turned on.
func TestBatchIsNoOther(t *testing.T) {
	t.Parallel()

	a, plain := newAPI(t, "", transactions), newAPI(t, "")
	for _, got := range []reply{a.do("POST", "/", "id\n1", "Content-Type", "text/csv"), a.do("POST", "/", ""),
		a.do("PATCH", "/", "{}", "Content-Type", "application/json"),
		plain.batch(`{"method": "GET", "path": "/clients"}`)} {
		if got.status != http.StatusMethodNotAllowed || !strings.Contains(got.body, "PGRST117") {
			t.Errorf("got %d %s, want 405", got.status, got.body)
		}
	}
}

// TestBatchSeesNewTables plans a batch again if the catalog was outdated.
func TestBatchSeesNewTables(t *testing.T) {
	t.Parallel()

	a := newAPI(t, "", transactions)
	if got := a.do("GET", "/clients", ""); got.status != 200 {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	if _, err := a.admin.Exec(t.Context(), `create table public.late (id int); grant all on public.late to authenticated; notify pgrst`); err != nil {
		t.Fatal(err)
	}

	pgtest.Eventually(t, "the new table", func() bool {
		got := a.batch(`{"method": "POST", "path": "/clients", "body": {"id": 11, "name": "x"}}, {"method": "POST", "path": "/late", "body": {"id": 1}}`)
		return got.status == 200
	})
	if n := a.value(`select count(*)::text from public.late`); n != "1" {
		t.Errorf("got %s rows, want 1", n)
	}
}

// TestBatchBounds checks the size of answers and bodies.
func TestBatchBounds(t *testing.T) {
	t.Parallel()

	a := newAPI(t, "", transactions, func(c *Config) { c.Limits.MaxBody = 3000 })
	got := a.batch(`{"id": "g", "method": "POST", "path": "/rpc/grow?select=name", "body": {"n": 100}},
		{"method": "POST", "path": "/rpc/grow?select=name", "body": {"n": 100}}`)
	if got.status != http.StatusRequestEntityTooLarge || !strings.Contains(got.body, `"operation":1`) {
		t.Errorf("answers of more than 3000 bytes: got %d %s", got.status, got.body)
	}

	got = a.batch(`{"id": "g", "method": "POST", "path": "/rpc/grow?select=name", "body": {"n": 100}},
		{"method": "POST", "path": "/clients", "body": [{"id": 5, "name": {"$ref": "g"}}, {"id": 6, "name": {"$ref": "g"}}, {"id": 7, "name": {"$ref": "g"}}]}`)
	if got.status != http.StatusRequestEntityTooLarge || !strings.Contains(got.body, `"operation":1`) {
		t.Errorf("a body of more than 3000 bytes: got %d %s", got.status, got.body)
	}
}
