package plan_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/plan"
	"github.com/socle-dev/socle/internal/rest/query"
)

// chooser derives a query, mostly a valid one, from a byte stream.
type chooser struct {
	data []byte
	odd  string // a name that does not exist
}

func (c *chooser) n(n int) int {
	if len(c.data) == 0 {
		return 0
	}

	v := int(c.data[0])
	c.data = c.data[1:]

	return v % n
}

func (c *chooser) of(list ...string) string { return list[c.n(len(list))] }

func (c *chooser) name() string {
	return c.of("id", "title", "name", "data", "meta", "year", "director_id", "film_id", "stars", "c", "tags", "vector",
		"shout", "boss_id", "a,b", c.odd)
}

func (c *chooser) relation() string {
	return c.of("films", "directors", "reviews", "actors", "staff", "boss_id", "technical", "film_titles", "maker",
		"sequels", "addresses", "orders", c.odd)
}

func (c *chooser) field() query.Field {
	f := query.Field{Name: c.name()}
	for range max(0, c.n(6)-3) {
		f.Path = append(f.Path, query.Step{
			Key:   c.of("a", "n", c.odd),
			Index: c.n(5) - 2,
			IsKey: c.n(2) == 0,
			Text:  c.n(2) == 0,
		})
	}

	return f
}

func (c *chooser) items(depth int) []query.Item {
	var items []query.Item
	for range c.n(4) {
		i := query.Item{
			Kind:  query.Kind(c.n(4)),
			Field: c.field(),
			Alias: c.of("", "", "x", c.odd),
			Cast:  c.of("", "", "text", "int", "jsonb", c.odd),
		}
		switch {
		case i.Kind == query.Star:
			i = query.Item{Kind: query.Star}
		case i.Kind != query.Column && depth > 0:
			i.Relation, i.Hint, i.Join = c.relation(), c.of("", "", "", "billing", "boss_id", c.odd), query.Join(c.n(3))
			i.Empty = c.n(4) == 1
			if !i.Empty {
				i.Items = c.items(depth - 1)
			}
			if i.Kind == query.Spread {
				i.Alias = ""
			}
		default:
			i.Kind = query.Column
			i.Aggregate = c.of("", "", "", "", "count", "max", "sum", "avg", "min")
			if i.Aggregate == "count" && c.n(2) == 0 {
				i.Field = query.Field{}
			}
			if i.Aggregate != "" {
				i.AggregateCast = c.of("", "text", c.odd)
			}
		}

		items = append(items, i)
	}

	return items
}

func (c *chooser) condition(depth int) query.Condition {
	if depth > 0 && c.n(4) == 1 {
		g := &query.Group{Not: c.n(2) == 1, Or: c.n(2) == 1}
		for range 1 + c.n(3) {
			g.Conditions = append(g.Conditions, c.condition(depth-1))
		}

		return g
	}

	f := &query.Comparison{Not: c.n(3) == 1, Field: c.field(), Value: c.of("1", "x", "{a}", c.odd),
		Operator: c.of("eq", "gt", "gte", "lt", "lte", "neq", "like", "ilike", "match", "imatch", "in", "is",
			"isdistinct", "fts", "plfts", "phfts", "wfts", "cs", "cd", "ov", "sl", "sr", "nxr", "nxl", "adj")}
	switch f.Operator {
	case "is":
		f.Value = c.of("null", "not_null", "true", "false", "unknown")
		if c.n(2) == 0 {
			f.Field = query.Field{Name: c.relation()}
		}
	case "in":
		f.List = []string{"1", c.odd}[:c.n(3)]
	case "fts", "plfts", "phfts", "wfts":
		f.Config = c.of("", "english", c.odd)
	case "eq", "gt", "gte", "lt", "lte", "like", "ilike", "match", "imatch":
		f.Quantifier = c.of("", "", "any", "all")
	}

	return f
}

func (c *chooser) path() []string {
	var path []string
	for range max(0, c.n(5)-2) {
		path = append(path, c.relation())
	}

	return path
}

func (c *chooser) query() *query.Query {
	q := &query.Query{Select: c.items(3)}
	for range c.n(4) {
		q.Filters = append(q.Filters, query.Filter{Path: c.path(), Condition: c.condition(2)})
	}

	for range c.n(3) {
		o := query.Order{Path: c.path()}
		for range 1 + c.n(2) {
			o.Terms = append(o.Terms, query.Term{
				Relation:   c.of("", "", "directors", c.odd),
				Field:      c.field(),
				Descending: c.n(2) == 0,
				Nulls:      c.of("", "first", "last"),
			})
		}

		q.Order = append(q.Order, o)
	}

	for range c.n(3) {
		limit := int64(c.n(9))
		q.Limits = append(q.Limits, query.Limit{Path: c.path(), Limit: &limit, Offset: int64(c.n(3))})
	}

	if c.n(3) == 1 {
		q.Columns = []string{c.name(), c.name()}[:1+c.n(2)]
	}
	if c.n(4) == 1 {
		q.OnConflict = []string{c.name()}
	}

	return q
}

