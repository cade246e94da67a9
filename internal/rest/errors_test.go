package rest

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/jwt"
	"github.com/socle-dev/socle/internal/rest/query"
)

// TestErrorBodies compares whole error bodies with those that PostgREST documents, since clients
// compare them.
func TestErrorBodies(t *testing.T) {
	t.Parallel()

	a := newAPI(t, `
		create function same(a int) returns int language sql as 'select 1'; create function same(a text) returns int language sql as 'select 1';
		create function raise_bad() returns void language plpgsql as $$ begin raise sqlstate 'PGRST' using message = 'INVALID', detail = '{}'; end $$;
		create function raise_bare() returns void language plpgsql as $$ begin raise sqlstate 'PGRST' using message = '{"code":"1","message":"m"}'; end $$;
		create function raise_detail() returns void language plpgsql as $$ begin raise sqlstate 'PGRST' using message = '{"code":"1","message":"m"}', detail = 'INVALID'; end $$;
		create function raise_plain() returns void language plpgsql as $$ begin raise 'plainly' using detail = 'd', hint = 'h'; end $$;
		create function bad_headers() returns int language sql as $$ select set_config('response.headers', '{"a":"b"}', true); select 1 $$;
		create function bad_status() returns int language sql as $$ select set_config('response.status', 'x', true); select 1 $$;
		alter table projects add owner_id int references clients;
		create procedure proceed() language sql as 'select 1'`)

	null := func(code, message string) map[string]any {
		return map[string]any{"code": code, "message": message, "details": nil, "hint": nil}
	}

	with := func(m map[string]any, member string, value any) map[string]any {
		m[member] = value
		return m
	}

	const raise = `Could not parse JSON in the "RAISE SQLSTATE 'PGRST'" error`
	const detail = "DETAIL must be a JSON object with obligatory keys: 'status', 'headers' and optional key: 'status_text'."
	for _, test := range []struct {
		method, path, body string
		headers            []string
		status             int
		want               map[string]any
	}{
		{"GET", "/clients?id=foo.1", "", nil, 400,
			with(null("PGRST100", `"failed to parse filter (foo.1)" (line 1, column 1)`), "details",
				`unexpected "f" expecting "not" or operator (eq, gt, ...)`)},
		{"GET", "/clients?or=(id.eq.1", "", nil, 400,
			with(null("PGRST100", `"failed to parse logic tree ((id.eq.1)" (line 1, column 11)`), "details",
				`unexpected end of input expecting "," or ")"`)},
		{"GET", "/clients?limit=x", "", nil, 200, nil},
		{"DELETE", "/rpc/add", "", nil, 405, null("PGRST101", "Cannot use the DELETE method on RPC")},
		{"PATCH", "/rpc/add", "{}", nil, 405, null("PGRST101", "Cannot use the PATCH method on RPC")},
		{"PUT", "/rpc/add", "{}", nil, 405, null("PGRST101", "Cannot use the PUT method on RPC")},
		{"POST", "/clients", "{", nil, 400, null("PGRST102", "Empty or invalid json")},
		{"POST", "/clients", `[{"id":1},{"name":"x"}]`, nil, 400, null("PGRST102", "All object keys must match")},
		{"POST", "/clients", "id,name\n1", []string{"Content-Type", "text/csv"}, 400,
			null("PGRST102", "All lines must have same number of fields")},
		{"POST", "/clients", "x", []string{"Content-Type", "image/png"}, 400,
			null("PGRST102", "Content-Type not acceptable: image/png")},
		{"GET", "/clients?limit=-1", "", nil, 416,
			with(null("PGRST103", "Requested range not satisfiable"), "details",
				"Limit should be greater than or equal to zero.")},
		{"GET", "/clients", "", []string{"Range", "9-1"}, 416,
			with(null("PGRST103", "Requested range not satisfiable"), "details",
				"The lower boundary must be lower than or equal to the upper boundary in the Range header.")},
		{"GET", "/clients?offset=10", "", []string{"Prefer", "count=exact"}, 416,
			with(null("PGRST103", "Requested range not satisfiable"), "details",
				"An offset of 10 was requested, but there are only 3 rows.")},
		{"PUT", "/clients?name=eq.x", `{"id":1,"name":"x"}`, nil, 405,
			null("PGRST105", "Filters must include all and only primary key columns with 'eq' operators")},
		{"PUT", "/clients?id=gt.1", `{"id":1,"name":"x"}`, nil, 405,
			null("PGRST105", "Filters must include all and only primary key columns with 'eq' operators")},
		{"GET", "/clients", "", []string{"Accept-Profile", "secret"}, 406,
			with(null("PGRST106", "Invalid schema: secret"), "hint", "Only the following schemas are exposed: public")},
		{"GET", "/clients", "", []string{"Accept", "text/what"}, 406,
			null("PGRST107", "None of these media types are available: text/what")},
		{"GET", "/clients?projects.id=eq.1", "", nil, 400,
			with(null("PGRST108", "'projects' is not an embedded resource in this request"), "hint",
				"Verify that 'projects' is included in the 'select' query parameter.")},
		{"GET", "/clients?projects.order=id", "", nil, 400,
			with(null("PGRST108", "'projects' is not an embedded resource in this request"), "hint",
				"Verify that 'projects' is included in the 'select' query parameter.")},
		{"POST", "/rpc/bad_headers", "", nil, 500,
			null("PGRST111",
				"response.headers guc must be a JSON array composed of objects with a single key and a string value")},
		{"POST", "/rpc/bad_status", "", nil, 500, null("PGRST112", "response.status guc must be a valid status code")},
		{"PUT", "/clients?id=eq.1&limit=1", `{"id":1,"name":"x"}`, nil, 400,
			null("PGRST114", "limit/offset querystring parameters are not allowed for PUT")},
		{"PUT", "/clients?id=eq.1", `{"id":2,"name":"x"}`, nil, 400,
			null("PGRST115", "Payload values do not match URL in primary key column(s)")},
		{"GET", "/clients", "", []string{"Accept", "application/vnd.pgrst.object+json"}, 406,
			with(null("PGRST116", "Cannot coerce the result to a single JSON object"), "details",
				"The result contains 3 rows")},
		{"TRACE", "/clients", "", nil, 405, null("PGRST117", "Unsupported HTTP method: TRACE")},
		{"GET", "/clients?select=*,projects!client_id(id)&order=projects(id)", "", nil, 400,
			with(null("PGRST118", "A related order on 'projects' is not possible"), "details",
				"'clients' and 'projects' do not form a many-to-one or one-to-one relationship")},
		{"POST", "/rpc/raise_bad", "", nil, 500,
			with(with(null("PGRST121", raise), "details", "Invalid JSON value for MESSAGE: 'INVALID'"), "hint",
				"MESSAGE must be a JSON object with obligatory keys: 'code', 'message' and optional keys: 'details', 'hint'.")},
		{"POST", "/rpc/raise_bare", "", nil, 500,
			with(with(null("PGRST121", raise), "details", "DETAIL is missing in the RAISE statement"), "hint", detail)},
		{"POST", "/rpc/raise_detail", "", nil, 500,
			with(with(null("PGRST121", raise), "details", "Invalid JSON value for DETAIL: 'INVALID'"), "hint", detail)},
		{"GET", "/clients", "", []string{"Prefer", "handling=strict, anything, else=1"}, 400,
			with(null("PGRST122", "Invalid preferences given with handling=strict"), "details",
				"Invalid preferences: anything, else=1")},
		{"GET", "/clients?select=id.max()", "", nil, 400,
			null("PGRST123", "Use of aggregate functions is not allowed")},
		{"PATCH", "/clients", `{"name":"x"}`, []string{"Prefer", "handling=strict, max-affected=1"}, 400,
			with(null("PGRST124", "Query result exceeds max-affected preference constraint"), "details",
				"The query affects 3 rows")},
		{"GET", "/clients/1", "", nil, 404, null("PGRST125", "Invalid path specified in request URL")},
		{"GET", "/rpc/", "", nil, 404, null("PGRST125", "Invalid path specified in request URL")},
		{"POST", "/rpc/add", `{"a":1,"b":2}`, []string{"Prefer", "handling=strict, max-affected=1"}, 400,
			null("PGRST128",
				"Function must return SETOF or TABLE when max-affected preference is used with handling=strict")},
		{"GET", "/clients?select=*,notes(*)", "", nil, 400,
			with(with(null("PGRST200",
				"Could not find a relationship between 'clients' and 'notes' in the schema cache"),
				"details",
				"Searched for a foreign key relationship between 'clients' and 'notes' in the schema 'public', but no matches were found."), "hint", "Perhaps you meant 'projects' instead of 'notes'.")},
		{"GET", "/clients?select=*,project(*)", "", nil, 400,
			with(with(null("PGRST200",
				"Could not find a relationship between 'clients' and 'project' in the schema cache"),
				"details",
				"Searched for a foreign key relationship between 'clients' and 'project' in the schema 'public', but no matches were found."), "hint", "Perhaps you meant 'projects' instead of 'project'.")},
		{"GET", "/projects?select=*,clients(*)", "", nil, 300,
			with(with(null("PGRST201",
				"Could not embed because more than one relationship was found for 'projects' and 'clients'"),
				"hint",
				"Try changing 'clients' to one of the following: 'clients!projects_client_id_fkey', 'clients!projects_owner_id_fkey'. Find the desired relationship in the 'details' key."),
				"details", []any{
					map[string]any{"cardinality": "many-to-one",
						"embedding":    "projects with clients",
						"relationship": "projects_client_id_fkey using projects(client_id) and clients(id)"},
					map[string]any{"cardinality": "many-to-one",
						"embedding":    "projects with clients",
						"relationship": "projects_owner_id_fkey using projects(owner_id) and clients(id)"}})},
		{"POST", "/rpc/nothin", `{"a":1}`, nil, 404,
			with(with(null("PGRST202", "Could not find the function public.nothin(a) in the schema cache"),
				"details",
				"Searched for the function public.nothin with parameter a or with a single unnamed json/jsonb parameter, but no matches were found in the schema cache."), "hint", "Perhaps you meant to call the function public.nothing")},
		{"GET", "/rpc/add?a=1&bb=2", "", nil, 404,
			with(with(null("PGRST202", "Could not find the function public.add(a, bb) in the schema cache"),
				"details",
				"Searched for the function public.add with parameters a, bb, but no matches were found in the schema cache."), "hint", "Perhaps you meant to call the function public.add(a, b)")},
		{"GET", "/rpc/add", "", nil, 404,
			with(null("PGRST202", "Could not find the function public.add without parameters in the schema cache"),
				"details",
				"Searched for the function public.add without parameters, but no matches were found in the schema cache.")},
		{"POST", "/rpc/add", "x", []string{"Content-Type",
			"text/plain"}, 404, with(null("PGRST202", "Could not find the function public.add in the schema cache"),
			"details",
			"Searched for the function public.add with a single unnamed text parameter, but no matches were found in the schema cache.")},
		{"GET", "/rpc/same?a=1", "", nil, 300,
			with(null("PGRST203",
				"Could not choose the best candidate function between: public.same(a => integer), public.same(a => text)"),
				"hint",
				"Try renaming the parameters or the function itself in the database so function overloading can be resolved")},
		{"POST", "/clients", `{"nosuch":1}`, nil, 400,
			null("PGRST204", "Could not find the 'nosuch' column of 'clients' in the schema cache")},
		{"POST", "/clients?columns=nosuch", `{"id":1}`, nil, 400,
			null("PGRST204", "Could not find the 'nosuch' column of 'clients' in the schema cache")},
		{"GET", "/client", "", nil, 404,
			with(null("PGRST205", "Could not find the table 'public.client' in the schema cache"), "hint",
				"Perhaps you meant the table 'public.clients'")},
		{"POST", "/rpc/proceed", "", nil, 404,
			with(null("PGRST202", "Could not find the function public.proceed without parameters in the schema cache"),
				"details",
				"Searched for the function public.proceed without parameters or with a single unnamed json/jsonb parameter, but no matches were found in the schema cache.")},
		{"GET", "/clients", "", []string{"Authorization", "Bearer "}, 401,
			null("PGRST301", "Empty JWT is sent in Authorization header")},
		{"POST", "/rpc/raise_plain", "", nil, 400,
			map[string]any{"code": "P0001", "message": "plainly", "details": "d", "hint": "h"}},
		{"POST", "/clients", `{"id":1,"name":"x"}`, nil, 409,
			with(null("23505", `duplicate key value violates unique constraint "clients_pkey"`), "details",
				"Key (id)=(1) already exists.")},
	} {
		got := a.do(test.method, test.path, test.body, test.headers...)
		if test.want == nil {
			if got.status != test.status {
				t.Errorf("%s %s: %+v", test.method, test.path, got)
			}
			continue
		}

		var body map[string]any
		if err := json.Unmarshal([]byte(got.body), &body); err != nil || got.status != test.status {
			t.Errorf("%s %s: %+v, want %d", test.method, test.path, got, test.status)
		}
		if diff := cmp.Diff(test.want, body); diff != "" {
			t.Errorf("%s %s (- want, + got):\n%s", test.method, test.path, diff)
		}
		if code, _ := body["code"].(string); got.header.Get("Proxy-Status") != "PostgREST; error="+code {
			t.Errorf("%s %s: Proxy-Status %q", test.method, test.path, got.header.Get("Proxy-Status"))
		}
	}
}

