package rest

import (
	"strings"
	"testing"
)

// TestPreferences sends each preference with requests that honor it and requests that ignore it.
func TestPreferences(t *testing.T) {
	t.Parallel()

	a := newAPI(t, `
		create table stock (id int primary key default 7, name text default 'none', made timestamptz default '2020-01-01 12:00:00+00');
		insert into stock values (1, 'one', '2020-06-01 12:00:00+00'), (2, 'two', null), (3, 'three', null);
		create function drop_all() returns setof stock language sql as 'delete from stock where true returning *';
		grant all on stock to authenticated`, func(c *Config) { c.Features.TxOverride = true })

	const strict = "handling=strict, "
	for _, test := range []struct {
		method, path, body, prefer string
		status                     int
		want, applied              string
	}{
		// timezone
		{"GET", "/stock?select=made&id=eq.1", "", "timezone=America/Lima", 200,
			`[{"made":"2020-06-01T07:00:00-05:00"}]`, "timezone=America/Lima"},
		{"GET", "/stock?select=made&id=eq.1", "", strict + "timezone=America/Lima", 200,
			`[{"made":"2020-06-01T07:00:00-05:00"}]`, "handling=strict, timezone=America/Lima"},
		{"GET", "/stock?select=made&id=eq.1", "", "timezone=Mars/Olympus", 200,
			`[{"made":"2020-06-01T12:00:00+00:00"}]`, ""},
		{"GET", "/stock?select=made&id=eq.1", "", strict + "timezone=Mars/Olympus", 400,
			`"details":"Invalid preferences: timezone=Mars/Olympus"`, ""},
		{"GET", "/stock?select=made&id=eq.1", "", strict + "timezone=-5:30", 200,
			`[{"made":"2020-06-01T17:30:00+05:30"}]`, "handling=strict, timezone=-5:30"},
		{"GET", "/stock?select=made&id=eq.1", "", "timezone=+04", 200, `[{"made":"2020-06-01T16:00:00+04:00"}]`,
			"timezone=+04"},
		{"GET", "/stock?select=made&id=eq.1", "", strict + "timezone=05:30:15", 400,
			`"details":"Invalid preferences: timezone=05:30:15"`, ""},
		{"GET", "/rpc/setting?name=TimeZone", "", "timezone=Asia/Tokyo", 200, `"Asia/Tokyo"`, "timezone=Asia/Tokyo"},

		// tx
		{"POST", "/stock", `{"id":10}`, "tx=rollback, return=representation", 201, `"id":10`,
			"return=representation, tx=rollback"},
		{"PATCH", "/stock?id=eq.1", `{"name":"x"}`, "tx=rollback, return=representation", 200, `"name":"x"`,
			"return=representation, tx=rollback"},
		{"DELETE", "/stock?id=eq.1", "", "tx=rollback", 204, "", "tx=rollback"},
		{"PUT", "/stock?id=eq.11", `{"id":11}`, "tx=rollback, return=representation", 201, `"id":11`,
			"return=representation, tx=rollback"},
		{"PUT", "/stock?id=eq.11", `{"id":11}`, "tx=rollback, count=exact", 204, "", "count=exact, tx=rollback"},
		{"POST", "/rpc/drop_all", "", "tx=rollback", 200, `"id":3`, "tx=rollback"},
		{"GET", "/stock?select=id,name&order=id", "", "", 200,
			"[{\"id\":1,\"name\":\"one\"}, \n {\"id\":2,\"name\":\"two\"}, \n {\"id\":3,\"name\":\"three\"}]", ""},
		{"POST", "/stock", `{"id":12}`, "tx=commit, return=headers-only", 201, "", "return=headers-only, tx=commit"},
		{"DELETE", "/stock?id=eq.12", "", "tx=commit, return=minimal, count=exact", 204, "",
			"return=minimal, count=exact, tx=commit"},

		// max-affected
		{"PATCH", "/stock", `{"name":"all"}`, strict + "max-affected=2", 400,
			`"details":"The query affects 3 rows"`, ""},
		{"PATCH", "/stock?id=lt.3", `{"name":"few"}`, strict + "max-affected=2", 204, "",
			"handling=strict, max-affected=2"},
		{"PATCH", "/stock?id=lt.4", `{"name":"few"}`, "handling=lenient, max-affected=2", 204, "", "handling=lenient"},
		{"DELETE", "/stock", "", strict + "max-affected=0", 400, `"PGRST124"`, ""},
		{"POST", "/rpc/drop_all", "", strict + "max-affected=2", 400, `"PGRST124"`, ""},
		{"POST", "/rpc/nothing", "", strict + "max-affected=2", 400, `"PGRST128"`, ""},
		{"GET", "/stock?select=id&order=id&limit=1", "", strict + "max-affected=1", 200, `[{"id":1}]`,
			"handling=strict"},
		{"GET", "/stock?select=id&order=id", "", "", 200, `"id":3`, ""},

		// handling
		{"GET", "/stock?id=eq.1", "", "anything, at=all", 200, `"id":1`, ""},
		{"GET", "/stock?id=eq.1", "", "handling=lenient, anything", 200, `"id":1`, "handling=lenient"},
		{"GET", "/stock?id=eq.1", "", "anything, handling=strict", 400,
			`"details":"Invalid preferences: anything"`, ""},
		{"POST", "/stock", `{"id":20}`, strict + "return=everything", 400,
			"Invalid preferences: return=everything", ""},
		{"POST", "/rpc/nothing", "", strict + "count=some", 400, "Invalid preferences: count=some", ""},

		// missing
		{"POST", "/stock?columns=id,name", `[{"id":30},{"id":31,"name":"given"}]`,
			"missing=default, return=representation", 201, `"id":30,"name":"none"`,
			"missing=default, return=representation"},
		{"POST", "/stock?columns=id,name", `[{"id":32},{"id":33,"name":"given"}]`,
			"missing=null, return=representation", 201, `"id":32,"name":null`, "missing=null, return=representation"},
		{"POST", "/stock?columns=id,name", `[{"id":34}]`, "return=representation", 201, `"id":34,"name":null`,
			"return=representation"},
		{"POST", "/stock?columns=id,name", `{}`, "missing=default, return=representation", 201, `"id":7,"name":"none"`,
			"missing=default, return=representation"},
		{"PATCH", "/stock?id=eq.34&columns=name", `{}`, "missing=default, return=representation", 200, `"name":"none"`,
			"missing=default, return=representation"},
		{"DELETE", "/stock?id=gte.7", "", "missing=default, resolution=merge-duplicates", 204, "", ""},

		// resolution
		{"POST", "/stock", `[{"id":1,"name":"merged"},{"id":40,"name":"new"}]`,
			"resolution=merge-duplicates, return=representation", 201, `"merged"`,
			"resolution=merge-duplicates, return=representation"},
		{"POST", "/stock", `{"id":1,"name":"again"}`, "resolution=ignore-duplicates, return=representation", 201, "[]",
			"resolution=ignore-duplicates, return=representation"},
		{"POST", "/rpc/nothing", "", "resolution=merge-duplicates, return=minimal, missing=default", 204, "", ""},

		// the first of two counts wins
		{"GET", "/stock?select=id&id=eq.1", "", "count=exact, count=planned", 200, `[{"id":1}]`, "count=exact"},
	} {
		headers := []string{"Prefer", test.prefer}
		got := a.do(test.method, test.path, test.body, headers...)
		if got.status != test.status || (test.want == "" && got.body != "") || !strings.Contains(got.body, test.want) ||
			got.header.Get("Preference-Applied") != test.applied {
			t.Errorf("%s %s preferring %q: %d %q %s, want %d %q %s", test.method, test.path, test.prefer, got.status,
				got.header.Get("Preference-Applied"), got.body, test.status, test.applied, test.want)
		}
	}
}

