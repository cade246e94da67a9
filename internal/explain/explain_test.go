package explain

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/requestlog"
	"github.com/socle-dev/socle/internal/schema"
)

func TestStatementOf(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ method, route, query, want string }{
		{"GET", "/rest/v1/books", "author=eq.…&id=not.in.…&select=id,name&order=id.desc&limit=5",
			`select id,name from "books" where author = … and not (id in (…)) order by id desc limit 5`},
		{"GET", "/rest/v1/books", "", `select * from "books"`},
		{"GET", "/rest/v1/books", "or=(a.eq.…,b.is.null)&c=is.null",
			`select * from "books" where or=(a.eq.…,b.is.null) and c is null`},
		{"POST", "/rest/v1/books", "columns=a", `insert into "books" (…) values (…)`},
		{"PATCH", "/rest/v1/books", "id=eq.…", `update "books" set … where id = …`},
		{"DELETE", "/rest/v1/books", "id=gt.…", `delete from "books" where id > …`},
		{"POST", "/rest/v1/rpc/add", "", `select * from "add"(…)`},
		{"GET", "/rest/v1/rpc/add", "a=…&b=eq.…", `select * from "add"(a => …) where b = …`},
		{"GET", "/auth/v1/user", "", ""},
		{"GET", "/rest/v1", "", ""},
	} {
		r := requestlog.Request{Method: c.method, Route: c.route, Query: &c.query}
		if got := statementOf(r, targetOf(r)); got != c.want {
			t.Errorf("%s %s?%s: got %q, want %q", c.method, c.route, c.query, got, c.want)
		}
	}
}

// TestFind finds the cause of each kind of answer, and the command that mends it.
func TestFind(t *testing.T) {
	t.Parallel()

	own := schema.Policy{Name: "own", Command: "all", Roles: []string{"authenticated"}, Permissive: true,
		Using: new("(owner = auth.uid())")}
	user := uuid.Must(uuid.NewV7())
	guarded := facts{table: "books", rowSecurity: true, privileges: []string{"select"}, grants: []string{"select"}}
	open := guarded
	open.policies = []schema.Policy{own}

	for name, c := range map[string]struct {
		method, code, message string
		rows                  int64
		facts                 facts
		want                  string
	}{
		"no privilege": {"GET", "42501", "permission denied for table books", -1, facts{table: "books"},
			`authenticated lacks select on books. | socle grants update books --grants '[{"role":"authenticated","privileges":["select"]}]'`},
		"some privileges": {"PATCH", "42501", "permission denied for table books", -1, guarded,
			`authenticated lacks update on books. | socle grants update books --grants '[{"role":"authenticated","privileges":["select","update"]}]'`},
		"privileges by now": {"GET", "42501", "permission denied for table books", -1, guarded,
			"authenticated has the privileges on books now."},
		"another table": {"GET", "42501", "permission denied for table authors", -1, facts{table: "authors"},
			"authenticated lacks select on authors."},
		"function": {"POST", "42501", "permission denied for function add", -1, facts{},
			"may not execute the function add. | socle sql run --read-only=false --query 'grant execute on function add to " +
				"authenticated'"},
		"schema": {"GET", "42501", "permission denied for schema Shop", -1, facts{},
			`has no usage on the schema Shop. | socle sql run --read-only=false --query 'grant usage on schema "Shop" to ` +
				`authenticated'`},
		"schema of the platform": {"GET", "42501", "permission denied for schema auth", -1, facts{},
			"authenticated has no usage on the schema auth. It belongs to the platform"},
		"sequence": {"POST", "42501", "permission denied for sequence books_id_seq", -1, guarded,
			"has no usage on the sequence books_id_seq. | socle sql run --read-only=false --query 'grant usage on sequence " +
				"books_id_seq to authenticated'"},
		"view": {"PATCH", "42501", "permission denied for view books", -1, facts{},
			"lacks update on the view books. | socle sql run --read-only=false --query 'grant update on table books to " +
				"authenticated'"},
		"another view": {"PATCH", "42501", "permission denied for view best", -1, facts{},
			"lacks select on the view best. | socle sql run --read-only=false --query 'grant select on table best to " +
				"authenticated'"},
		"column": {"GET", "42501", `permission denied for column "title" of relation "books"`, -1, facts{table: "books"},
			"authenticated lacks select on books. | socle grants update books"},
		"language": {"POST", "42501", "permission denied for language c", -1, guarded,
			"authenticated lacks a privilege on the language c. | "},
		"new row, no policy": {"POST", "42501", `new row violates row-level security policy for table "books"`, -1, guarded,
			"No policy of books lets authenticated insert rows. | socle policies create books --name own_insert --command insert"},
		"new row, policy": {"POST", "42501", `new row violates row-level security policy for table "books"`, -1, open,
			"The policy own accepts a new row only if (owner = auth.uid()). | socle policies list books"},
		"hidden, no policy": {"GET", "", "", 0, guarded,
			"No policy of books lets authenticated select rows, so every row is hidden."},
		"hidden, policy": {"GET", "", "", 0, open, "The policy own hides all rows but those where (owner = auth.uid())."},
		"compare":        {"GET", "", "", 0, open, "socle rows list books --as " + user.String()},
		"no match":       {"GET", "", "", 0, facts{table: "books"}, "No policy applies: no row matches the filters."},
		"rows":           {"GET", "", "", 3, open, "The request succeeded."},
		"insert":         {"POST", "", "", 0, guarded, "The request succeeded."},
		"unknown table": {"GET", "PGRST205", "x", -1, facts{tables: []string{"films", "book"}},
			"There is no table books. The nearest name is book. | socle tables list"},
		"function unknown": {"POST", "PGRST202", "x", -1, facts{}, "No function of this name takes these arguments."},
		"duplicate":        {"POST", "23505", "x", -1, guarded, "A row with this key exists already."},
		"other":            {"GET", "XX999", "x", -1, guarded, "The message has all that the log knows"},
	} {
		r := requestlog.Request{Method: c.method, Route: "/rest/v1/books", Status: 200, Role: new("authenticated"),
			EndUserUUID: &user}
		if c.code != "" {
			r.Status, r.ErrorCode, r.ErrorMessage = 403, &c.code, &c.message
		}
		if c.rows >= 0 {
			r.Rows = &c.rows
		}

		target := targetOf(r)
		var got []string
		policies := policiesFor(c.facts.policies, target.command, "authenticated")
		for _, f := range findCauses(r, target, c.facts, policies) {
			got = append(got, f.Text+" | "+text(f.Command))
		}

		if all := strings.Join(got, "\n"); !strings.Contains(all, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, all, c.want)
		}
	}
}

