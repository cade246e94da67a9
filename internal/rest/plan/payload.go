package plan

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/socle-dev/socle/internal/rest/catalog"
)

// payload describes the rows of a body.
type payload struct {
	names   []string // names of the members, at most MaxNames + 1
	columns []*catalog.Column
	// member values of a body that is one object without duplicate names; else nil
	values []jsontext.Value
	// the values as arguments for the columns; nil if PostgreSQL reads them from the body
	args []any
	list bool // an array, else one object
	rows int  // number of rows, -1 if the body was not parsed
}

// outline returns the names of a body's rows: those of columns=, else the member names of the
// objects.
func outline(r *Request) (p payload, err error) {
	if r.Query.Columns == nil {
		return read(r.Body)
	}

	body := bytes.TrimLeft(r.Body, " \t\r\n")
	return payload{names: r.Query.Columns, list: len(body) > 0 && body[0] == '[', rows: -1}, nil
}

// payload resolves the columns of the body's rows.
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

	p.args = p.directArgs(rel)
	return &p, nil
}

// assigned writes the value of the i-th column of a payload.
func (b *builder) assigned(p *payload, i int) {
	if p.args == nil {
		b.bodyValue(p.columns[i])
		return
	}

	b.arg(p.args[i])
	b.origins[len(b.origins)-1].member = i + 1
}

// bodyValue writes the body's value of a column.
func (b *builder) bodyValue(c *catalog.Column) {
	if c.FromJSON.Name == "" {
		b.column(row, c.Name)
		if b.isJSONCell(c) {
			b.text("::")
			b.text(c.Type)
		}

		return
	}

	b.name(c.FromJSON)
	b.text("(")
	b.column(row, c.Name)
	b.text(")")
}

// isJSONCell reports whether a column reads its value from a text, not from the body's JSON.
func (b *builder) isJSONCell(c *catalog.Column) bool {
	return b.r.Cells && c.FromJSON.Name == "" && (c.BaseType == "json" || c.BaseType == "jsonb")
}

// record writes the body's rows, or only the first, as a FROM item.
func (b *builder) record(p *payload, first bool) {
	switch {
	case len(p.columns) == 0:
		b.text("pg_catalog.json_array_elements(")
		b.arg(b.r.Body)
		b.text(") as ")
		b.quote(row)

		return
	case b.r.Missing && b.r.Query.Columns != nil:
		b.recordWithDefaults(p, first)
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

		switch {
		case c.FromJSON.Name != "":
			b.text(" json")
		case b.isJSONCell(c):
			b.text(" text")
		default:
			b.text(" ")
			b.text(c.Type)
		}
	}

	b.text(")")
}

// recordWithDefaults writes the body's rows with defaults, evaluated per row, for absent members.
func (b *builder) recordWithDefaults(p *payload, first bool) {
	each := p.list && !first
	if each {
		b.text("pg_catalog.jsonb_array_elements(")
		b.arg(b.r.Body)
		b.text("::jsonb) as r(r), lateral ")
	}

	b.text("pg_catalog.jsonb_to_record(")

	const maxPairs = 50 // PostgreSQL functions take at most 100 arguments
	pairs := 0
	for _, c := range p.columns {
		if c.Default == "" || c.Generated {
			continue
		}

		switch {
		case pairs == 0:
			b.text("pg_catalog.jsonb_build_object(")
		case pairs%maxPairs == 0:
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
