package plan

import (
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
)

// location writes the key of the only changed row.
func (b *builder) location(key []string) {
	if len(key) == 0 {
		b.text("null::text")
		return
	}
	b.text("case when count(*) = 1 then (select pg_catalog.json_build_array(")
	for i, k := range key {
		b.comma(i)
		b.quote(k)
		b.text("::text")
	}
	b.text(")::text from changed) end")
}

// Location returns the pairs of a query string that identify the row of an answer's location.
func (p *Plan) Location(location string) string {
	var values []*string
	if err := json.Unmarshal([]byte(location), &values); err != nil || len(values) != len(p.Key) {
		return ""
	}
	var s strings.Builder
	for i, v := range values {
		if i > 0 {
			s.WriteByte('&')
		}
		s.WriteString(url.QueryEscape(p.Key[i]))
		if v == nil {
			s.WriteString("=is.null")
			continue
		}
		s.WriteString("=eq.")
		s.WriteString(url.QueryEscape(*v))
	}
	return s.String()
}
