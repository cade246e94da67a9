package plan

import (
	"encoding/hex"

	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/query"
)

// calledCTE is the name of the CTE that calls a function for its rows.
const calledCTE = "called"

// Call plans a function call. Its arguments come from the body if there is one, else from the query
// string.
func Call(c *catalog.Catalog, r *Request, f *catalog.Function) (*Plan, error) {
	b := newBuilder(c, r)
	a, err := b.arguments(f)
	if err != nil {
		return nil, err
	}

	if !f.Returns.Composite {
		return b.scalar(f, a)
	}

	b.single = !f.Returns.Set
	root := &node{name: f.Returns.Relation, rel: c.Relations[f.Returns.Relation], cte: calledCTE}
	if root.name.Name == "" {
		root.name = f.Name
	}

	if err := b.resolve(root, true); err != nil {
		return nil, err
	}

	b.text("with called as (select ")
	b.row(resultAlias)
	b.text(" from ")
	b.call(f, a)
	b.text(" as ")
	b.quote(resultAlias)
	b.text(") ")
	b.answer(root)

	return b.plan(root)
}

// resultAlias is the alias of a function's result.
const resultAlias = "_f"

// argument is an argument of a call.
type argument struct {
	param *catalog.Parameter
	value any
}

// arguments are the arguments of a call, in the order of the function's parameters.
type arguments struct {
	list []argument
	json bool // taken from the members of the body
	one  bool // the body is the only argument, and unnamed
	many bool // the body is an array
}

func (b *builder) arguments(f *catalog.Function) (*arguments, error) {
	a := &arguments{}
	if b.r.Body == nil {
		for i := range f.Params {
			if v, ok := queryValue(b.r.Query.Params, &f.Params[i]); ok {
				a.list = append(a.list, argument{&f.Params[i], v})
			}
		}

		return a, nil
	}

	if len(f.Params) == 1 && f.Params[0].Name == "" {
		a.one = true
		a.list = []argument{{&f.Params[0], rawArg(b.r.Body, f.Params[0].Type)}}

		return a, nil
	}

	p, err := read(b.r.Body)
	if err != nil {
		return nil, err
	}

	names := p.names
	if b.r.Query.Columns != nil {
		names = b.r.Query.Columns
	}

	isGiven := make(map[string]bool, len(names))
	for _, n := range names {
		isGiven[n] = true
	}

	a.json, a.many = true, p.list

	for i := range f.Params {
		if isGiven[f.Params[i].Name] {
			a.list = append(a.list, argument{param: &f.Params[i]})
		}
	}

	return a, nil
}

// rawArg converts a body to the argument for a parameter of type typ.
func rawArg(body []byte, typ string) any {
	if typ == "bytea" {
		return `\x` + hex.EncodeToString(body)
	}
	return body
}

// queryValue returns the query's value for a parameter: the last of repeated ones, or all of them
// as an array for a variadic parameter.
func queryValue(params []query.Param, p *catalog.Parameter) (string, bool) {
	var values []string
	for i := range params {
		if params[i].Name == p.Name {
			values = append(values, params[i].Value)
		}
	}

	switch {
	case values == nil:
		return "", false
	case p.Variadic:
		return array(values), true
	}

	return values[len(values)-1], true
}

// call writes a call as a FROM item.
func (b *builder) call(f *catalog.Function, a *arguments) {
	if b.members(a) {
		b.text(", lateral ")
	}
	b.invoke(f, a)
}

// members writes the source of a call's arguments, and reports whether it is a FROM item.
func (b *builder) members(a *arguments) bool {
	if a.json && len(a.list) > 0 {
		b.text("pg_catalog.json_to_record(")
		b.arg(b.r.Body)

		if a.many {
			b.text("::json->0")
		}

		b.text(") as ")
		b.quote(row)
		b.text("(")

		for i := range a.list {
			b.comma(i)
			b.quote(a.list[i].param.Name)
			b.text(" ")
			b.text(a.list[i].param.Type)
		}

		b.text(")")
		return true
	}

	return false
}

// invoke writes a call as a scalar expression.
func (b *builder) invoke(f *catalog.Function, a *arguments) {
	b.name(f.Name)
	b.text("(")

	for i := range a.list {
		p := a.list[i].param
		b.comma(i)

		if p.Variadic {
			b.text("variadic ")
		}

		if !a.one {
			b.quote(p.Name)
			b.text(" => ")
		}

		if a.json {
			b.column(row, p.Name)
			continue
		}

		b.arg(a.list[i].value)
		b.text("::")
		b.text(p.Type)
	}

	b.text(")")
}

// scalar plans the call of a function that returns scalar values or void.
func (b *builder) scalar(f *catalog.Function, a *arguments) (*Plan, error) {
	r := b.r

	if f.Returns.Type == "record" { // only the value itself describes its columns
		mark := len(b.sql)
		b.text(" from ")

		if !b.members(a) {
			b.sql = b.sql[:mark]
		}

		from := string(b.sql[mark:])
		b.sql = b.sql[:mark]
		b.text("with called as (select ")
		b.invoke(f, a)
		b.text(" as v" + from + ") ")
	} else {
		b.text("with called as (select ")
		b.quote(resultAlias)
		b.text(".v from ")
		b.call(f, a)
		b.text(" as ")
		b.quote(resultAlias)
		b.text("(v)) ")
	}

	b.openSizeCheck()
	b.text("select ")
	page := query.Limit{}
	if f.Returns.Set {
		page = b.atMost(r.Range)
	}

	if r.Count == Exact || r.Count == Estimated {
		b.text("(select count(*) from called)")
	} else {
		b.text("null::bigint")
	}

	b.text(", count(*), null::text")
	b.settings()
	b.text(", ")
	b.values(f)
	b.text(" from (select v from called")
	b.limit(page)
	b.text(") as ")
	b.quote(row)
	b.closeSizeCheck()

	return b.plan(nil)
}

// values writes the conversion of scalar values to the response's media type.
func (b *builder) values(f *catalog.Function) {
	const value = `"_".v`
	set := f.Returns.Set
	switch {
	case f.Returns.Void || b.r.Head:
		b.text("null::text")
	case b.r.Format == Custom && b.r.Handler.Binary:
		b.text("pg_catalog.encode(pg_catalog.string_agg(" + value + "::bytea, ''), 'hex')")
	case b.r.Format == Custom && b.r.Handler.XML:
		b.text("pg_catalog.string_agg(" + xmlText[0] + value + xmlText[1] + ", '')")
	case b.r.Format == Custom:
		b.text("pg_catalog.string_agg(" + value + "::text, '')")
	case b.r.Format == CSV:
		b.literal("pgrst_scalar\n") // the contract's name for an unnamed column

		b.text(" || coalesce(pg_catalog.string_agg(")
		b.csvLine("row("+value+")", "")
		b.text(", E'\\n'), '')")
	case set && (b.r.Format == StrippedJSON || b.r.Format == StrippedObject):
		b.text("pg_catalog.json_strip_nulls(coalesce(pg_catalog.json_agg(" + value + "), '[]'))")
	case set && b.r.Format != Object:
		b.text("coalesce(pg_catalog.json_agg(" + value + "), '[]')")
	case b.r.Format == StrippedJSON || b.r.Format == StrippedObject:
		b.text(
			"coalesce(pg_catalog.string_agg(pg_catalog.json_strip_nulls(pg_catalog.to_json(" + value +
				"))::text, ''), 'null')",
		)
	default:
		b.text("coalesce(pg_catalog.string_agg(pg_catalog.to_json(" + value + ")::text, ''), 'null')")
	}
}