// request returns a request with its planner, and whether such plans are cached.
func (c *chooser) request(handlers []catalog.Handler) (planner, *plan.Request, bool) {
	target := c.of("films", "directors", "staff", "paints", "film_titles", "actors", `odd "name_1`)

	r := &plan.Request{Count: plan.Count(c.n(4)), Return: plan.Return(c.n(3)), Resolve: plan.Resolution(c.n(3)),
		Missing: c.n(2) == 1, Aggregates: c.n(8) > 0,
		Head: c.n(8) == 1,
		Body: []byte(
			c.of(`{"id":1}`, `[{"id":1,"name":"x"}]`, `[]`, `{}`, `{"title":"x"}`, `{"a":1,"b":2}`, `{"y":1970}`,
				`{"v":[1]}`, `{"data":null}`, `[{"a":1}]`),
		)}

	if c.n(2) == 1 {
		maxRows := int64(c.n(5))
		r.MaxRows = &maxRows
	}

	if c.n(4) == 1 {
		limit := int64(c.n(9))
		r.Range = query.Limit{Limit: &limit, Offset: int64(c.n(3))}
	}

	kind := c.n(9)
	f, kept := []planner{
		plan.Read, plan.Read, plan.Read, plan.Insert, plan.Update, plan.Delete, plan.Put, call("json"), call(""),
	}[kind], kind < 7

	if c.n(2) == 1 {
		called := c.of("add", "films_after", "best_film", "spans", "listing", "numbers", "nothing", "total", "whole",
			"pick", "keep", "sequels", c.odd)
		f, target, kept = call(c.of("json", "")), called, false

		if c.n(2) == 1 {
			r.Body = nil
		}
	}

	r.Target = catalog.Name{Schema: "test", Name: target}
	r.Format = []plan.Format{
		plan.JSON, plan.Object, plan.CSV, plan.GeoJSON, plan.StrippedJSON, plan.StrippedObject, plan.Custom,
	}[c.n(7)]

	r.Query = c.query()
	for range c.n(3) {
		r.Query.Params = append(r.Query.Params,
			query.Param{Name: c.of("a", "b", "y", "v", "data", c.odd), Value: c.of("1", "{1}", c.odd)})
	}

	if r.Format == plan.Custom {
		h := &handlers[c.n(len(handlers))]
		if whole := len(r.Query.Select) == 0 && h.For == r.Target; h.For != (catalog.Name{}) && !whole {
			h = &handlers[slices.IndexFunc(handlers, func(h catalog.Handler) bool { return h.For == catalog.Name{} })]
		}

		r.Handler = h
	}

	return f, r, kept
}

// clientErrorCodes lists the SQLSTATEs of client errors: unknown names, types and functions, and
// expressions that PostgreSQL cannot group or compare.
var clientErrorCodes = []string{
	"42703", "42704", "42883", "42803", "42804", "42846", "22P02", "42809", "42725", "42P10", "42P18", "42P08", "42701",
	"0A000", "42602", "428C9", "3F000",
}

// FuzzPlan checks that each request becomes a statement that PostgreSQL accepts, or a client error.
func FuzzPlan(f *testing.F) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, seed))
		data := make([]byte, 80)
		for i := range data {
			data[i] = byte(r.Uint32())
		}

		f.Add(data, []string{`"; drop table x --`, `a'b\`, `x`, "\x00", "ä.(b)", "select", "_", "films_1"}[seed%8])
	}

	d := open(f)
	// stands in for PostGIS
	d.exec("create function features(record) returns text language plpgsql as 'begin return row_to_json($1); end'")
	d.catalog.GeoJSON = catalog.Name{Schema: "test", Name: "features"}

	f.Fuzz(func(t *testing.T, data []byte, odd string) {
		if len(odd) > 100 || !utf8.ValidString(odd) {
			return
		}

		c := &chooser{data: data, odd: odd}
		f, r, kept := c.request(d.catalog.Handlers)
		p, err := f(d.catalog, r)
		if kept {
			checkCached(t, d.catalog, f, r, p, err)
		}

		if err != nil {
			if _, ok := errors.AsType[*query.Error](err); !ok {
				t.Fatalf("%+v: %v", r.Query, err)
			}
			return
		}

		for _, sql := range []string{p.SQL, p.CountSQL} {
			if _, err := d.conn.PgConn().Prepare(t.Context(), "", sql, nil); err != nil &&
				!slices.Contains(clientErrorCodes, code(err)) {
				t.Fatalf("%v: %s", err, sql)
			}
		}
	})
}

// checkCached checks that Plans returns the same plan for a request, whatever values the first
// planned request had.
func checkCached(t *testing.T, c *catalog.Catalog, f planner, r *plan.Request, want *plan.Plan, failed error) {
	t.Helper()

	var plans plan.Plans
	other := *r
	other.Query = &query.Query{}
	*other.Query = *r.Query
	other.Query.Filters = nil
	for _, one := range r.Query.Filters {
		other.Query.Filters = append(other.Query.Filters,
			query.Filter{Path: one.Path, Condition: withOtherValues(one.Condition)})
	}

	other.Body = append([]byte(" "), r.Body...)
	for _, r := range []*plan.Request{&other, r} {
		got, err := plans.Plan(plan.ReadAction, f, c, r)
		if (err == nil) != (failed == nil) {
			t.Fatalf("%+v: cached %v, want %v", r.Query, err, failed)
		}

		if err != nil || r == &other {
			continue
		}

		if diff := cmp.Diff([]any{
			want.SQL, want.Args, want.CountSQL, want.CountArgs, want.Key, want.Resolved, want.ReleasesLocks,
		},
			[]any{got.SQL, got.Args, got.CountSQL, got.CountArgs, got.Key, got.Resolved, got.ReleasesLocks},
			cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%+v: %s", r.Query, diff)
		}
	}
}

// withOtherValues returns a condition with other values.
func withOtherValues(c query.Condition) query.Condition {
	switch c := c.(type) {
	case *query.Group:
		g := *c
		g.Conditions = nil
		for _, one := range c.Conditions {
			g.Conditions = append(g.Conditions, withOtherValues(one))
		}

		return &g
	case *query.Comparison:
		o := *c
		if o.Operator != "is" {
			o.Value = "other *" + o.Value
		}
		if o.List != nil {
			o.List = append([]string{"other"}, o.List...)
		}

		return &o
	}

	panic("no condition")
}
