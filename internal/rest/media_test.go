package rest

import "testing"

// handlersSQL creates functions and aggregates for custom media types.
const handlersSQL = `
	create domain "text/plain" as text; create domain "text/xml" as xml; create domain "text/html" as text; create domain "application/octet-stream" as bytea;
	create domain "image/png" as bytea; create domain "*/*" as bytea; create domain "text/tab-separated-values" as text; create domain "application/vnd.names" as text;
	create domain "application/json" as json; create domain "text/csv" as text; create domain "application/vnd.whole+json" as json;

	create function plain() returns "text/plain" language sql as $$ select 'just text'::"text/plain" $$;
	create function xml() returns "text/xml" language sql as $$ select '<a/>'::"text/xml" $$;
	create function bytes() returns "application/octet-stream" language sql as $$ select '\x00ff10'::"application/octet-stream" $$;
	create function page() returns "text/html" language sql as $$ select '<b>hi</b>'::"text/html" $$;
	create function image(id int) returns "image/png" language sql stable as $$ select '\x89504e47'::"image/png" where id = 1 $$;
	create function twice() returns setof "text/plain" language sql as $$ select 'a'::"text/plain" union all select 'b' $$;
	create function anything() returns "*/*" language sql as $$ select 'any'::"*/*" $$;
	create function certain() returns "*/*" language plpgsql as $$ begin
		if current_setting('request.headers')::json->>'accept' = 'text/chico' then
			perform set_config('response.headers', '[{"Content-Type":"text/chico"}]', true);
			return 'chico';
		end if;
		raise sqlstate 'PT406' using message = 'Not Acceptable'; end $$;
	create function all_clients() returns setof clients language sql stable as 'select * from clients order by id';
	create function names() returns setof text language sql stable as 'select name from clients order by id';
	create function size(bytea) returns int language sql immutable as 'select length($1)';
	create function tag(xml) returns text language sql immutable as $$ select (xpath('name(/*)', $1))[1]::text $$;

	create function tsv_step(state "text/tab-separated-values", next anyelement) returns "text/tab-separated-values" language sql immutable as
		$$ select (state || (select string_agg(value, E'\t') from json_each_text(to_json(next))) || E'\n')::"text/tab-separated-values" $$;
	create aggregate tsv(anyelement) (sfunc = tsv_step, stype = "text/tab-separated-values", initcond = '');
	create function names_step(state "application/vnd.names", next clients) returns "application/vnd.names" language sql immutable as
		$$ select (state || next.name || ';')::"application/vnd.names" $$;
	create aggregate names_of(clients) (sfunc = names_step, stype = "application/vnd.names", initcond = '');
	create table numbers (n int primary key); insert into numbers values (1), (2); grant all on numbers to authenticated;
	create function number_step(state "*/*", next numbers) returns "*/*" language sql stable as
		$$ select (state || case when current_setting('request.headers')::json->>'accept' = 'magic/number'
			then (set_config('response.headers', '[{"Content-Type":"magic/number"}]', true) || next.n)::bytea else next.n::text::bytea end)::"*/*" $$;
	create aggregate numbers_of(numbers) (sfunc = number_step, stype = "*/*", initcond = '');
	create table overridden (id int primary key); insert into overridden values (1); grant all on overridden to authenticated;
	create function overridden_step(state "application/json", next overridden) returns "application/json" language sql immutable as $$ select '{"own":true}'::"application/json" $$;
	create aggregate overriding(overridden) (sfunc = overridden_step, stype = "application/json");
	create function bom_step(state "text/csv", next overridden) returns "text/csv" language sql immutable as $$ select (state || E'\n' || next.id)::"text/csv" $$;
	create function bom_end(state "text/csv") returns "text/csv" language sql as
		$$ select set_config('response.headers', '[{"Content-Disposition":"attachment; filename=\"own.csv\""}]', true); select (E'\uFEFFid' || state)::"text/csv" $$;
	create domain "application/vnd.pgrst.object" as json; create domain "application/vnd.pgrst.array+json" as json;
	create function no_object(state "application/vnd.pgrst.object", next anyelement) returns "application/vnd.pgrst.object" language sql as 'select null';
	create aggregate no_objects(anyelement) (sfunc = no_object, stype = "application/vnd.pgrst.object", initcond = '{"own":true}');
	create function no_array(state "application/vnd.pgrst.array+json", next anyelement) returns "application/vnd.pgrst.array+json" language sql as 'select state';
	create aggregate no_arrays(anyelement) (sfunc = no_array, stype = "application/vnd.pgrst.array+json", initcond = '{"own":true}');
	create aggregate bom(overridden) (sfunc = bom_step, finalfunc = bom_end, stype = "text/csv", initcond = '');`

