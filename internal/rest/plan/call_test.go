package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/plan"
	"github.com/socle-dev/socle/internal/rest/query"
)

// call returns a planner for the function that Choose selects by the argument names or the body.
func call(raw string) planner {
	return func(c *catalog.Catalog, r *plan.Request) (*plan.Plan, error) {
		var names []string
		for _, p := range r.Query.Params {
			names = append(names, p.Name)
		}

		if raw == "json" {
			f, err := plan.ChooseJSON(c, r.Target, r.Query.Columns, r.Body)
			if err != nil {
				return nil, err
			}

			return plan.Call(c, r, f)
		}

		f, err := plan.Choose(c, r.Target, names, raw)
		if err != nil {
			return nil, err
		}

		return plan.Call(c, r, f)
	}
}

func TestCall(t *testing.T) {
	t.Parallel()

	d := open(t)
	for _, c := range []struct{ url, params, body, raw, want string }{
		{"add", "a=1&b=2", "", "", `3`},
		{"add", "a=1", "", "", `11`},
		{"add", "a=7&a=1", "", "", `11`},
		{"add", "", `{"a":1,"b":2}`, "json", `3`},
		{"add", "", `[{"a":1},{"a":2}]`, "json", `11`},
		{"add", "", `{"a":null}`, "json", `null`},
		{"total", "v=1&v=2&v=3", "", "", `6`},
		{"total", "", `{"v":[1,2]}`, "json", `3`},
		{"numbers", "", "", "", `[1, 2, 3, 4, 5]`},
		{"numbers?limit=2&offset=1", "", "", "", `[2, 3]`},
		{"nothing", "", `{}`, "json", ``},
		{"whole", "", `[1, {"a":2}]`, "json", `[1, {"a":2}]`},
		{"whole", "", `"x"`, "json", `"x"`},
		{"bytes", "", "\x00\xff\\", "bytea", `"00ff5c"`},
		{"keep", "", `{"data":{"x":[1]}}`, "json", `{"x": [1]}`},
		{"best_film?select=id,directors(name)", "", "", "", `{"id":1,"directors":{"name":"Kubrick"}}`},
		{"films_after?select=id,reviews(stars)&id=gt.1&order=id", "y=1950", "", "",
			`[{"id":2,"reviews":[{"stars":4}]},{"id":3,"reviews":[{"stars":5}]}]`},
		{"films_after?select=id,maker(name),shout&order=year.desc&limit=1", "", `{"y":1961}`, "json",
			`[{"id":1,"shout":"THE SHINING","maker":{"name":"Kubrick"}}]`},
		{"spans", "", "", "", `{"low":1,"high":2}`},
		{"listing?n=eq.2", "", "", "", `[{"n":2,"s":"b"}]`},
		{"listing?select=s&order=n.desc", "", "", "", `[{"s":"b"},{"s":"a"}]`},
	} {
		r := d.request(t, c.url)
		if c.body != "" {
			r.Body = []byte(c.body)
		}

		if c.params != "" {
			q, err := query.Parse(c.params, query.Options{RPC: true})
			if err != nil {
				t.Fatal(err)
			}

			r.Query.Params = q.Params
		}

		if c.want != "" && c.want[0] == '{' && c.url[0] != 'k' {
			r.Format = plan.Object
		}

		got, err := d.do(call(c.raw), r)
		if err != nil || compact(got.body) != c.want {
			t.Errorf("%s %s%s: got %s, %v, want %s", c.url, c.params, c.body, compact(got.body), err, c.want)
		}
	}
}

func TestCallCount(t *testing.T) {
	t.Parallel()

	d := open(t)
	for _, url := range []string{"numbers?limit=2", "films_after?limit=2"} {
		r := d.request(t, url)
		r.Count = plan.Exact
		want := "5"
		if url[0] == 'f' {
			r.Query.Params, want = []query.Param{{Name: "y", Value: "0"}}, "3"
		}

		got, err := d.do(call(""), r)
		if err != nil || got.total != want || got.page != "2" {
			t.Errorf("%s: got %q of %q, %v, want 2 of %s", url, got.page, got.total, err, want)
		}
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()

	d := open(t)
	for _, c := range []struct {
		name  string
		names []string
		raw   string
		want  *query.Error
	}{
		{"add", []string{"c", "a"}, "json", &query.Error{Status: 404, Code: "PGRST202",
			Message: "Could not find the function test.add(a, c) in the schema cache",
			Details: "Searched for the function test.add with parameters a, c or with a single unnamed " +
				"json/jsonb parameter, but no matches were found in the schema cache.",
			Hint: "Perhaps you meant to call the function test.add(a, b)"}},
		{"add", nil, "", &query.Error{Status: 404, Code: "PGRST202",
			Message: "Could not find the function test.add without parameters in the schema cache",
			Details: "Searched for the function test.add without parameters, but no matches were found in the " +
				"schema cache."}},
		{"addd", []string{"a"}, "", &query.Error{Status: 404, Code: "PGRST202",
			Message: "Could not find the function test.addd(a) in the schema cache",
			Details: "Searched for the function test.addd with parameter a, but no matches were found in the " +
				"schema cache.",
			Hint: "Perhaps you meant to call the function test.add"}},
		{"add", nil, "text", &query.Error{Status: 404, Code: "PGRST202",
			Message: "Could not find the function test.add in the schema cache",
			Details: "Searched for the function test.add with a single unnamed text parameter, but no matches " +
				"were found in the schema cache."}},
		// names from a form or CSV
		{"add", []string{"a", "b", "c"}, "", &query.Error{Status: 404, Code: "PGRST202",
			Message: "Could not find the function test.add(a, b, c) in the schema cache",
			Details: "Searched for the function test.add with parameters a, b, c, but no matches were found in " +
				"the schema cache.",
			Hint: "Perhaps you meant to call the function test.add(a, b)"}},
		{"films_after", []string{"wrong_arg"}, "", &query.Error{Status: 404, Code: "PGRST202",
			Message: "Could not find the function test.films_after(wrong_arg) in the schema cache",
			Details: "Searched for the function test.films_after with parameter wrong_arg, but no matches were " +
				"found in the schema cache."}},
		{"pick", []string{"a"}, "", &query.Error{Status: 300, Code: "PGRST203",
			Message: "Could not choose the best candidate function between: test.pick(a => integer), " +
				"test.pick(a => text)",
			Hint: "Try renaming the parameters or the function itself in the database so function " +
				"overloading can be resolved"}},
	} {
		_, err := plan.Choose(d.catalog, catalog.Name{Schema: "test", Name: c.name}, c.names, c.raw)
		if diff := cmp.Diff(error(c.want), err); diff != "" {
			t.Errorf("%s %v (-want +got):\n%s", c.name, c.names, diff)
		}
	}
}
