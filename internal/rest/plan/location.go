package plan

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/query"
)

// key returns the columns that identify an inserted row, in the contract's order: that of the
// relation's columns, or by name if the query selects them by name.
func (b *builder) key(root *node) []string {
	key := slices.Clone(root.rel.PrimaryKey)

	isNamed := len(root.items) > 0 && !slices.ContainsFunc(root.items, func(i query.Item) bool {
		return i.Kind == query.Star
	}) &&
		!slices.ContainsFunc(root.children, func(c *node) bool { return c.link.Kind == catalog.Computed })
	if isNamed {
		slices.Sort(key)
		return key
	}

	place := func(name string) int {
		return slices.IndexFunc(root.rel.Columns, func(c *catalog.Column) bool { return c.Name == name })
	}
	slices.SortFunc(key, func(a, b string) int { return cmp.Compare(place(a), place(b)) })

	return key
}

// location writes the key of a single changed row, each value as a filter reads it: as text of the
// column's type, or for a domain with a cast from text in its representation.
func (b *builder) location(root *node, key []string) {
	if len(key) == 0 {
		b.text("null::text")
		return
	}

	b.text("case when count(*) = 1 then (select pg_catalog.json_build_array(")

	for i, k := range key {
		b.comma(i)

		if c := root.column(k); c != nil && c.FromText.Name != "" && c.ToJSON.Name != "" {
			b.name(c.ToJSON)
			b.text("(")
			b.quote(k)
			b.text(")")

			continue
		}

		// A cast to text may run a function of the user's. IS NULL holds for a composite of nulls.
		b.text("case when pg_catalog.num_nulls(")
		b.quote(k)
		b.text(") = 0 then pg_catalog.format('%s', ")
		b.quote(k)
		b.text(") end")
	}

	b.text(")::text from changed) end")
}

// Location returns the query string that identifies the row of an answer's location column; "" if
// there is none.
func (p *Plan) Location(location string) string {
	var values []jsontext.Value
	if err := json.Unmarshal([]byte(location), &values); err != nil || len(values) != len(p.Key) {
		return ""
	}

	var s strings.Builder
	for i, v := range values {
		if i > 0 {
			s.WriteByte('&')
		}

		s.WriteString(escape(query.QuoteName(p.Key[i])))

		if v.Kind() == 'n' {
			s.WriteString("=is.null")
			continue
		}

		text := string(v)
		if v.Kind() == '"' {
			unquoted, err := jsontext.AppendUnquote(nil, v)
			if err != nil {
				return ""
			}

			text = string(unquoted)
		}

		s.WriteString("=eq.")
		s.WriteString(escape(text))
	}

	return s.String()
}

// escape percent-encodes a text for a query string, spaces included.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
