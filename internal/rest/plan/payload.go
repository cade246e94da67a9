package plan

import (
	"bytes"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"socle/internal/rest/catalog"
	"socle/internal/rest/query"
)

// payload is what the rows of a body are.
type payload struct {
	names   []string // of their members
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
	names := p.names
	p.columns = make([]*catalog.Column, 0, len(names))
	for i, n := range names {
		c := rel.ByName[n]
		if c == nil {
			return nil, noColumn(rel, n)
		}
		if !slices.Contains(names[:i], n) {
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

// Keys returns the names of the members of a JSON body's object, or of the objects of its array, which must be the same
// in all. Other values have none. It fails with PGRST102 if the body is not that.
func Keys(body []byte) ([]string, error) {
	p, err := read(body)
	return p.names, err
}

var (
	errBody error = &query.Error{Status: 400, Code: "PGRST102", Message: "Empty or invalid json"}
	errKeys error = &query.Error{Status: 400, Code: "PGRST102", Message: "All object keys must match"}
)

// read reads the outline of a JSON body: the names of its objects' members, whether it is an array, and how many
// objects there are. A value that is neither has no rows.
func read(body []byte) (p payload, err error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))
	switch d.PeekKind() {
	case '{':
		p.rows = 1
		p.names, err = members(d, nil, func(end int64, v jsontext.Value) {
			p.values = append(p.values, body[end-int64(len(v)):end]) // the decoder's own is good until it reads on
		})
		if len(p.values) != len(p.names) { // of members with one name
			p.values = nil
		}
	case '[':
		p.list = true
		p.names, p.rows, err = elements(d)
	default:
		p.list = true
		if d.SkipValue() != nil {
			err = errBody
		}
	}
	if err != nil {
		return payload{}, err
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return payload{}, errBody
	}
	return p, nil
}

func elements(d *jsontext.Decoder) (names []string, rows int, err error) {
	if _, err := d.ReadToken(); err != nil {
		return nil, 0, errBody
	}
	for ; d.PeekKind() != ']'; rows++ {
		switch d.PeekKind() {
		case '{':
		case 0:
			return nil, 0, errBody
		default:
			if d.SkipValue() != nil {
				return nil, 0, errBody
			}
			return nil, 0, errKeys
		}
		found, err := members(d, names, nil)
		if err != nil {
			return nil, 0, err
		}
		if rows > 0 && !same(names, found) {
			return nil, 0, errKeys
		}
		names = found
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, 0, errBody
	}
	return names, rows, nil
}

// members reads an object and returns the names of its members, each once. Those that are known, in their order, cost
// nothing. each, if there is one, gets every value and where it ends.
func members(d *jsontext.Decoder, known []string, each func(end int64, v jsontext.Value)) ([]string, error) {
	if _, err := d.ReadToken(); err != nil {
		return nil, errBody
	}
	names := known[:0:0]
	matched := 0 // names of known seen so far, while nothing else was
	for d.PeekKind() == '"' {
		token, err := d.ReadValue()
		if err != nil {
			return nil, errBody
		}
		if names == nil && matched < len(known) && plain(token, known[matched]) {
			matched++
		} else {
			name, err := jsontext.AppendUnquote(nil, token)
			if err != nil {
				return nil, errBody
			}
			if names == nil {
				names = append(make([]string, 0, 16), known[:matched]...)
			}
			if !slices.Contains(names, string(name)) {
				names = append(names, string(name))
			}
		}
		if each == nil {
			if d.SkipValue() != nil {
				return nil, errBody
			}
			continue
		}
		v, err := d.ReadValue()
		if err != nil {
			return nil, errBody
		}
		each(d.InputOffset(), v)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, errBody
	}
	if names == nil {
		return known[:matched], nil
	}
	return names, nil
}

// plain says whether the text of a JSON string without escapes is a name.
func plain(token jsontext.Value, name string) bool {
	return len(token) == len(name)+2 && string(token[1:len(token)-1]) == name
}

// same says whether two lists have the same names.
func same(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] && !slices.Contains(b, a[i]) {
			return false
		}
	}
	return true
}
