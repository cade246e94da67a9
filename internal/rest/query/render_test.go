package query_test

import (
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/rest/query"
)

func escape(s string) string { return url.QueryEscape(s) }

// render writes a query as a query string that Parse reads back as the same query.
func render(q *query.Query) string {
	var pairs []string
	add := func(path []string, word, value string) {
		pairs = append(pairs, escape(dotted(path)+word)+"="+escape(value))
	}

	if q.Select != nil {
		add(nil, "select", items(q.Select))
	}

	for _, f := range q.Filters {
		switch c := f.Condition.(type) {
		case *query.Group:
			add(f.Path, operator(c), conditions(c))
		case *query.Comparison:
			add(f.Path, field(c.Field), comparison(c, func(s string) string { return s }))
		}
	}

	for _, o := range q.Order {
		add(o.Path, "order", terms(o.Terms))
	}

	for _, l := range q.Limits {
		if l.Limit != nil {
			add(l.Path, "limit", strconv.FormatInt(*l.Limit, 10))
		}
		add(l.Path, "offset", strconv.FormatInt(l.Offset, 10))
	}

	if q.Columns != nil {
		add(nil, "columns", join(q.Columns, quote))
	}
	if q.OnConflict != nil {
		add(nil, "on_conflict", join(q.OnConflict, quote))
	}

	for _, p := range q.Params {
		add(nil, quote(p.Name), p.Value)
	}

	return strings.Join(pairs, "&")
}

func join[T any](list []T, text func(T) string) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = text(v)
	}

	return strings.Join(parts, ",")
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func dotted(path []string) string {
	var b strings.Builder
	for _, s := range path {
		b.WriteString(quote(s) + ".")
	}

	return b.String()
}

func field(f query.Field) string {
	b := quote(f.Name)
	for _, s := range f.Path {
		b += "->"
		if s.Text {
			b += ">"
		}

		if s.IsKey {
			b += quote(s.Key)
		} else {
			b += strconv.Itoa(s.Index)
		}
	}

	return b
}

func items(list []query.Item) string { return join(list, item) }

func item(it query.Item) string {
	var b string
	if it.Alias != "" {
		b = quote(it.Alias) + ":"
	}

	switch it.Kind {
	case query.Star:
		return "*"
	case query.Embed, query.Spread:
		if it.Kind == query.Spread {
			b = "..."
		}

		b += quote(it.Relation)
		if it.Hint != "" {
			b += "!" + quote(it.Hint)
		}

		b += [...]string{"", "!inner", "!left"}[it.Join]
		return b + "(" + items(it.Items) + ")"
	}

	if it.Field.Name != "" {
		b += field(it.Field)
		if it.Cast != "" {
			b += "::" + it.Cast
		}
		if it.Aggregate != "" {
			b += "."
		}
	}

	if it.Aggregate != "" {
		b += it.Aggregate + "()"
		if it.AggregateCast != "" {
			b += "::" + it.AggregateCast
		}
	}

	return b
}

func operator(g *query.Group) string {
	b := ""
	if g.Not {
		b = "not."
	}

	if g.Or {
		return b + "or"
	}

	return b + "and"
}

func conditions(g *query.Group) string {
	return "(" + join(g.Conditions, func(c query.Condition) string {
		switch c := c.(type) {
		case *query.Group:
			return operator(c) + conditions(c)
		case *query.Comparison:
			return field(c.Field) + "." + comparison(c, quote)
		}

		panic("no condition")
	}) + ")"
}

// comparison writes the part after the field; value quotes a value for its position.
func comparison(c *query.Comparison, value func(string) string) string {
	b := ""
	if c.Not {
		b = "not."
	}

	b += c.Operator
	if c.Quantifier != "" {
		b += "(" + c.Quantifier + ")"
	}
	if c.Config != "" {
		b += "(" + quote(c.Config) + ")"
	}

	switch c.Operator {
	case "in":
		return b + ".(" + join(c.List, quote) + ")"
	case "is":
		return b + "." + c.Value
	}

	return b + "." + value(c.Value)
}

