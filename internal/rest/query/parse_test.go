package query_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/rest/query"
)

// parse parses a valid query string.
func parse(t *testing.T, raw string, o query.Options) *query.Query {
	t.Helper()

	q, err := query.Parse(raw, o)
	if err != nil {
		t.Fatalf("Parse(%q): %v", raw, err)
	}

	return q
}

func ptr(n int64) *int64 { return &n }

func name(s string) query.Field { return query.Field{Name: s} }

func key(s string) query.Step     { return query.Step{Key: s, IsKey: true} }
func textKey(s string) query.Step { return query.Step{Key: s, IsKey: true, Text: true} }

// where returns a filter of the top level.
func where(c query.Condition) query.Filter { return query.Filter{Condition: c} }

func TestParseSplitsTheQueryString(t *testing.T) {
	t.Parallel()

	eq := func(field, value string) query.Filter {
		return where(&query.Comparison{Field: name(field), Operator: "eq", Value: value})
	}
	for raw, want := range map[string]query.Query{
		"":                                {},
		"select":                          {},
		"&&;":                             {},
		"select=":                         {},
		"select=&select=id":               {},
		"select=a&select=b":               {Select: []query.Item{{Field: name("a")}}},
		"columns=a&columns=b":             {Columns: []string{"a"}},
		"columns=%22a%22,%22b,c%22":       {Columns: []string{"a", "b,c"}},
		"on_conflict=a,b&on_conflict=c":   {OnConflict: []string{"a", "b"}},
		"a=eq.1;b=eq.2":                   {Filters: []query.Filter{eq("a", "1"), eq("b", "2")}},
		"a=eq.1&a=eq.2":                   {Filters: []query.Filter{eq("a", "1"), eq("a", "2")}},
		"my+col=eq.a+b":                   {Filters: []query.Filter{eq("my col", "a b")}},
		"gr%C3%B6%C3%9Fe=eq.%2B%26%3D":    {Filters: []query.Filter{eq("größe", "+&=")}},
		"a=eq.%zz%4":                      {Filters: []query.Filter{eq("a", "%zz%4")}},
		"a=eq.%FF":                        {Filters: []query.Filter{eq("a", "\uFFFD")}},
		"a=eq.b=c":                        {Filters: []query.Filter{eq("a", "b=c")}},
		"%22order%22=eq.1":                {Filters: []query.Filter{eq("order", "1")}},
		"a[0]=eq.1&a%5B1%5D=eq.2":         {Filters: []query.Filter{eq("a", "1"), eq("a", "2")}},
		"%22a.b%22=eq.1":                  {Filters: []query.Filter{eq("a.b", "1")}},
		"%22and%22=eq.1&%22limit%22=eq.2": {Filters: []query.Filter{eq("and", "1"), eq("limit", "2")}},
		"order=a&order=b":                 {Order: []query.Order{{Terms: []query.Term{{Field: name("a")}}}}},
		"limit=1&limit=2&offset=3":        {Limits: []query.Limit{{Limit: ptr(2), Offset: 3}}},
		"limit=abc&offset=x":              {},
		"limit=&offset=":                  {},
		"limit=0&offset=5":                {Limits: []query.Limit{{Limit: ptr(0), Offset: 5}}},
		"limit=abc&offset=5":              {Limits: []query.Limit{{Offset: 5}}},
		"offset=-1":                       {},
		"limit=-1&limit=1":                {Limits: []query.Limit{{Limit: ptr(1)}}},
		"a.b.limit=-1&a.offset=-2": {Limits: []query.Limit{
			{Path: []string{"a", "b"}, Limit: ptr(-1)}, {Path: []string{"a"}, Offset: -2},
		}},
		"%22a.b%22.limit=1&%22a.b%22.offset=2": {Limits: []query.Limit{
			{Path: []string{"a.b"}, Limit: ptr(1), Offset: 2},
		}},
		"order=a&clients.order=b&clients.order=c": {Order: []query.Order{
			{Terms: []query.Term{{Field: name("a")}}},
			{Path: []string{"clients"}, Terms: []query.Term{{Field: name("b")}}},
		}},
	} {
		if diff := cmp.Diff(&want, parse(t, raw, query.Options{})); diff != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", raw, diff)
		}
	}
}