// TestRefusedCredentials checks that refused keys and tokens have the contract's codes and texts.
func TestRefusedCredentials(t *testing.T) {
	t.Parallel()

	v, err := jwt.New(jwt.Config{Secret: []byte("a secret of more than thirty-two bytes")})
	if err != nil {
		t.Fatal(err)
	}

	_, malformed := v.Verify("a.b")
	_, unsigned := v.Verify("eyJhbGciOiJub25lIn0.e30.")
	for _, test := range []struct {
		err  error
		want query.Error
	}{
		{malformed, query.Error{Status: 401, Code: "PGRST301", Message: "Expected 3 parts in JWT; got 2"}},
		{unsigned, query.Error{Status: 401, Code: "PGRST301", Message: "Wrong or unsupported encoding algorithm",
			Details: "JWT is unsecured but expected 'alg' was not 'none'"}},
		{fault.New(fault.Unauthenticated, "JWT expired").WithCode(jwt.InvalidClaims),
			query.Error{Status: 401, Code: "PGRST303", Message: "JWT expired"}},
		{fault.New(fault.Unauthenticated, "no key").WithCode("invalid_key"),
			query.Error{Status: 401, Code: "PGRST301", Message: "no key"}},
	} {
		got := (&Server{}).failure("", test.err)
		if diff := cmp.Diff(test.want, got.Error); diff != "" {
			t.Errorf("%v (-want +got):\n%s", test.err, diff)
		}
	}
}
