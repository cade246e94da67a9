package plan_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/rest/plan"
	"github.com/socle-dev/socle/internal/rest/query"
)

func TestWrite(t *testing.T) {
	t.Parallel()

	d := open(t)
	const show, minimal, headers = plan.Representation, plan.Minimal, plan.HeadersOnly
	type result struct{ page, body, inserted string }
	for _, c := range []struct {
		what    string
		f       planner
		url     string
		body    string
		ret     plan.Return
		resolve plan.Resolution
		want    result
	}{
		{"one", plan.Insert, "actors", `{"id":9,"name":"x"}`, show, 0, result{"1", `[{"id":9,"name":"x"}]`, ""}},
		{"many", plan.Insert, "actors", `[{"id":8,"name":"x"}, {"name":"\"y\"","id":9}]`, show, 0,
			result{"2", `[{"id":8,"name":"x"},{"id":9,"name":"\"y\""}]`, ""}},
		{"no body back", plan.Insert, "actors", `{"id":9}`, minimal, 0, result{"1", ``, ""}},
		{"defaults", plan.Insert, "counters?select=at,n,label", `{}`, show, 0,
			result{"1", `[{"at":"2020-01-02","n":7,"label":null}]`, ""}},
		{"defaults twice", plan.Insert, "counters?select=n", `[{},{}]`, show, 0, result{"2", `[{"n":7},{"n":7}]`, ""}},
		{"no rows", plan.Insert, "counters", `[]`, show, 0, result{"0", `[]`, ""}},
		{"a scalar", plan.Insert, "counters", `null`, show, 0, result{"0", `[]`, ""}},
		{"columns", plan.Insert, "counters?columns=n&select=n,label", `[{"n":1,"label":"x"},{"n":2,"z":1}]`, show, 0,
			result{"2", `[{"n":1,"label":null},{"n":2,"label":null}]`, ""}},
		{"computed", plan.Insert, "films?select=id,shout", `{"id":9,"title":"x"}`, show, 0,
			result{"1", `[{"id":9,"shout":"X"}]`, ""}},
		{"computed and all", plan.Insert, "actors?select=*,n:name", `{"id":9,"name":"x"}`, show, 0,
			result{"1", `[{"id":9,"name":"x","n":"x"}]`, ""}},
		{"embedded", plan.Insert, "films?select=title,directors(name)", `{"id":9,"title":"x","director_id":2}`, show, 0,
			result{"1", `[{"title":"x","directors":{"name":"Varda"}}]`, ""}},
		{"embedded, computed", plan.Insert, "films?select=title,maker(name)", `{"id":9,"title":"x","director_id":2}`,
			show, 0, result{"1", `[{"title":"x","maker":{"name":"Varda"}}]`, ""}},
		{"ordered", plan.Insert, "actors?select=name&order=id.desc", `[{"id":8,"name":"x"},{"id":9,"name":"y"}]`, show,
			0, result{"2", `[{"name":"y"},{"name":"x"}]`, ""}},
		{"domain", plan.Insert, "paints", `{"id":9,"c":"#000010"}`, show, 0,
			result{"1", `[{"id":9,"c":"#000010"}]`, ""}},
		{"odd names", plan.Insert, `odd "name_1?select="a,b","Größe"`, `{"id":9,"a,b":"x","Gr\u00f6\u00dfe":1}`, show,
			0, result{"1", `[{"a,b":"x","Größe":1}]`, ""}},

		{"merged", plan.Insert, "actors?order=id", `[{"id":1,"name":"x"},{"id":9,"name":"y"}]`, show,
			plan.MergeDuplicates, result{"2", `[{"id":1,"name":"x"},{"id":9,"name":"y"}]`, "1"}},
		{"merged, no body", plan.Insert, "actors", `[{"id":1,"name":"x"},{"id":2,"name":"y"}]`, minimal,
			plan.MergeDuplicates, result{"2", ``, "0"}},
		{"ignored", plan.Insert, "actors", `[{"id":1,"name":"x"},{"id":9,"name":"y"}]`, show, plan.IgnoreDuplicates,
			result{"1", `[{"id":9,"name":"y"}]`, ""}},
		{"merged by columns", plan.Insert, "pairs?on_conflict=a,b", `{"a":1,"b":"x","v":"new"}`, show,
			plan.MergeDuplicates, result{"1", `[{"a":1,"b":"x","v":"new"}]`, "0"}},
		{"put, new", plan.Put, "actors?id=eq.9", `{"id":9,"name":"x"}`, show, 0,
			result{"1", `[{"id":9,"name":"x"}]`, "1"}},
		{"put, there", plan.Put, "pairs?b=eq.x&a=eq.1", `[{"a":1,"b":"x","v":"new"}]`, show, 0,
			result{"1", `[{"a":1,"b":"x","v":"new"}]`, "0"}},
		{"put, another", plan.Put, "actors?id=eq.9", `{"id":8,"name":"x"}`, minimal, 0, result{"0", ``, "0"}},

		{"update", plan.Update, "actors?id=eq.1", `{"name":"x"}`, show, 0, result{"1", `[{"id":1,"name":"x"}]`, ""}},
		{"update none", plan.Update, "actors?id=eq.0", `{"name":"x"}`, show, 0, result{"0", `[]`, ""}},
		{"update by an array", plan.Update, "actors?id=lt.3&select=name", `[{"name":"x"},{"name":"y"}]`, show, 0,
			result{"2", `[{"name":"x"},{"name":"x"}]`, ""}},
		{"update by nothing", plan.Update, "actors?id=eq.1", `{}`, show, 0, result{"0", `[]`, ""}},
		{"update by no rows", plan.Update, "actors?id=eq.1", `[]`, minimal, 0, result{"0", ``, ""}},
		{"update, embedded", plan.Update, "films?id=eq.1&select=title,reviews(stars)&reviews.stars=eq.3",
			`{"title":"x"}`, show, 0, result{"1", `[{"title":"x","reviews":[{"stars":3}]}]`, ""}},
		{"update, inner", plan.Update, "films?id=lte.2&select=id,reviews!inner(stars)&reviews.stars=eq.3",
			`{"title":"x"}`, show, 0, result{"2", `[{"id":1,"reviews":[{"stars":3}]}]`, ""}},
		{"update by a domain", plan.Update, "paints?c=eq.%230000ff", `{"c":"#000001"}`, show, 0,
			result{"1", `[{"id":1,"c":"#000001"}]`, ""}},
		{"update, a condition on JSON", plan.Update, "films?data->a->>b=eq.x&select=id", `{"data":{"z":[1]}}`, show, 0,
			result{"1", `[{"id":1}]`, ""}},
		{"delete", plan.Delete, "reviews?or=(id.eq.1,stars.eq.4)&select=id&order=id", ``, show, 0,
			result{"2", `[{"id":1},{"id":3}]`, ""}},
		{"delete all", plan.Delete, "reviews", ``, headers, 0, result{"4", ``, ""}},
		{"delete, aggregated", plan.Delete, "reviews?select=count(),stars.sum()", ``, show, 0,
			result{"4", `[{"count":4,"sum":17}]`, ""}},
	} {
		r := d.request(t, c.url)
		r.Body, r.Return, r.Resolve = []byte(c.body), c.ret, c.resolve
		a, err := d.do(c.f, r)

		got := result{a.page, compact(a.body), a.inserted}
		if err != nil || got != c.want {
			t.Errorf("%s: got %+v, %v\nwant %+v", c.what, got, err, c.want)
		}
	}
}