func terms(list []query.Term) string {
	return join(list, func(t query.Term) string {
		b := field(t.Field)
		if t.Relation != "" {
			b = quote(t.Relation) + "(" + b + ")"
		}
		if t.Descending {
			b += ".desc"
		}
		if t.Nulls != "" {
			b += ".nulls" + t.Nulls
		}

		return b
	})
}

func TestParseReadsWhatIsRendered(t *testing.T) {
	t.Parallel()

	for seed := range uint64(200) {
		rpc := seed%4 == 0
		want := generator{rand.New(rand.NewPCG(seed, 1))}.query(rpc)
		raw := render(want)

		got, err := query.Parse(raw, query.Options{RPC: rpc})
		if err != nil {
			t.Fatalf("seed %d: Parse(%q): %v", seed, raw, err)
		}

		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: Parse(%q) (-want +got):\n%s", seed, raw, diff)
		}
	}
}

// generator generates random queries.
type generator struct{ *rand.Rand }

func pick[T any](m generator, list ...T) T { return list[m.IntN(len(list))] }

// someOf generates 1 to n values, or none in half of the cases.
func someOf[T any](m generator, n int, one func() T) []T {
	if m.IntN(2) == 0 {
		return nil
	}

	list := make([]T, 1+m.IntN(n))
	for i := range list {
		list[i] = one()
	}

	return list
}

