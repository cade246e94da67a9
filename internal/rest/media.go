package rest

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/socle-dev/socle/internal/rest/catalog"
	"github.com/socle-dev/socle/internal/rest/plan"
	"github.com/socle-dev/socle/internal/rest/query"
)

// media is the format of a response.
type media struct {
	contentType string
	format      plan.Format
	handler     *catalog.Handler // handler of plan.Custom
	// explain is the EXPLAIN prefix if the response is the plan of the statement, or "".
	explain string
}

const jsonType = "application/json; charset=utf-8"

var jsonMedia = media{contentType: jsonType, format: plan.JSON}

// single reports whether the response is a single object.
func (m *media) single() bool { return m.format == plan.Object || m.format == plan.StrippedObject }

// mediaRange is an item of an Accept header.
type mediaRange struct {
	name       string // lower case
	parameters string
	quality    float64
}

// parseAccept returns the items of Accept headers, the most preferred first.
func parseAccept(header []string) []mediaRange {
	var all []mediaRange
	for _, line := range header {
		for _, part := range splitQuoted(line, ',') {
			if w := parseMediaRange(part); w.name != "" {
				all = append(all, w)
			}
		}
	}

	slices.SortStableFunc(all, func(a, b mediaRange) int {
		return cmp.Or(cmp.Compare(b.quality, a.quality), cmp.Compare(wildcards(a.name), wildcards(b.name)))
	})

	return all
}

// parseMediaRange reads one item.
func parseMediaRange(text string) mediaRange {
	pieces := splitQuoted(text, ';')
	w := mediaRange{name: strings.ToLower(strings.TrimSpace(pieces[0])), quality: 1}

	var kept []string
	for _, p := range pieces[1:] {
		p = strings.TrimSpace(p)
		if q, ok := strings.CutPrefix(p, "q="); ok {
			if n, err := strconv.ParseFloat(q, 64); err == nil {
				w.quality = n
			}
		} else if p != "" {
			kept = append(kept, p)
		}
	}

	w.parameters = strings.Join(kept, ";")
	return w
}

func wildcards(name string) int { return strings.Count(name, "*") }

// splitQuoted splits at separators outside quotes.
func splitQuoted(s string, separator byte) []string {
	var parts []string
	start, quoted := 0, false
	for i := range len(s) {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == separator && !quoted:
			parts = append(parts, s[start:i])
			start = i + 1
		}
	}

	return append(parts, s[start:])
}

// parameter returns the value of a parameter without quotes.
func (m *mediaRange) parameter(name string) string {
	for _, p := range splitQuoted(m.parameters, ';') {
		if n, value, ok := strings.Cut(p, "="); ok && strings.EqualFold(strings.TrimSpace(n), name) {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}

	return ""
}

// String returns the media type in the contract's form: its own types keep the parameters that it
// defines.
func (m *mediaRange) String() string {
	stripped := m.parameter("nulls") == "stripped"
	switch m.name {
	case "application/vnd.pgrst.object", "application/vnd.pgrst.object+json":
		if stripped {
			return "application/vnd.pgrst.object+json;nulls=stripped"
		}
		return "application/vnd.pgrst.object+json"
	case "application/vnd.pgrst.array", "application/vnd.pgrst.array+json":
		if stripped {
			return "application/vnd.pgrst.array+json;nulls=stripped"
		}
		return "application/json"
	}

	return m.name
}

// negotiate chooses the format of the response. target is a relation or a function.
func (s *Server) negotiate(r *http.Request, c *catalog.Catalog, target catalog.Name, q *query.Query) (media, error) {
	header := r.Header["Accept"]

	plain := len(c.Handlers) == 0
	if plain && (len(header) == 0 || (len(header) == 1 && (header[0] == "*/*" || header[0] == "application/json"))) {
		return jsonMedia, nil // nearly always
	}

	all := parseAccept(header)
	if len(all) == 0 {
		all = []mediaRange{{name: "*/*"}}
	}

	allColumns := isDefaultSelect(q)
	for i := range all {
		if m, ok := s.offer(c, target, allColumns, &all[i]); ok {
			return m, nil
		}
	}

	return media{}, notAcceptable(all)
}

// notAcceptable returns the contract's error for unavailable media types.
func notAcceptable(all []mediaRange) error {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].name
		if w := &all[i]; strings.HasPrefix(w.name, "application/vnd.pgrst.plan") {
			_, names[i], _ = w.explained()
		} else if w.parameters != "" {
			names[i] += ";" + w.parameters
		}
	}

	return newError(http.StatusNotAcceptable, "PGRST107",
		"None of these media types are available: "+strings.Join(names, ", "))
}

