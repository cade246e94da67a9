package rest

import (
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/rest/query"
)

// profile returns the schema that a request selects.
func (s *Server) profile(r *http.Request) (string, error) {
	name := "Content-Profile"
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		name = "Accept-Profile"
	}

	schema := r.Header.Get(name)
	if schema == "" {
		return s.Schemas[0], nil
	}

	if !slices.Contains(s.Schemas, schema) {
		e := newError(http.StatusNotAcceptable, "PGRST106", "Invalid schema: "+schema)
		e.Hint = "Only the following schemas are exposed: " + strings.Join(s.Schemas, ", ")

		return "", e
	}

	return schema, nil
}

// window returns the requested rows: the intersection of limit and offset with the Range header of
// a GET.
func window(r *http.Request, q *query.Query) (query.Limit, error) {
	var w query.Limit
	for _, l := range q.Limits {
		if len(l.Path) == 0 {
			w = l
		}
	}

	header := r.Header.Get("Range")
	if header == "" || r.Method != http.MethodGet {
		return w, nil
	}

	offset, limit, ok := query.ParseRange(header)
	if !ok {
		return w, nil
	}
	if limit != nil && *limit < 1 {
		return w, outOfRange(
			"The lower boundary must be lower than or equal to the upper boundary in the Range header.",
		)
	}

	end, bounded := int64(0), false
	for _, b := range []query.Limit{w, {Limit: limit, Offset: offset}} {
		if b.Limit == nil {
			continue
		}

		past := b.Offset + *b.Limit
		if past < b.Offset { // overflow
			past = math.MaxInt64
		}
		if !bounded || past < end {
			end, bounded = past, true
		}
	}

	both := query.Limit{Offset: max(w.Offset, offset)}
	if bounded {
		n := end - both.Offset
		if n < 0 {
			return w, outOfRange("Limit should be greater than or equal to zero.")
		}

		both.Limit = &n
	}

	return both, nil
}

func outOfRange(details string) *query.Error {
	e := newError(http.StatusRequestedRangeNotSatisfiable, "PGRST103", "Requested range not satisfiable")
	e.Details = details

	return e
}

// appendHeaders appends request.headers: a JSON object with names in lower case, without cookies.
// hideCredentials leaves out the credentials too.
func appendHeaders(b []byte, r *http.Request, hideCredentials bool) []byte {
	b = append(b, `{"host":`...)
	b = appendJSON(b, r.Host)
	for name, values := range r.Header {
		switch name {
		case "Cookie":
			continue
		case "Authorization", "Proxy-Authorization", "Apikey":
			if hideCredentials {
				continue
			}
		}

		b = append(b, ',', '"')
		for i := range len(name) { // a token: ASCII without quotes
			c := name[i]
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}

			b = append(b, c)
		}

		b = append(b, '"', ':')
		value := values[0]
		if len(values) > 1 {
			value = strings.Join(values, ", ")
		}

		b = appendJSON(b, value)
	}

	return append(b, '}')
}

// appendCookies appends request.cookies: a JSON object, empty with hideCredentials.
func appendCookies(b []byte, r *http.Request, hideCredentials bool) []byte {
	b = append(b, '{')
	if _, ok := r.Header["Cookie"]; ok && !hideCredentials {
		seen := map[string]bool{}
		for _, c := range r.Cookies() {
			if seen[c.Name] {
				continue
			}

			if len(seen) > 0 {
				b = append(b, ',')
			}

			seen[c.Name] = true
			b = appendJSON(append(appendJSON(b, c.Name), ':'), c.Value)
		}
	}

	return append(b, '}')
}