// TestWritesHaveNoLimit checks that limit, offset and order do not restrict the rows of a write:
// the contract has no limited writes any more. max-affected bounds a write.
func TestWritesHaveNoLimit(t *testing.T) {
	t.Parallel()

	a := newAPI(t,
		`create table items (id int primary key, done bool not null default false); insert into items select generate_series(1, 5); grant all on items to authenticated;
		create procedure finish() language sql as 'update items set done = true'; grant execute on procedure finish() to authenticated`, func(c *Config) { c.Features.Aggregates = true })

	for _, test := range []struct {
		method, path, body, prefer string
		status                     int
		want                       string
	}{
		{"PATCH", "/items?id=lte.4&order=id&limit=2", `{"done":true}`, "handling=strict, max-affected=2", 400,
			`"details":"The query affects 4 rows"`},
		{"GET", "/items?done=is.true", "", "", 200, "[]"},
		{"PATCH", "/items?id=lte.4&order=id&limit=2", `{"done":true}`, "", 204, ""},
		{"GET", "/items?select=count()&done=is.true", "", "", 200, `[{"count":4}]`},
		{"DELETE", "/items?order=id&limit=1&offset=1", "", "handling=strict, max-affected=1", 400, "PGRST124"},
		{"PUT", "/items?id=eq.1&limit=1", `{"id":1}`, "", 400, "PGRST114"},
		{"PUT", "/items?id=eq.1&offset=1", `{"id":1}`, "", 400, "PGRST114"},
		{"POST", "/rpc/finish", "", "", 404,
			"Could not find the function public.finish without parameters in the schema cache"},
		{"GET", "/rpc/finish", "", "", 404, "PGRST202"},
		{"OPTIONS", "/rpc/finish", "", "", 404, "PGRST202"},
		{"GET", "/items?select=count()&done=is.true", "", "", 200, `[{"count":4}]`},
		{"DELETE", "/items?order=id&limit=1", "", "count=exact", 204, ""},
		{"GET", "/items", "", "", 200, "[]"},
	} {
		got := a.do(test.method, test.path, test.body, "Prefer", test.prefer)
		if got.status != test.status || !strings.Contains(got.body, test.want) {
			t.Errorf("%s %s preferring %q: %d %s, want %d %s", test.method, test.path, test.prefer, got.status,
				got.body, test.status, test.want)
		}
	}

	if got := a.do("GET", "/", ""); strings.Contains(got.body, "/rpc/finish") {
		t.Error("got a procedure in the description, which cannot be called")
	}
}