// isDefaultSelect reports whether select is absent or *.
func isDefaultSelect(q *query.Query) bool {
	for _, item := range q.Select {
		if item.Kind != query.Star {
			return false
		}
	}

	return true
}

// offer returns the format for a media range, if available. The contract's own types cannot be
// overridden by handlers.
func (s *Server) offer(c *catalog.Catalog, target catalog.Name, allColumns bool, w *mediaRange) (media, bool) {
	name, stripped := w.name, w.parameter("nulls") == "stripped"
	switch name {
	case "application/vnd.pgrst.object", "application/vnd.pgrst.object+json":
		m := media{contentType: w.String() + "; charset=utf-8", format: plan.Object}
		if stripped {
			m.format = plan.StrippedObject
		}

		return m, true
	case "application/vnd.pgrst.plan", "application/vnd.pgrst.plan+text", "application/vnd.pgrst.plan+json":
		return s.offerPlan(c, target, allColumns, w)
	case "application/vnd.pgrst.array", "application/vnd.pgrst.array+json":
		if stripped {
			return media{contentType: w.String() + "; charset=utf-8", format: plan.StrippedJSON}, true
		}
		name = "application/json"
	}

	if h := findHandler(c, target, allColumns, name); h != nil {
		return media{contentType: handlerType(h, name), format: plan.Custom, handler: h}, true
	}

	switch name {
	case "*/*", "application/json":
		return jsonMedia, true
	case "text/csv":
		return media{contentType: "text/csv; charset=utf-8", format: plan.CSV}, true
	case "application/geo+json":
		m := media{contentType: "application/geo+json; charset=utf-8", format: plan.GeoJSON}
		return m, c.GeoJSON != catalog.Name{}
	}

	return media{}, false
}

// findHandler returns the handler of a media type for a target, or nil. A handler of a relation
// requires all columns.
func findHandler(c *catalog.Catalog, target catalog.Name, allColumns bool, name string) *catalog.Handler {
	var found *catalog.Handler
	rank := 0
	for i := range c.Handlers {
		h := &c.Handlers[i]
		n := 0
		switch {
		case h.For == target && allColumns && h.MediaType == "*/*":
			n = 3
		case h.For == target && allColumns && h.MediaType == name:
			n = 2
		case h.For == catalog.Name{} && h.MediaType == name:
			n = 1
		}

		if n > rank {
			found, rank = h, n
		}
	}

	return found
}

func handlerType(h *catalog.Handler, asked string) string {
	switch h.MediaType {
	case "*/*":
		return "application/octet-stream"
	case "text/plain", "text/xml", "text/csv", "application/json", "application/geo+json", "application/openapi+json",
		"application/x-www-form-urlencoded":
		return h.MediaType + "; charset=utf-8"
	}

	return asked
}

// planOptions are the supported options of EXPLAIN.
var planOptions = []string{"analyze", "verbose", "settings", "buffers", "wal"}

func (s *Server) offerPlan(c *catalog.Catalog, target catalog.Name, allColumns bool, w *mediaRange) (media, bool) {
	if !s.Features.Plan {
		return media{}, false
	}

	of, kind, explain := w.explained()
	m, ok := s.offer(c, target, allColumns, &of)
	if !ok || m.explain != "" {
		return media{}, false
	}

	m.explain, m.contentType = explain, kind+"; charset=utf-8"
	return m, true
}

// explained returns the media range whose plan is requested, the contract's form of it, and the
// EXPLAIN prefix.
func (m *mediaRange) explained() (of mediaRange, kind, explain string) {
	if of = parseMediaRange(m.parameter("for")); of.name == "" {
		of = parseMediaRange("application/json")
	}

	form := "text"
	if strings.HasSuffix(m.name, "+json") {
		form = "json"
	}

	requested := strings.Split(m.parameter("options"), "|")
	var options []string
	explain = "explain (format " + form
	for _, o := range planOptions {
		if slices.Contains(requested, o) {
			options = append(options, o)
			explain += ", " + o
		}
	}

	kind = "application/vnd.pgrst.plan+" + form + `; for="` + of.String() + `"`
	if options != nil {
		kind += "; options=" + strings.Join(options, "|")
	}

	return of, kind, explain + ") "
}