func TestParseSelect(t *testing.T) {
	t.Parallel()

	column := func(s string) query.Item { return query.Item{Field: name(s)} }
	for text, want := range map[string][]query.Item{
		" ":             nil,
		"*":             {{Kind: query.Star}},
		" id , name ":   {column("id"), column("name")},
		"*,full_name":   {{Kind: query.Star}, column("full_name")},
		"my col,größe":  {column("my col"), column("größe")},
		"col-name,a$b":  {column("col-name"), column("a$b")},
		"a - b":         {column("a-b")},
		`"a,b","c.d"`:   {column("a,b"), column("c.d")},
		`"a\"b\\c"`:     {column(`a"b\c`)},
		"x:a":           {{Alias: "x", Field: name("a")}},
		`"x y" : "a b"`: {{Alias: "x y", Field: name("a b")}},
		"a::text":       {{Field: name("a"), Cast: "text"}},
		"a::_int4":      {{Field: name("a"), Cast: "_int4"}},
		"x:a::text,b":   {{Alias: "x", Field: name("a"), Cast: "text"}, column("b")},
		"a::timestamp with time zone": {
			{Field: name("a"), Cast: "timestamp with time zone"}},
		"count()":            {{Aggregate: "count"}},
		"n:count()::text":    {{Alias: "n", Aggregate: "count", AggregateCast: "text"}},
		"count":              {column("count")},
		"a.count()":          {{Field: name("a"), Aggregate: "count"}},
		"a::text.max()::int": {{Field: name("a"), Cast: "text", Aggregate: "max", AggregateCast: "int"}},
		"x:a.sum(),b.avg()":  {{Alias: "x", Field: name("a"), Aggregate: "sum"}, {Field: name("b"), Aggregate: "avg"}},
		"a.min()":            {{Field: name("a"), Aggregate: "min"}},
		"count(id)":          {{Kind: query.Embed, Relation: "count", Items: []query.Item{column("id")}}},
		"data->a->>b":        {{Field: query.Field{Name: "data", Path: []query.Step{key("a"), textKey("b")}}}},
		"data->>a::int.sum()": {
			{Field: query.Field{Name: "data", Path: []query.Step{textKey("a")}}, Cast: "int", Aggregate: "sum"},
		},
		"data->0,data->-1->>2": {
			{Field: query.Field{Name: "data", Path: []query.Step{{}}}},
			{Field: query.Field{Name: "data", Path: []query.Step{{Index: -1}, {Index: 2, Text: true}}}},
		},
		"data->0a->a-b->c d": {
			{Field: query.Field{Name: "data", Path: []query.Step{key("0a"), key("a-b"), key("c d")}}},
		},
		`data->"a.b->c"->>"0"`: {
			{Field: query.Field{Name: "data", Path: []query.Step{key("a.b->c"), textKey("0")}}}},
		"rel(data->0)": {{Kind: query.Embed, Relation: "rel", Items: []query.Item{
			{Field: query.Field{Name: "data", Path: []query.Step{{}}}}}}},
		"rel(*)":        {{Kind: query.Embed, Relation: "rel", Items: []query.Item{{Kind: query.Star}}}},
		"rel()":         {{Kind: query.Embed, Relation: "rel", Empty: true}},
		"rel( )":        {{Kind: query.Embed, Relation: "rel", Empty: true}},
		"x:rel!inner()": {{Kind: query.Embed, Alias: "x", Relation: "rel", Join: query.Inner, Empty: true}},
		"rel!left!fk(id)": {
			{Kind: query.Embed, Relation: "rel", Join: query.Left, Hint: "fk", Items: []query.Item{column("id")}},
		},
		"rel!inner_fk()": {{Kind: query.Embed, Relation: "rel", Hint: "inner_fk", Empty: true}},
		`rel!"inner"()`:  {{Kind: query.Embed, Relation: "rel", Hint: "inner", Empty: true}},
		`"a b"!"c!d"()`:  {{Kind: query.Embed, Relation: "a b", Hint: "c!d", Empty: true}},
		"...rel!fk(a,...b(c))": {{Kind: query.Spread, Relation: "rel", Hint: "fk", Items: []query.Item{
			column("a"), {Kind: query.Spread, Relation: "b", Items: []query.Item{column("c")}}}}},
		"id,total:amount::text,meta->a->>b,\"weird,col\"": {
			column("id"), {Alias: "total", Field: name("amount"), Cast: "text"},
			{Field: query.Field{Name: "meta", Path: []query.Step{key("a"), textKey("b")}}}, column("weird,col")},
		"title,director:directors!fk_dir!inner(last_name,studio(name))": {
			column("title"),
			{Kind: query.Embed, Alias: "director", Relation: "directors", Hint: "fk_dir",
				Join: query.Inner, Items: []query.Item{
					column("last_name"),
					{Kind: query.Embed, Relation: "studio", Items: []query.Item{column("name")}}}}},
		"customer_id,sum:amount.sum()::int,count()": {
			column("customer_id"), {Alias: "sum", Field: name("amount"), Aggregate: "sum", AggregateCast: "int"},
			{Aggregate: "count"}},
		"a,rel(cost)))": {column("a"), {Kind: query.Embed, Relation: "rel", Items: []query.Item{column("cost")}}},
	} {
		raw := "select=" + escape(text)
		if diff := cmp.Diff(want, parse(t, raw, query.Options{}).Select); diff != "" {
			t.Errorf("select %s (-want +got):\n%s", text, diff)
		}
	}
}