// TestGrantHint names the command for each kind of object. A name can't end the command.
func TestGrantHint(t *testing.T) {
	t.Parallel()

	const query = "socle sql run --read-only=false --query "
	for message, want := range map[string]string{
		"permission denied for table books":                            "Grant it with: socle grants update, or as",
		`permission denied for column "title" of relation "books"`:     "Grant it with: socle grants update, or as",
		"permission denied for table Böcker":                           query + `'grant select on table "Böcker" to anon'`,
		"permission denied for view best":                              query + "'grant select on table best to anon'",
		"permission denied for materialized view best":                 "with: " + query + "'grant select on table best to anon'",
		"permission denied for foreign table far":                      query + "'grant select on table far to anon'",
		"permission denied for sequence books_id_seq":                  query + "'grant usage on sequence books_id_seq to anon'",
		"permission denied for schema shop":                            query + "'grant usage on schema shop to anon'",
		"permission denied for schema auth":                            "It belongs to the platform",
		"permission denied for schema pg_toast":                        "It belongs to the platform",
		"permission denied for function add":                           query + "'grant execute on function add to anon'",
		"permission denied for procedure add":                          query + "'grant execute on procedure add to anon'",
		"permission denied for type mood":                              query + "'grant usage on type mood to anon'",
		`permission denied for function x"y'; rm -rf`:                  query + `'grant execute on function "x""y'\''; rm -rf" to anon'`,
		"permission denied for view a.b":                               query + `'grant select on table "a.b" to anon'`,
		"permission denied for type shop.mood":                         query + "'grant usage on type shop.mood to anon'",
		`permission denied for type "My shop"."Mood"`:                  query + `'grant usage on type "My shop"."Mood" to anon'`,
		"permission denied for type x to anon; drop table y":           query + `'grant usage on type "x to anon; drop table y" to anon'`,
		"permission denied for language c":                             "",
		"permission denied for database x":                             "",
		`new row violates row-level security policy for table "books"`: "",
		"must be owner of table books":                                 "",
		"permission denied for table x\nfoo":                           query + "'grant select on table \"x\nfoo\" to anon'",
	} {
		got := GrantHint("anon", message)
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", message, got, want)
		}
	}
}
