package plan

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"socle/internal/rest/catalog"
)

// payload is what the rows of a body are.
type payload struct {
	names   []string // of their members, at most MaxNames + 1
	columns []*catalog.Column
	values  []jsontext.Value // of the members of a body that is one object, each of another name; else nil
	args    []any            // the values as arguments for the columns; nil if they are read from the body
	list    bool             // an array, else one object
	rows    int              // how many, -1 if the body was not read
}

// outline finds out how the rows of a body look. They have what columns= says, else the members of the objects.
func outline(r *Request) (p payload, err error) {
	if r.Query.Columns == nil {
		return read(r.Body)
	}

	body := bytes.TrimLeft(r.Body, " \t\r\n")
	return payload{names: r.Query.Columns, list: len(body) > 0 && body[0] == '[', rows: -1}, nil
}

// payload finds the columns that the body's rows have.
func (b *builder) payload(rel *catalog.Relation) (*payload, error) {
	p, err := outline(b.r)
	if err != nil {
		return nil, err
	}

	p.columns = make([]*catalog.Column, 0, min(len(p.names), MaxNames))
	seen := make(map[*catalog.Column]bool, cap(p.columns))
	for _, n := range p.names {
		c := rel.ByName[n]
		if c == nil {
			return nil, NoColumn(rel, n)
		}

		if !seen[c] {
			seen[c] = true
			p.columns = append(p.columns, c)
		}
	}

	p.args = p.direct(rel)
	return &p, nil
}

// assigned writes the value that the i-th column of a payload gets.
func (b *builder) assigned(p *payload, i int) {
	if p.args == nil {
		b.given(p.columns[i])
		return
	}

	b.arg(p.args[i])
	b.origins[len(b.origins)-1].member = i + 1
}

// given writes the body's value of a column.
func (b *builder) given(c *catalog.Column) {
	if c.FromJSON.Name == "" {
		b.column(row, c.Name)
		return
	}

	b.name(c.FromJSON)
	b.text("(")
	b.column(row, c.Name)
	b.text(")")
}

// record writes the body's rows as a relation, or the first of them.
func (b *builder) record(p *payload, first bool) {
	switch {
	case len(p.columns) == 0:
		b.text("pg_catalog.json_array_elements(")
		b.arg(b.r.Body)
		b.text(") as ")
		b.quote(row)

		return
	case b.r.Missing && b.r.Query.Columns != nil:
		b.completed(p, first)
	case p.list && first:
		b.text("pg_catalog.json_to_record(")
		b.arg(b.r.Body)
		b.text("::json->0)")
	case p.list:
		b.text("pg_catalog.json_to_recordset(")
		b.arg(b.r.Body)
		b.text(")")
	default:
		b.text("pg_catalog.json_to_record(")
		b.arg(b.r.Body)
		b.text(")")
	}

	b.text(" as ")
	b.quote(row)
	b.text("(")

	for i, c := range p.columns {
		b.comma(i)
		b.quote(c.Name)

		if c.FromJSON.Name != "" {
			b.text(" json")
			continue
		}

		b.text(" ")
		b.text(c.Type)
	}

	b.text(")")
}

// completed writes the body's rows with the columns' defaults where members are absent, made for each row.
func (b *builder) completed(p *payload, first bool) {
	each := p.list && !first
	if each {
		b.text("pg_catalog.jsonb_array_elements(")
		b.arg(b.r.Body)
		b.text("::jsonb) as r(r), lateral ")
	}

	b.text("pg_catalog.jsonb_to_record(")

	const most = 50 // a function takes a hundred arguments
	pairs := 0
	for _, c := range p.columns {
		if c.Default == "" || c.Generated {
			continue
		}

		switch {
		case pairs == 0:
			b.text("pg_catalog.jsonb_build_object(")
		case pairs%most == 0:
			b.text(") || pg_catalog.jsonb_build_object(")
		default:
			b.text(", ")
		}

		pairs++
		b.literal(c.Name)
		b.text(", ")
		b.text(c.Default)
	}

	if pairs > 0 {
		b.text(") || ")
	}

	if each {
		b.text("r.r)")
		return
	}

	b.text("(")
	b.arg(b.r.Body)
	b.text("::jsonb")

	if p.list {
		b.text("->0")
	}

	b.text("))")
}