func TestParseFilter(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]query.Comparison{
		"eq.1":                       {Operator: "eq", Value: "1"},
		"eq.":                        {Operator: "eq"},
		"eq.null":                    {Operator: "eq", Value: "null"},
		`eq."a"`:                     {Operator: "eq", Value: `"a"`},
		"eq.a,b.(c)":                 {Operator: "eq", Value: "a,b.(c)"},
		"eq. a ":                     {Operator: "eq", Value: " a "},
		"neq.1":                      {Operator: "neq", Value: "1"},
		"gt.1":                       {Operator: "gt", Value: "1"},
		"gte.1":                      {Operator: "gte", Value: "1"},
		"lt.1":                       {Operator: "lt", Value: "1"},
		"lte.1":                      {Operator: "lte", Value: "1"},
		"not.eq.not.eq.1":            {Not: true, Operator: "eq", Value: "not.eq.1"},
		"like.*a*":                   {Operator: "like", Value: "*a*"},
		"ilike(all).{a*,b}":          {Operator: "ilike", Quantifier: "all", Value: "{a*,b}"},
		"like(any).{O*,P*}":          {Operator: "like", Quantifier: "any", Value: "{O*,P*}"},
		"match.^a":                   {Operator: "match", Value: "^a"},
		"imatch.^a":                  {Operator: "imatch", Value: "^a"},
		"isdistinct.":                {Operator: "isdistinct"},
		"is.null":                    {Operator: "is", Value: "null"},
		"not.is.NULL":                {Not: true, Operator: "is", Value: "null"},
		"is.Not_Null":                {Operator: "is", Value: "not_null"},
		"is.true":                    {Operator: "is", Value: "true"},
		"is.false":                   {Operator: "is", Value: "false"},
		"is.unknown ":                {Operator: "is", Value: "unknown"},
		"fts.a&b":                    {Operator: "fts", Value: "a&b"},
		"fts(english).a":             {Operator: "fts", Config: "english", Value: "a"},
		`plfts("my cfg").a`:          {Operator: "plfts", Config: "my cfg", Value: "a"},
		"not.phfts(french).a b":      {Not: true, Operator: "phfts", Config: "french", Value: "a b"},
		"wfts.-x":                    {Operator: "wfts", Value: "-x"},
		"cs.{a,b}":                   {Operator: "cs", Value: "{a,b}"},
		"cd.[1,2)":                   {Operator: "cd", Value: "[1,2)"},
		"ov.[1,2)":                   {Operator: "ov", Value: "[1,2)"},
		"sl.[1,2)":                   {Operator: "sl", Value: "[1,2)"},
		"sr.[1,2)":                   {Operator: "sr", Value: "[1,2)"},
		"nxl.[1,2)":                  {Operator: "nxl", Value: "[1,2)"},
		"nxr.[1,2)":                  {Operator: "nxr", Value: "[1,2)"},
		"adj.[1,2)":                  {Operator: "adj", Value: "[1,2)"},
		"in.()":                      {Operator: "in"},
		"in.(   )":                   {Operator: "in"},
		`in.("")`:                    {Operator: "in", List: []string{""}},
		"in.(1,2)":                   {Operator: "in", List: []string{"1", "2"}},
		"not.in.(1)":                 {Not: true, Operator: "in", List: []string{"1"}},
		"in.( ,3)":                   {Operator: "in", List: []string{"", "3"}},
		"in. (3)":                    {Operator: "in", List: []string{"3"}},
		"in.(,)":                     {Operator: "in", List: []string{"", ""}},
		"in.( a , b)":                {Operator: "in", List: []string{"a ", " b"}},
		`in.("Hebdon,John",b)`:       {Operator: "in", List: []string{"Hebdon,John", "b"}},
		`in.("a\"b","c\\d","(e)")`:   {Operator: "in", List: []string{`a"b`, `c\d`, "(e)"}},
		`in.("a"b,c"d,")`:            {Operator: "in", List: []string{`"a"b`, `c"d`, `"`}},
		`in.(Double"Quote",a\b,"c)`:  {Operator: "in", List: []string{`Double"Quote"`, `a\b`, `"c`}},
		"in.(null,größe,\u00a0)":     {Operator: "in", List: []string{"null", "größe", "\u00a0"}},
		"eq(any).{1,2}":              {Operator: "eq", Quantifier: "any", Value: "{1,2}"},
		"not.gte(all).{}":            {Not: true, Operator: "gte", Quantifier: "all", Value: "{}"},
		"match(any).x":               {Operator: "match", Quantifier: "any", Value: "x"},
		"fts(any).x":                 {Operator: "fts", Config: "any", Value: "x"},
		"isdistinct.null":            {Operator: "isdistinct", Value: "null"},
		"in.(\"a\nb\",\"\\\\\\\"\")": {Operator: "in", List: []string{"a\nb", `\"`}},
	} {
		want.Field = name("c")
		got := parse(t, "c="+escape(text), query.Options{}).Filters
		if diff := cmp.Diff([]query.Filter{where(&want)}, got); diff != "" {
			t.Errorf("filter %s (-want +got):\n%s", text, diff)
		}
	}
}