func notAvailable(types string) string {
	return `{"code":"PGRST107","details":null,"hint":null,"message":"None of these media types are available: ` +
		types + `"}`
}

// TestMedia requests media types other than JSON.
func TestMedia(t *testing.T) {
	t.Parallel()

	a := newAPI(t, handlersSQL)
	const binary, csv = "application/octet-stream", "text/csv; charset=utf-8"
	for _, test := range []struct {
		method, path, accept, body string
		status                     int
		kind, want                 string
	}{
		// Functions that return a media type.
		{"GET", "/rpc/plain", "text/plain", "", 200, "text/plain; charset=utf-8", "just text"},
		{"POST", "/rpc/plain", "text/plain", "", 200, "text/plain; charset=utf-8", "just text"},
		{"HEAD", "/rpc/plain", "text/plain", "", 200, "text/plain; charset=utf-8", ""},
		{"GET", "/rpc/plain", "", "", 200, jsonType, `"just text"`},
		{"GET", "/rpc/plain", "text/xml", "", 406, jsonType, notAvailable("text/xml")},
		{"GET", "/rpc/plain", "text/xml, text/plain;q=0.1", "", 200, "text/plain; charset=utf-8", "just text"},
		{"GET", "/rpc/xml", "text/xml", "", 200, "text/xml; charset=utf-8", "<a/>"},
		{"GET", "/rpc/bytes", binary, "", 200, binary, "\x00\xff\x10"},
		{"GET", "/rpc/page", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "", 200,
			"text/html", "<b>hi</b>"},
		{"GET", "/rpc/image?id=1", "image/png, */*", "", 200, "image/png", "\x89PNG"},
		{"GET", "/rpc/image?id=2", "image/png", "", 200, "image/png", ""},
		{"GET", "/rpc/twice", "text/plain", "", 406, jsonType, notAvailable("text/plain")},
		{"GET", "/rpc/add?a=1&b=2", "text/plain", "", 406, jsonType, notAvailable("text/plain")},
		{"GET", "/rpc/add?a=1&b=2", binary, "", 406, jsonType, notAvailable(binary)},
		{"GET", "/rpc/anything", "*/*", "", 200, binary, "any"},
		{"GET", "/rpc/anything", "", "", 200, binary, "any"},
		{"GET", "/rpc/anything", "image/boingo", "", 200, binary, "any"},
		{"GET", "/rpc/certain", "text/chico", "", 200, "text/chico", "chico"},
		{"GET", "/rpc/certain", "text/csv", "", 406, jsonType,
			`{"code":"PT406","details":null,"hint":null,"message":"Not Acceptable"}`},

		// Aggregates, for rows of any type and for those of a table.
		{"GET", "/clients?id=lt.3&order=id", "text/tab-separated-values", "", 200, "text/tab-separated-values",
			"1\tAda\n2\tBob\n"},
		{"GET", "/clients?id=eq.3&select=name", "text/tab-separated-values", "", 200,
			"text/tab-separated-values", "Cid\n"},
		{"GET", "/clients?id=eq.9", "text/tab-separated-values", "", 200, "text/tab-separated-values", ""},
		{"GET", "/rpc/all_clients?id=eq.2", "text/tab-separated-values", "", 200,
			"text/tab-separated-values", "2\tBob\n"},
		{"POST", "/rpc/all_clients?id=eq.2", "text/tab-separated-values", "{}", 200,
			"text/tab-separated-values", "2\tBob\n"},
		{"GET", "/projects?id=eq.1&select=name,clients(name)", "text/tab-separated-values", "", 200,
			"text/tab-separated-values", "Windows\t{\"name\":\"Ada\"}\n"},
		{"GET", "/clients?order=id", "application/vnd.names", "", 200, "application/vnd.names", "Ada;Bob;Cid;"},
		{"GET", "/rpc/all_clients", "application/vnd.names", "", 200, "application/vnd.names", "Ada;Bob;Cid;"},
		{"GET", "/clients?select=id,name", "application/vnd.names", "", 406, jsonType,
			notAvailable("application/vnd.names")},
		{"GET", "/projects", "application/vnd.names", "", 406, jsonType, notAvailable("application/vnd.names")},
		{"HEAD", "/clients", "application/vnd.names", "", 200, "application/vnd.names", ""},
		{"POST", "/clients", "application/vnd.names", `{"id":7,"name":"Gil"}`, 201, "application/vnd.names", "Gil;"},
		{"PATCH", "/clients?id=eq.7", "text/tab-separated-values", `{"name":"Gus"}`, 200,
			"text/tab-separated-values", "7\tGus\n"},
		{"DELETE", "/clients?id=eq.7", "application/vnd.names", "", 200, "application/vnd.names", "Gus;"},
		{"GET", "/numbers?order=n", "", "", 200, binary, "12"},
		{"GET", "/numbers?order=n", "*/*", "", 200, binary, "12"},
		{"GET", "/numbers?order=n", "crazy/bingo", "", 200, binary, "12"},
		{"GET", "/numbers?n=eq.1", "magic/number", "", 200, "magic/number", `[{"Content-Type":"magic/number"}]1`},
		{"GET", "/overridden", "application/json", "", 200, jsonType, `{"own":true}`},
		{"GET", "/overridden", "", "", 200, jsonType, `[{"id":1}]`},
		{"GET", "/overridden?select=id", "application/json", "", 200, jsonType, `[{"id":1}]`},
		{"GET", "/overridden", "application/vnd.pgrst.object+json", "", 200,
			"application/vnd.pgrst.object+json; charset=utf-8", `{"id":1}`},
		{"GET", "/overridden", "application/vnd.pgrst.object", "", 200,
			"application/vnd.pgrst.object+json; charset=utf-8", `{"id":1}`},
		{"GET", "/overridden", "application/vnd.pgrst.object+json; Nulls = stripped", "", 200,
			"application/vnd.pgrst.object+json;nulls=stripped; charset=utf-8", `{"id":1}`},
		// same as application/json
		{"GET", "/overridden", "application/vnd.pgrst.array+json", "", 200, jsonType, `{"own":true}`},
		{"GET", "/clients?id=eq.1", "application/vnd.pgrst.array+json", "", 200, jsonType, `[{"id":1,"name":"Ada"}]`},
		{"GET", "/numbers?n=eq.1", "application/vnd.pgrst.object+json", "", 200,
			"application/vnd.pgrst.object+json; charset=utf-8", `{"n":1}`},
		{"GET", "/overridden", "text/csv", "", 200, csv, "\uFEFFid\n1"},

		// Built-in media types.
		{"GET", "/clients?order=id&limit=2", "text/csv", "", 200, csv, "id,name\n1,Ada\n2,Bob"},
		{"GET", "/clients?id=eq.9", "text/csv", "", 200, csv, "\n"},
		{"HEAD", "/clients", "text/csv", "", 200, csv, ""},
		{"GET", "/projects?select=title:name,budget,clients(name)&id=in.(1,2)&order=id", "text/csv", "", 200, csv,
			"title,budget,clients\nWindows,10.5,\"{\"\"name\"\":\"\"Ada\"\"}\"\nLinux,,\"{\"\"name\"\":\"\"Ada\"\"}\""},
		{"GET", "/rpc/all_clients?id=gt.1", "text/csv", "", 200, csv, "id,name\n2,Bob\n3,Cid"},
		{"GET", "/rpc/add?a=1&b=2", "text/csv", "", 200, csv, "pgrst_scalar\n3"},
		{"GET", "/rpc/names", "text/csv", "", 200, csv, "pgrst_scalar\nAda\nBob\nCid"},
		{"POST", "/clients", "text/csv", `[{"id":8,"name":"a,\"b\""},{"id":9,"name":"c"}]`, 201, csv,
			"id,name\n8,\"a,\"\"b\"\"\"\n9,c"},
		{"DELETE", "/clients?id=gte.8", "text/csv", "", 200, csv, "id,name\n8,\"a,\"\"b\"\"\"\n9,c"},
		{"GET", "/clients?id=eq.1", "application/vnd.pgrst.array+json", "", 200, jsonType, `[{"id":1,"name":"Ada"}]`},
		{"GET", "/clients?id=eq.1", "text/plain, application/json", "", 200, jsonType, `[{"id":1,"name":"Ada"}]`},
		{"GET", "/clients?id=eq.1", "text/html, */*;q=0.1", "", 200, jsonType, `[{"id":1,"name":"Ada"}]`},
		{"GET", "/clients", "text/plain", "", 406, jsonType, notAvailable("text/plain")},
		{"GET", "/clients", binary, "", 406, jsonType, notAvailable(binary)},
		{"GET", "/clients", "text/xml, undefined", "", 406, jsonType, notAvailable("text/xml, undefined")},
		{"GET", "/clients", "application/vnd.pgrst.plan", "", 406, jsonType,
			notAvailable(`application/vnd.pgrst.plan+text; for=\"application/json\"`)},
	} {
		headers := []string{"Accept", test.accept, "Prefer", "return=representation"}
		got := a.do(test.method, test.path, test.body, headers...)
		if got.status != test.status || got.header.Get("Content-Type") != test.kind || got.body != test.want {
			t.Errorf("%s %s as %q: %d %s %q, want %d %s %q", test.method, test.path, test.accept, got.status,
				got.header.Get("Content-Type"), got.body, test.status, test.kind, test.want)
		}
	}

	if got := a.do("GET", "/overridden", "", "Accept", "text/csv"); got.header.Get("Content-Disposition") !=
		`attachment; filename="own.csv"` {
		t.Errorf("the header of a handler: %+v", got)
	}

	for kind, want := range map[string]string{"application/octet-stream": "/rpc/size", "text/xml": "/rpc/tag"} {
		if got := a.do("POST", want, "<a/>", "Content-Type", kind); got.status != 200 ||
			got.body != map[string]string{"/rpc/size": "4", "/rpc/tag": `"a"`}[want] {
			t.Errorf("%s with a body of %s: %+v", want, kind, got)
		}
	}
}

