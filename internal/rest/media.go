package rest

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"socle/internal/rest/catalog"
	"socle/internal/rest/plan"
	"socle/internal/rest/query"
)

// media is the form of an answer.
type media struct {
	kind    string // Content-Type
	format  plan.Format
	handler *catalog.Handler // of plan.Custom
	explain string           // what stands before the statement if its plan is the answer, or ""
}

const jsonType = "application/json; charset=utf-8"

var jsonMedia = media{kind: jsonType, format: plan.JSON}

// single reports whether the answer is one object.
func (m *media) single() bool { return m.format == plan.Object || m.format == plan.StrippedObject }

// wanted is a part of an Accept header.
type wanted struct {
	name       string // lower case
	parameters string
	quality    float64
}

// accepted returns what an Accept header asks for, the best first.
func accepted(header []string) []wanted {
	var all []wanted
	for _, line := range header {
		for _, part := range splitQuoted(line, ',') {
			if w := want(part); w.name != "" {
				all = append(all, w)
			}
		}
	}

	slices.SortStableFunc(all, func(a, b wanted) int {
		return cmp.Or(cmp.Compare(b.quality, a.quality), cmp.Compare(wildness(a.name), wildness(b.name)))
	})

	return all
}

// want reads one media type.
func want(text string) wanted {
	pieces := splitQuoted(text, ';')
	w := wanted{name: strings.ToLower(strings.TrimSpace(pieces[0])), quality: 1}

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

func wildness(name string) int { return strings.Count(name, "*") }

// splitQuoted splits at a separator that does not stand between quotes.
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

// parameter returns a parameter's value without its quotes.
func (w *wanted) parameter(name string) string {
	for _, p := range splitQuoted(w.parameters, ';') {
		if n, value, ok := strings.Cut(p, "="); ok && strings.EqualFold(strings.TrimSpace(n), name) {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}

	return ""
}

// String returns the media type as the contract writes it: of its own types those parameters count that it knows.
func (w *wanted) String() string {
	stripped := w.parameter("nulls") == "stripped"
	switch w.name {
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

	return w.name
}

// negotiate chooses the form of an answer about a target: the relation whose rows they are, or a function.
func (s *Server) negotiate(r *http.Request, c *catalog.Catalog, target catalog.Name, q *query.Query) (media, error) {
	header := r.Header["Accept"]

	plain := len(c.Handlers) == 0
	if plain && (len(header) == 0 || len(header) == 1 && (header[0] == "*/*" || header[0] == "application/json")) {
		return jsonMedia, nil // nearly always
	}

	all := accepted(header)
	if len(all) == 0 {
		all = []wanted{{name: "*/*"}}
	}

	whole := wantsAll(q)
	for i := range all {
		if m, ok := s.offer(c, target, whole, &all[i]); ok {
			return m, nil
		}
	}

	return media{}, notOffered(all)
}

// notOffered is the failure to offer any of what is wanted, as the contract writes it.
func notOffered(all []wanted) error {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].name
		if w := &all[i]; strings.HasPrefix(w.name, "application/vnd.pgrst.plan") {
			_, names[i], _ = w.explained()
		} else if w.parameters != "" {
			names[i] += ";" + w.parameters
		}
	}

	return fail(http.StatusNotAcceptable, "PGRST107",
		"None of these media types are available: "+strings.Join(names, ", "))
}

// wantsAll reports whether the select is the default one.
func wantsAll(q *query.Query) bool {
	for _, item := range q.Select {
		if item.Kind != query.Star {
			return false
		}
	}

	return true
}

// offer returns the form that is wanted, if there is one. The contract's own types have no other handlers.
func (s *Server) offer(c *catalog.Catalog, target catalog.Name, whole bool, w *wanted) (media, bool) {
	name, stripped := w.name, w.parameter("nulls") == "stripped"
	switch name {
	case "application/vnd.pgrst.object", "application/vnd.pgrst.object+json":
		m := media{kind: w.String() + "; charset=utf-8", format: plan.Object}
		if stripped {
			m.format = plan.StrippedObject
		}

		return m, true
	case "application/vnd.pgrst.plan", "application/vnd.pgrst.plan+text", "application/vnd.pgrst.plan+json":
		return s.offerPlan(c, target, whole, w)
	case "application/vnd.pgrst.array", "application/vnd.pgrst.array+json":
		if stripped {
			return media{kind: w.String() + "; charset=utf-8", format: plan.StrippedJSON}, true
		}
		name = "application/json"
	}

	if h := handler(c, target, whole, name); h != nil {
		return media{kind: handlerType(h, name), format: plan.Custom, handler: h}, true
	}

	switch name {
	case "*/*", "application/json":
		return jsonMedia, true
	case "text/csv":
		return media{kind: "text/csv; charset=utf-8", format: plan.CSV}, true
	case "application/geo+json":
		return media{kind: "application/geo+json; charset=utf-8", format: plan.GeoJSON}, c.GeoJSON != catalog.Name{}
	}

	return media{}, false
}

// handler returns the handler of a media type for a target, or nil. One for a relation itself takes whole rows only.
func handler(c *catalog.Catalog, target catalog.Name, whole bool, name string) *catalog.Handler {
	var found *catalog.Handler
	rank := 0
	for i := range c.Handlers {
		h := &c.Handlers[i]
		n := 0
		switch {
		case h.For == target && whole && h.MediaType == "*/*":
			n = 3
		case h.For == target && whole && h.MediaType == name:
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

// planOptions are the options of EXPLAIN that a client may ask for.
var planOptions = []string{"analyze", "verbose", "settings", "buffers", "wal"}

func (s *Server) offerPlan(c *catalog.Catalog, target catalog.Name, whole bool, w *wanted) (media, bool) {
	if !s.Plan {
		return media{}, false
	}

	of, kind, explain := w.explained()
	m, ok := s.offer(c, target, whole, &of)
	if !ok || m.explain != "" {
		return media{}, false
	}

	m.explain, m.kind = explain, kind+"; charset=utf-8"
	return m, true
}

// explained returns of what a plan is wanted, how the contract writes that, and what stands before the statement for it.
func (w *wanted) explained() (of wanted, kind, explain string) {
	if of = want(w.parameter("for")); of.name == "" {
		of = want("application/json")
	}

	form := "text"
	if strings.HasSuffix(w.name, "+json") {
		form = "json"
	}

	asked := strings.Split(w.parameter("options"), "|")
	var options []string
	explain = "explain (format " + form
	for _, o := range planOptions {
		if slices.Contains(asked, o) {
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