func TestParseKey(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]query.Filter{
		"director.last_name": {Path: []string{"director"}, Condition: &query.Comparison{Field: name("last_name")}},
		`"tbl"."a.b".c`:      {Path: []string{"tbl", "a.b"}, Condition: &query.Comparison{Field: name("c")}},
		"clients.projects.data->a->>b": {Path: []string{"clients", "projects"}, Condition: &query.Comparison{
			Field: query.Field{Name: "data", Path: []query.Step{key("a"), textKey("b")}}}},
		"arr->0": {Condition: &query.Comparison{Field: query.Field{Name: "arr", Path: []query.Step{{}}}}},
		`data->>"a.order"`: {Condition: &query.Comparison{
			Field: query.Field{Name: "data", Path: []query.Step{textKey("a.order")}}}},
	} {
		c := want.Condition.(*query.Comparison)
		c.Operator, c.Value = "eq", "x"
		got := parse(t, escape(text)+"=eq.x", query.Options{}).Filters
		if diff := cmp.Diff([]query.Filter{want}, got); diff != "" {
			t.Errorf("key %s (-want +got):\n%s", text, diff)
		}
	}
}

func TestParseLogic(t *testing.T) {
	t.Parallel()

	c := func(field, operator, value string) *query.Comparison {
		return &query.Comparison{Field: name(field), Operator: operator, Value: value}
	}

	list := func(field string, list ...string) *query.Comparison {
		return &query.Comparison{Field: name(field), Operator: "in", List: list}
	}

	and := func(c ...query.Condition) *query.Group { return &query.Group{Conditions: c} }
	or := func(c ...query.Condition) *query.Group { return &query.Group{Or: true, Conditions: c} }
	notLike := c("name", "like", "*x*")
	notLike.Not = true

	notOr := or(c("a", "is", "null"), c("b", "eq", "1"))
	notOr.Not = true
	notAnd := and(c("a", "gte", "0"), c("a", "lte", "100"))
	notAnd.Not = true

	path := func(g *query.Group, path ...string) query.Filter { return query.Filter{Path: path, Condition: g} }
	for text, want := range map[string]query.Filter{
		"or=(age.lt.18,and(age.gte.65,not.or(a.is.null,b.eq.1)),name.not.like.*x*)": where(
			or(c("age", "lt", "18"), and(c("age", "gte", "65"), notOr), notLike)),
		"not.and=(a.gte.0,a.lte.100)":         where(notAnd),
		"clients.or=(a.eq.1)":                 path(or(c("a", "eq", "1")), "clients"),
		"clients.not.and=(a.gte.0,a.lte.100)": path(notAnd, "clients"),
		"not.clients.and=(a.gte.0,a.lte.100)": path(notAnd, "clients"),
		`"not"."a.b".and=(a.eq.1)`:            path(and(c("a", "eq", "1")), "not", "a.b"),
		"or=( a.eq.1 , b.eq.2)":               where(or(c("a", "eq", "1 "), c("b", "eq", "2"))),
		"or=(clients.is.null,name.eq.x)":      where(or(c("clients", "is", "null"), c("name", "eq", "x"))),
		`and=(r.cs."[1,3)",s.eq."a\"b")`:      where(and(c("r", "cs", "[1,3)"), c("s", "eq", `a"b`))),
		"and=(arr.cs.{1,2},b.eq.)":            where(and(c("arr", "cs", "{1,2}"), c("b", "eq", ""))),
		"and=(a.eq.{,b.eq.{x}y,c.eq.{d{e})": where(
			and(c("a", "eq", "{"), c("b", "eq", "{x}y"), c("c", "eq", "{d{e}")),
		),
		`and=(a.in.(1,"2,3"),b.in.())`:    where(and(list("a", "1", "2,3"), list("b"))),
		"and=(id.eq.1,id.neq.2))":         where(and(c("id", "eq", "1"), c("id", "neq", "2"))),
		"and=(and.eq.1,not.eq.2,or.eq.3)": where(and(c("and", "eq", "1"), c("not", "eq", "2"), c("or", "eq", "3"))),
		"or=(order_id.eq.1,android.eq.2)": where(or(c("order_id", "eq", "1"), c("android", "eq", "2"))),
		"or=(and (a.eq.1))":               where(or(and(c("a", "eq", "1")))),
		`or=("a.b".eq.1,"c" .eq.2)`:       where(or(c("a.b", "eq", "1"), c("c", "eq", "2"))),
		"or=(a.eq.x.y,b.is.NULL )":        where(or(c("a", "eq", "x.y"), c("b", "is", "null"))),
		"or=(a.like(any).{x*,y},b.fts(en).z w)": where(or(
			&query.Comparison{Field: name("a"), Operator: "like", Quantifier: "any", Value: "{x*,y}"},
			&query.Comparison{Field: name("b"), Operator: "fts", Config: "en", Value: "z w"})),
		"or=(data->a->>b.eq.1,data->0.eq.2)": where(or(
			&query.Comparison{
				Field:    query.Field{Name: "data", Path: []query.Step{key("a"), textKey("b")}},
				Operator: "eq",
				Value:    "1",
			},
			&query.Comparison{Field: query.Field{Name: "data", Path: []query.Step{{}}}, Operator: "eq", Value: "2"})),
	} {
		k, v, _ := strings.Cut(text, "=")
		got := parse(t, escape(k)+"="+escape(v), query.Options{}).Filters
		if diff := cmp.Diff([]query.Filter{want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestParseOrder(t *testing.T) {
	t.Parallel()

	for text, want := range map[string][]query.Term{
		"id":                     {{Field: name("id")}},
		"id.asc,name.desc":       {{Field: name("id")}, {Field: name("name"), Descending: true}},
		"a.nullsfirst":           {{Field: name("a"), Nulls: "first"}},
		"a.desc.nullslast, b ":   {{Field: name("a"), Descending: true, Nulls: "last"}, {Field: name("b")}},
		`"a.b,c".asc.nullsfirst`: {{Field: name("a.b,c"), Nulls: "first"}},
		"clients(name)":          {{Relation: "clients", Field: name("name")}},
		"clients(name).desc,id":  {{Relation: "clients", Field: name("name"), Descending: true}, {Field: name("id")}},
		"c(data->>a).nullslast": {
			{Relation: "c", Field: query.Field{Name: "data", Path: []query.Step{textKey("a")}}, Nulls: "last"},
		},
		"data->a->>b.desc": {
			{Field: query.Field{Name: "data", Path: []query.Step{key("a"), textKey("b")}}, Descending: true},
		},
		"data->0.desc.nullsfirst": {
			{Field: query.Field{Name: "data", Path: []query.Step{{}}}, Descending: true, Nulls: "first"},
		},
		"clients(data->0),id.desc": {{Relation: "clients", Field: query.Field{Name: "data", Path: []query.Step{{}}}},
			{Field: name("id"), Descending: true}},
	} {
		got := parse(t, "order="+escape(text), query.Options{}).Order
		if diff := cmp.Diff([]query.Order{{Terms: want}}, got); diff != "" {
			t.Errorf("order %s (-want +got):\n%s", text, diff)
		}
	}
}

func TestParseArguments(t *testing.T) {
	t.Parallel()

	want := &query.Query{
		Select:  []query.Item{{Field: name("id")}},
		Filters: []query.Filter{where(&query.Comparison{Field: name("id"), Operator: "gt", Value: "5"})},
		Limits:  []query.Limit{{Limit: ptr(1)}},
		Params: []query.Param{
			{"a", "1"}, {"v", "x"}, {"v", "{y}"}, {"q", "eq"}, {"r", "eqx.1"}, {"s", ""}, {"t", "fts(.x"},
			{"u", "notable"}, {"b c", "eq(some).1"}, {"x.y", "1"}, {"d->e", "2"},
		},
	}

	got := parse(t,
		"a=1&id=gt.5&v=x&v={y}&q=eq&r=eqx.1&s=&t=fts(.x&u=notable&%22b+c%22=eq(some).1&x.y=1&d->e=2&select=id&limit=1",
		query.Options{RPC: true})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