// TestExcluded checks an upsert into a table named like PostgreSQL's alias of the proposed rows.
func TestExcluded(t *testing.T) {
	t.Parallel()

	d := open(t, `create table excluded (id int primary key, name text); insert into excluded values (1, 'x')`)
	r := d.request(t, "excluded")
	r.Body, r.Return, r.Resolve = []byte(`{"id":1,"name":"y"}`), plan.Representation, plan.MergeDuplicates
	if got, err := d.do(plan.Insert, r); err != nil || got.body != `[{"id":1,"name":"y"}]` {
		t.Errorf("got %s, %v", got.body, err)
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()

	d := open(t)
	for _, c := range []struct {
		f               planner
		url, body, want string
	}{
		{plan.Insert, "counters?columns=n,at,label&select=n,at,label", `[{"n":1},{"label":"x","at":null}]`,
			`[{"n":1,"at":"2020-01-02","label":null},{"n":7,"at":null,"label":"x"}]`},
		{plan.Insert, "counters?columns=id,n&select=id,n", `[{"n":1,"id":49},{"id":50}]`,
			`[{"id":49,"n":1},{"id":50,"n":7}]`},
		{plan.Insert, "counters?columns=n,label&select=n,label", `{"label":"x"}`, `[{"n":7,"label":"x"}]`},
		{plan.Update, "reviews?columns=body,stars&id=eq.1&select=body,stars", `{"stars":1}`,
			`[{"body":"none","stars":1}]`},
		{plan.Update, "reviews?columns=body,stars&id=eq.1&select=body,stars", `[{"stars":1},{"stars":2}]`,
			`[{"body":"none","stars":1}]`},
	} {
		r := d.request(t, c.url)
		r.Body, r.Return, r.Missing = []byte(c.body), plan.Representation, true
		got, err := d.do(c.f, r)
		if err != nil || compact(got.body) != c.want {
			t.Errorf("%s %s: got %s, %v, want %s", c.url, c.body, compact(got.body), err, c.want)
		}
	}
}

func TestLocation(t *testing.T) {
	t.Parallel()

	d := open(t, `
		create table places (z text, at timestamp, note text, list text[], primary key (list, at, z));
		create view place_list as select list, at as moment, z from places;
		create view casting as select f.id as film_id, a.id as actor_id from films f left join actors a on a.id = f.year;
		create rule casting as on insert to casting do instead insert into films (id, title) values (new.film_id + 900, 'x') returning 1, null::int`)

	for _, c := range []struct{ target, body, want string }{
		{"actors", `{"id":9}`, "id=eq.9"},
		{"pairs", `{"a":2,"b":"ä b&c,\"d\""}`, "a=eq.2&b=eq.%C3%A4%20b%26c%2C%22d%22"},
		// conversions by columns
		{"places", `{"z":"x","at":"2020-01-02 03:04","list":["a b",null]}`,
			"z=eq.x&at=eq.2020-01-02%2003%3A04%3A00&list=eq.%7B%22a%20b%22%2CNULL%7D"},
		{"places?select=*", `{"z":"","at":"2020-01-02 03:04","list":[]}`,
			"z=eq.&at=eq.2020-01-02%2003%3A04%3A00&list=eq.%7B%7D"},
		// conversions by name
		{"places?select=z", `{"z":"x","at":"2020-01-02 03:04","list":[]}`,
			"at=eq.2020-01-02%2003%3A04%3A00&list=eq.%7B%7D&z=eq.x"},
		{"place_list", `{"z":"x","moment":"2020-01-02 03:04","list":[]}`,
			"list=eq.%7B%7D&moment=eq.2020-01-02%2003%3A04%3A00&z=eq.x"},
		// rows from two tables, one of them without a match
		{"casting", `{"film_id":1}`, "film_id=eq.1&actor_id=is.null"},
		{"paints", `{"id":9,"c":"#000010"}`, "id=eq.9"},
		{"film_titles", `{"id":9,"title":"x"}`, "id=eq.9"},
		{"actors", `[{"id":8},{"id":9}]`, ""},
		{"actors", `[]`, ""},
	} {
		r := d.request(t, c.target)
		r.Body, r.Return = []byte(c.body), plan.HeadersOnly
		p, err := plan.Insert(d.catalog, r)
		if err != nil {
			t.Fatal(err)
		}

		a, err := d.run(p)
		if got := p.Location(a.location); err != nil || got != c.want {
			t.Errorf("%s %s: got %q, %v, want %q", c.target, c.body, got, err, c.want)
		}
	}
}

// TestPrivileges checks that a write reads only the columns that its answer needs.
func TestPrivileges(t *testing.T) {
	t.Parallel()

	d := open(t)
	d.exec("drop role if exists plan_writer; create role plan_writer; grant usage on schema test to plan_writer;" +
		"grant insert, delete on test.actors to plan_writer; grant update (name) on test.actors to plan_writer")
	defer d.exec("reset role; drop owned by plan_writer; drop role plan_writer")

	d.exec("set role plan_writer")

	for _, c := range []struct {
		f         planner
		url, body string
		ret       plan.Return
		want      string
	}{
		{plan.Insert, "actors", `{"id":9}`, plan.Minimal, ""},
		{plan.Insert, "actors", `{"id":9}`, plan.HeadersOnly, "42501"},
		{plan.Insert, "actors", `{"id":9}`, plan.Representation, "42501"},
		{plan.Update, "actors", `{"name":"x"}`, plan.Minimal, ""},
		{plan.Update, "actors", `{}`, plan.Minimal, ""},
		{plan.Update, "actors?id=eq.1", `{"name":"x"}`, plan.Minimal, "42501"},
		// fails by the foreign key of roles, not by privilege
		{plan.Delete, "actors", ``, plan.Minimal, "23503"},
	} {
		r := d.request(t, c.url)
		r.Body, r.Return = []byte(c.body), c.ret
		if _, err := d.do(c.f, r); code(err) != c.want {
			t.Errorf("%s %s, return %d: got %v, want %q", c.url, c.body, c.ret, err, c.want)
		}
	}
}

func TestWriteFailures(t *testing.T) {
	t.Parallel()

	d := open(t)
	for _, c := range []struct {
		f               planner
		url, body, want string
	}{
		{plan.Insert, "nope", `{}`, "PGRST205"},
		{plan.Insert, "actors", ``, "PGRST102"},
		{plan.Insert, "actors", `{`, "PGRST102"},
		{plan.Insert, "actors", `{"id":1}x`, "PGRST102"},
		{plan.Insert, "actors", `[{"id":1},2]`, "PGRST102"},
		{plan.Insert, "actors", `[{"id":1},{"id":2,"name":"x"}]`, "PGRST102"},
		{plan.Insert, "actors", `[{"id":1,"name":"x"},{"id":2}]`, "PGRST102"},
		{plan.Insert, "actors", `[{"id":1},{"name":"x"}]`, "PGRST102"},
		{plan.Insert, "actors", "[{\"id\":1},", "PGRST102"},
		{plan.Insert, "actors", `{"nope":1}`, "PGRST204"},
		{plan.Insert, "actors?columns=nope", `{}`, "PGRST204"},
		{plan.Insert, "actors?columns=id", `{`, "22P02"},
		{plan.Insert, "actors?columns=id", `1`, "22023"},
		{plan.Insert, "actors", `{"id":"x"}`, "22P02"},
		{plan.Insert, "actors", `{"id":1}`, "23505"},
		{plan.Insert, "actors", `{"name":"\u0000","id":7}`, "22P05"},
		{plan.Insert, "actors?select=nope(*)", `{"id":7}`, "PGRST200"},
		{plan.Update, "actors?nope=eq.1", `{"id":7}`, "42703"},
		{plan.Update, "actors?a.b=eq.1", `{"id":7}`, "PGRST108"},
		{plan.Update, "actors", `{"nope":7}`, "PGRST204"},
		{plan.Put, "actors", `{"id":7}`, "PGRST105"},
		{plan.Put, "actors?id=gt.7", `{"id":7}`, "PGRST105"},
		{plan.Put, "actors?id=not.eq.7", `{"id":7}`, "PGRST105"},
		{plan.Put, "actors?id=eq.7&id=eq.7", `{"id":7}`, "PGRST105"},
		{plan.Put, "actors?or=(id.eq.7)", `{"id":7}`, "PGRST105"},
		{plan.Put, "actors?name=eq.x", `{"id":7}`, "PGRST105"},
		{plan.Put, "pairs?a=eq.1", `{"a":7}`, "PGRST105"},
		{plan.Put, "reviews?id=eq.1&id=eq.2", `{"a":7}`, "PGRST105"},
		{plan.Put, "actors?id=eq.7", `{"name":"x"}`, "PGRST115"},
	} {
		r := d.request(t, c.url)
		r.Body = []byte(c.body)
		if _, err := d.do(c.f, r); code(err) != c.want {
			t.Errorf("%s %s: got %v, want %s", c.url, c.body, err, c.want)
		}
	}

	r := d.request(t, "actors?on_conflict=name")
	r.Body, r.Resolve = []byte(`{"id":1,"name":"x"}`), plan.MergeDuplicates
	if _, err := d.do(plan.Insert, r); code(err) != "42P10" {
		t.Errorf("a target without a constraint: got %v", err)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()

	for body, want := range map[string][]string{
		`{"a":1,"b":{"c":2},"a":3}`:        {"a", "b"},
		`[{"b":1,"a":[{}]},{"a":1,"b":2}]`: {"a", "b"},
		`[{"a\n":1},{"a\u000a":2}]`:        {"a\n"},
		` [ {"a" : 1 , "b": 2} ] `:         {"a", "b"},
		`{}`:                               {},
		`[]`:                               nil,
		`1`:                                nil,
		`"x"`:                              nil,
	} {
		got, err := plan.Keys([]byte(body))
		if diff := cmp.Diff(want, got, equateEmpty); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", body, err, diff)
		}
	}

	want := &query.Error{Status: 400, Code: "PGRST102", Message: "All object keys must match"}
	for _, body := range []string{
		`[{"a":1},{}]`, `[{"a":1},{"b":1}]`, `[{"a":1},{"a":1,"b":1}]`, `[{"a":1,"b":1},{"b":1,"b":2}]`,
		`[{"a":1,"b":1},{"a":1,"a":2}]`,
	} {
		_, err := plan.Keys([]byte(body))
		if got, _ := errors.AsType[*query.Error](err); !cmp.Equal(want, got) {
			t.Errorf("%s: got %v, want %v", body, err, want)
		}
	}
}

// TestManyKeys reads objects with many members, in the order of the first object and in reverse.
func TestManyKeys(t *testing.T) {
	t.Parallel()

	object := func(n int, reverse bool) string {
		members := make([]string, n)
		for i := range members {
			members[i] = fmt.Sprintf(`"k%d":0`, i)
		}

		if reverse {
			slices.Reverse(members)
		}

		return "{" + strings.Join(members, ",") + "}"
	}
	for body, want := range map[string]int{
		object(150_000, false): plan.MaxNames + 1,
		"[" + object(plan.MaxNames, false) + strings.Repeat(","+object(plan.MaxNames, true), 300) + "]": plan.MaxNames,
		"[" + object(plan.MaxNames+9, false) + "," + object(plan.MaxNames+9, true) +
			"]": plan.MaxNames + 1,
	} {
		names, err := plan.Keys([]byte(body))
		if err != nil || len(names) != want {
			t.Errorf("%.50s…: %d names, %v, want %d", body, len(names), err, want)
		}
	}
}

var equateEmpty = cmp.Transformer("count", func(names []string) map[string]bool {
	set := map[string]bool{}
	for _, n := range names {
		set[n] = true
	}

	return set
})