func (m generator) text() string {
	var b strings.Builder
	for range m.IntN(5) {
		b.WriteString(pick(m, "a", "Z", "ß", "0", "-", " ", "_", ".", ",", "(", ")", ":", "*", `"`, `\`, "'", "%", "+",
			"&", ";", "=",
			"{", "}", "->", "not.", "and", "or", "\n", "𝄞", "count", "order"))
	}

	return b.String()
}

func (m generator) name() string { return "n" + m.text() }

func (m generator) query(rpc bool) *query.Query {
	q := &query.Query{
		Columns:    someOf(m, 3, m.name),
		OnConflict: someOf(m, 3, m.name),
		Select:     someOf(m, 4, func() query.Item { return m.item(3) }),
		Filters:    someOf(m, 4, m.filter),
	}

	for i, path := range [][]string{nil, {"a"}, {"a", m.name()}} {
		if t := someOf(m, 3, m.term); t != nil {
			q.Order = append(q.Order, query.Order{Path: path, Terms: t})
		}

		if n := m.Int64N(1 << 40); n%2 == 0 {
			l := query.Limit{Path: path, Offset: n}
			if n%3 == 0 {
				l.Limit = &n
			}
			if i > 0 {
				l.Offset = -n
			}

			q.Limits = append(q.Limits, l)
		}
	}

	if rpc {
		q.Params = someOf(m, 3, func() query.Param { return query.Param{Name: m.name(), Value: "v" + m.text()} })
	}

	return q
}

func (m generator) field() query.Field {
	return query.Field{Name: m.name(), Path: someOf(m, 3, func() query.Step {
		s := query.Step{Text: m.IntN(2) == 0}
		if m.IntN(2) == 0 {
			s.Index = int(m.Int32()) - m.IntN(1<<31)
			return s
		}

		s.IsKey, s.Key = true, m.text()
		return s
	})}
}

func (m generator) item(depth int) query.Item {
	cast := func() string { return pick(m, "", "int", "double precision", "_text") }

	kind := query.Kind(m.IntN(4))
	if kind == query.Star {
		return query.Item{Kind: kind}
	}

	it := query.Item{Kind: kind, Alias: pick(m, "", m.name())}
	if kind == query.Column {
		it.Aggregate = pick(m, "", "sum", "avg", "count", "max", "min")
		if it.Aggregate != "" {
			it.AggregateCast = cast()
		}
		if it.Aggregate != "count" || m.IntN(2) == 0 {
			it.Field, it.Cast = m.field(), cast()
		}

		return it
	}

	if kind == query.Spread {
		it.Alias = ""
	}

	it.Relation, it.Hint, it.Join = m.name(), pick(m, "", m.name()), query.Join(m.IntN(3))

	if depth > 0 {
		it.Items = someOf(m, 3, func() query.Item { return m.item(depth - 1) })
	}

	it.Empty = it.Items == nil
	return it
}

func (m generator) filter() query.Filter {
	f := query.Filter{Path: someOf(m, 2, m.name), Condition: m.comparison()}
	if m.IntN(2) == 0 {
		f.Condition = m.group(3)
	}

	return f
}

func (m generator) group(depth int) *query.Group {
	g := &query.Group{Not: m.IntN(2) == 0, Or: m.IntN(2) == 0, Conditions: []query.Condition{m.comparison()}}
	for range m.IntN(3) {
		if depth > 0 && m.IntN(2) == 0 {
			g.Conditions = append(g.Conditions, m.group(depth-1))
			continue
		}

		g.Conditions = append(g.Conditions, m.comparison())
	}

	return g
}

func (m generator) comparison() *query.Comparison {
	c := &query.Comparison{Not: m.IntN(2) == 0, Field: m.field(), Value: m.text()}
	switch m.IntN(5) {
	case 0:
		c.Operator = pick(m, "eq", "gt", "gte", "lt", "lte", "like", "ilike", "match", "imatch")
		c.Quantifier = pick(m, "", "any", "all")
	case 1:
		c.Operator = pick(m, "fts", "plfts", "phfts", "wfts")
		c.Config = pick(m, "", m.name())
	case 2:
		c.Operator, c.Value, c.List = "in", "", someOf(m, 4, m.text)
	case 3:
		c.Operator, c.Value = "is", pick(m, "null", "not_null", "true", "false", "unknown")
	case 4:
		c.Operator = pick(m, "neq", "isdistinct", "cs", "cd", "ov", "sl", "sr", "nxr", "nxl", "adj")
	}

	return c
}

func (m generator) term() query.Term {
	return query.Term{Relation: pick(m, "", m.name()), Field: m.field(), Descending: m.IntN(2) == 0,
		Nulls: pick(m, "", "first", "last")}
}

// FuzzParse checks that Parse fails only with client errors, and reads back its rendered result.
func FuzzParse(f *testing.F) {
	for _, raw := range []string{
		"select=id,name&id=eq.5",
		"select=title,director:directors!fk_dir!inner(last_name,...studio(name))&director.last_name=like.L*",
		"select=customer_id,sum:amount.sum()::int,count()&order=a(b->0).desc.nullslast&a.b.limit=5&offset=2",
		"or=(age.lt.18,and(age.gte.65,not.or(a.is.null,b.eq.1)),name.not.like.*x*)&clients.not.and=(r.cs.{1,2}," +
			"s.in.(\"a\",b))",
		"columns=%22a%22,b&on_conflict=a&x=in.(%22a%5C%22b%22,)&y=fts(english).z&a=1&d->>-1=not.like(any).{a}",
	} {
		f.Add(raw, false)
		f.Add(raw, true)
	}

	f.Fuzz(func(t *testing.T, raw string, rpc bool) {
		o := query.Options{RPC: rpc}
		q, err := query.Parse(raw, o)
		if err != nil {
			if e, ok := err.(*query.Error); !ok || e.Status < 400 || e.Status > 499 || e.Message == "" {
				t.Fatalf("Parse(%q): %#v", raw, err)
			}
			return
		}

		// A parameter whose name is not a valid name renders as another one.
		q.Params = nil
		again, err := query.Parse(render(q), o)
		if err != nil {
			t.Fatalf("Parse(%q), rendered of %q: %v", render(q), raw, err)
		}

		if diff := cmp.Diff(q, again); diff != "" {
			t.Fatalf("Parse(%q), rendered of %q (-want +got):\n%s", render(q), raw, diff)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for name, raw := range map[string]string{
		"key":  "select=id,name&id=eq.5",
		"list": "select=id,name,price,created_at&category=eq.7&price=gte.10&order=price.desc,id.asc&limit=20",
		"embed": "select=id,total,customer:customers(id,name),lines(sku,quantity)&status=in.(open," +
			"paid)&order=id.desc&limit=20",
		"logic": "or=(age.lt.18,and(age.gte.65,not.or(a.is.null,b.eq.1)),name.not.like.*x*)",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()

			for b.Loop() {
				if _, err := query.Parse(raw, query.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