// representationSQL creates domains whose values are read, compared and returned in another form
// than stored.
const representationSQL = `
	create domain color as int check (value between 0 and 16777215);
	create function show(color) returns json language sql immutable as $$ select to_json('#' || lpad(to_hex($1), 6, '0')) $$;
	create function read(text) returns color language sql immutable as $$ select ('x' || lpad(substr($1, 2), 8, '0'))::bit(32)::int::color $$;
	create function read(json) returns color language sql immutable as $$ select read($1 #>> '{}') $$;
	create cast (color as json) with function show(color) as implicit;
	create cast (json as color) with function read(json) as implicit;
	create cast (text as color) with function read(text) as implicit;
	create table cars (id int primary key, paint color, label text);
	insert into cars values (1, 255, 'blue'), (2, 16711680, 'red');
	create table wheels (id int primary key, car_id int references cars, rim color);
	insert into wheels values (1, 1, 65280);
	create view shown as select id, paint as shade from cars;
	create function painted(like_this color) returns setof cars language sql stable as 'select * from cars where paint = like_this';
	grant all on cars, wheels, shown to authenticated`

// TestRepresentations reads and writes columns of domains with casts.
func TestRepresentations(t *testing.T) {
	t.Parallel()

	a := newAPI(t, representationSQL, func(c *Config) { c.Features.Aggregates = true })
	for _, test := range []struct {
		method, path, body string
		headers            []string
		status             int
		want               string
	}{
		{"GET", "/cars?order=id", "", nil, 200,
			"[{\"id\":1,\"paint\":\"#0000ff\",\"label\":\"blue\"}, \n {\"id\":2,\"paint\":\"#ff0000\",\"label\":\"red\"}]"},
		{"GET", "/cars?select=paint&id=eq.1", "", nil, 200, `[{"paint":"#0000ff"}]`},
		{"GET", "/cars?select=tint:paint&id=eq.1", "", nil, 200, `[{"tint":"#0000ff"}]`},
		{"GET", "/cars?select=paint::text&id=eq.1", "", nil, 200, `[{"paint":"\"#0000ff\""}]`}, // of the representation
		{"GET", "/cars?select=tint:paint::jsonb&id=eq.1", "", nil, 200, `[{"tint":"#0000ff"}]`},
		{"GET", "/wheels?select=...cars(tint:paint::text)", "", nil, 200, `[{"tint":"\"#0000ff\""}]`},
		{"GET", "/cars?select=paint::int&id=eq.1", "", nil, 400,
			`{"code":"42846","details":null,"hint":null,"message":"cannot cast type json to integer"}`},
		{"GET", "/cars?select=top:paint.max()", "", nil, 200, `[{"top":16711680}]`}, // of the stored value
		{"GET", "/cars?select=top:paint::text.max()", "", nil, 200, `[{"top":"\"#ff0000\""}]`},
		{"GET", "/cars?select=tint:paint,id.count()&id=eq.1", "", nil, 200, `[{"tint":"#0000ff","count":1}]`},
		{"GET", "/cars?select=paint::text,id.count()&id=eq.1", "", nil, 200, `[{"paint":"\"#0000ff\"","count":1}]`},
		{"GET", "/cars?select=id&paint=eq.%23ff0000", "", nil, 200, `[{"id":2}]`},
		{"GET", "/cars?select=id&paint=in.(%23ff0000,%23000000)", "", nil, 200, `[{"id":2}]`},
		{"GET", "/cars?select=id&paint=not.gt.%230000ff", "", nil, 200, `[{"id":1}]`},
		{"GET", "/cars?select=id&paint=is.null", "", nil, 200, "[]"},
		{"GET", "/cars?select=id&or=(paint.eq.%230000ff,id.eq.9)", "", nil, 200, `[{"id":1}]`},
		{"GET", "/shown?shade=eq.%230000ff", "", nil, 200, `[{"id":1,"shade":"#0000ff"}]`},
		{"GET", "/cars?select=id,wheels(rim)&id=eq.1", "", nil, 200, `[{"id":1,"wheels":[{"rim":"#00ff00"}]}]`},
		{"GET", "/wheels?select=id,...cars(paint)", "", nil, 200, `[{"id":1,"paint":"#0000ff"}]`},
		{"GET", "/wheels?select=rim,cars(paint)&cars.paint=eq.%230000ff", "", nil, 200,
			`[{"rim":"#00ff00","cars":{"paint":"#0000ff"}}]`},
		{"POST", "/cars", `{"id":3,"paint":"#010203"}`, nil, 201, `[{"id":3,"paint":"#010203","label":null}]`},
		{"POST", "/cars", `[{"id":4,"paint":"#000004"},{"id":5,"paint":null}]`, nil, 201,
			"[{\"id\":4,\"paint\":\"#000004\",\"label\":null}, \n {\"id\":5,\"paint\":null,\"label\":null}]"},
		{"POST", "/cars?columns=id,paint", "id,paint\n6,#000006\n", []string{"Content-Type", "text/csv"}, 201,
			`[{"id":6,"paint":"#000006","label":null}]`},
		{"POST", "/cars", `{"id":3,"paint":"#0a0b0c"}`,
			[]string{"Prefer", "resolution=merge-duplicates,return=representation"}, 200,
			`[{"id":3,"paint":"#0a0b0c","label":null}]`},
		{"PATCH", "/cars?id=eq.3", `{"paint":"#ffffff"}`, nil, 200, `[{"id":3,"paint":"#ffffff","label":null}]`},
		{"PATCH", "/cars?paint=eq.%23ffffff&select=label", `{"label":"white"}`, nil, 200, `[{"label":"white"}]`},
		{"PUT", "/cars?id=eq.3", `{"id":3,"paint":"#030303","label":"x"}`, nil, 200,
			`[{"id":3,"paint":"#030303","label":"x"}]`},
		{"DELETE", "/cars?paint=eq.%23030303", "", nil, 200, `[{"id":3,"paint":"#030303","label":"x"}]`},
		{"GET", "/rpc/painted?like_this=255", "", nil, 200, `[{"id":1,"paint":"#0000ff","label":"blue"}]`},
	} {
		headers := append([]string{"Prefer", "return=representation"}, test.headers...)
		if got := a.do(test.method, test.path, test.body, headers...); got.status != test.status ||
			got.body != test.want {
			t.Errorf("%s %s: %d %s, want %d %s", test.method, test.path, got.status, got.body, test.status, test.want)
		}
	}

	var kept int
	if err := a.admin.QueryRow(t.Context(), "select paint::int from public.cars where id = 4").
		Scan(&kept); err != nil || kept != 4 {
		t.Errorf("got stored value %d, %v, want 4", kept, err)
	}
}
