package rest

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"socle/internal/rest/plan"
)

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

// answer writes the answer to a request that was executed, or fails before it has.
func (c *call) answer(got *result) error {
	p, h := &c.planned, c.w.Header()
	c.values = make([]string, 0, 6)      // as many as an answer usually has
	status, whole := http.StatusOK, true // whole: the body is sent
	switch {
	case c.media.explain != "":
		c.contentType(h)
	case c.route.function || c.r.Method == http.MethodGet || c.r.Method == http.MethodHead:
		if c.media.single() && !(c.route.function && p.function.Returns.Void) {
			if err := checkSingle(got); err != nil {
				return err
			}
		}

		var failed error
		status, failed = c.rows(h, p, got)
		if failed != nil {
			return failed
		}

		if c.route.function && p.function.Returns.Void {
			status, whole = http.StatusNoContent, false
		} else {
			c.contentType(h)
		}

		if !c.route.function {
			c.set(h, "Content-Location", contentLocation(c.path, c.asked))
		}
	default:
		status = c.changed(h, p, got)
		whole = c.prefer.Return == "representation"
		if whole {
			c.contentType(h)
		}
	}

	if len(c.server.Schemas) > 1 || c.r.Header["Accept-Profile"] != nil || c.r.Header["Content-Profile"] != nil {
		c.set(h, "Content-Profile", c.schema)
	}
	if applied := c.applied(p.Resolved); applied != "" {
		c.set(h, "Preference-Applied", applied)
	}

	if c.media.handler != nil && c.media.handler.Binary && len(got.body) > 0 {
		plain := make([]byte, hex.DecodedLen(len(got.body)))
		if _, err := hex.Decode(plain, got.body); err != nil {
			return err
		}

		got.body = plain
	}

	vary(h)

	if len(p.Outdated) > 0 {
		c.set(h, "Warning", outdated(p.Outdated))
	}

	status, err := c.server.override(h, status, got)
	if err != nil {
		return err
	}

	return c.write(status, whole, got)
}

// varied are the headers of a request that the contract says its answer depends on.
var varied = []string{"Accept, Prefer, Range"}

func vary(h http.Header) {
	if h["Vary"] == nil { // nearly always
		h["Vary"] = varied
		return
	}

	h["Vary"] = append(h["Vary"], varied...)
}

// outdated warns of names by which embedded relations will not be known any more.
func outdated(names []string) string {
	return "299 - " +
		strconv.QuoteToASCII(
			"Filters, orders and limits will have to name an embedded relation that has an alias by that: "+
				strings.Join(names, ", "),
		)
}

func (c *call) contentType(h http.Header) { c.set(h, "Content-Type", c.media.kind) }

// set sets a header, whose values share memory with others.
func (c *call) set(h http.Header, name, value string) {
	c.values = append(c.values, value)
	h[name] = c.values[len(c.values)-1 : len(c.values) : len(c.values)]
}

// write sends status, headers and the body, if it is to be sent.
func (c *call) write(status int, whole bool, got *result) error {
	h := c.w.Header()
	if c.server.ServerTiming {
		c.times.mark(&c.times.response)
		c.set(h, "Server-Timing", c.times.String())
	}

	size := len(got.lead) + len(got.body)
	if got.coming != nil {
		size = got.size
	}
	if !whole {
		size = 0
	}

	head := c.r.Method == http.MethodHead
	if !head && status != http.StatusNoContent {
		c.set(h, "Content-Length", strconv.Itoa(size))
	}

	c.server.confine(h)
	c.w.WriteHeader(status)

	switch {
	case head || size == 0 || status == http.StatusNoContent:
	case got.coming != nil:
		return c.passOn(got)
	default:
		if got.lead != nil {
			c.send(got.lead)
		}
		c.send(got.body)
	}

	return nil
}

// brokenError is what ended an answer that was begun. Nothing can be said of it but by breaking the connection.
type brokenError struct{ cause error }

func (e *brokenError) Error() string { return "the answer was broken off: " + e.cause.Error() }

// goneError is why an answer was broken off if the client takes no more of it. That is no failure of ours.
type goneError struct{ error }

func isBroken(err error) bool {
	_, ok := errors.AsType[*brokenError](err)
	return ok
}

// rows sets the headers that say which rows an answer holds, and returns its status.
func (c *call) rows(h http.Header, p *planned, got *result) (int, error) {
	total := got.total
	switch p.count {
	case plan.Planned:
		total = got.planned
	case plan.Estimated:
		most := c.server.MaxRows
		if most == nil || total > *most {
			total = max(total, got.planned)
		}
	}

	offset := c.window.Offset
	c.set(h, "Content-Range", contentRange(offset, got.page, total))

	if total < 0 {
		return http.StatusOK, nil
	}
	if offset > total {
		return 0, outOfRange("An offset of " + formatInt(offset) + " was requested, but there are only " +
			formatInt(total) + " rows.")
	}
	if got.page < total {
		return http.StatusPartialContent, nil
	}

	return http.StatusOK, nil
}

// contentRange names rows from an offset on. A total below 0 is unknown.
func contentRange(offset, rows, total int64) string {
	var room [64]byte
	b := room[:0]
	if rows == 0 || total == 0 {
		b = append(b, '*')
	} else {
		b = strconv.AppendInt(b, offset, 10)
		b = append(b, '-')
		b = strconv.AppendInt(b, offset+rows-1, 10)
	}

	b = append(b, '/')
	if total < 0 {
		b = append(b, '*')
	} else {
		b = strconv.AppendInt(b, total, 10)
	}

	return string(b)
}

// changed sets the headers of a write, and returns its status.
func (c *call) changed(h http.Header, p *planned, got *result) int {
	total := int64(-1)
	if p.count == plan.Exact || p.count == plan.Estimated {
		total = got.page
	}

	represented := c.prefer.Return == "representation"
	switch c.r.Method {
	case http.MethodPost:
		c.set(h, "Content-Range", contentRange(0, 0, total))

		if c.prefer.Return == "headers-only" && len(got.location) > 0 {
			c.set(h, "Location", "/"+strings.TrimPrefix(c.path, "/")+"?"+p.Location(string(got.location)))
		}

		if got.inserted == 0 && c.prefer.Resolution == "merge-duplicates" {
			return http.StatusOK
		}

		return http.StatusCreated
	case http.MethodPut:
		switch {
		case !represented:
			return http.StatusNoContent
		case got.inserted > 0:
			return http.StatusCreated
		}

		return http.StatusOK
	case http.MethodDelete:
		c.set(h, "Content-Range", contentRange(0, 0, total))
	default:
		c.set(h, "Content-Range", contentRange(0, got.page, total))
	}

	if represented {
		return http.StatusOK
	}

	return http.StatusNoContent
}

// applied returns the preferences that took effect.
func (c *call) applied(resolved bool) string {
	if c.r.Header["Prefer"] == nil {
		return ""
	}

	a := c.prefer
	method := c.r.Method
	table := !c.route.function
	if !table || method != http.MethodPost || !resolved {
		a.Resolution = ""
	}
	if !table || method == http.MethodGet || method == http.MethodHead {
		a.Return = ""
	}
	if !table || method != http.MethodPost && method != http.MethodPatch {
		a.Missing = ""
	}
	if !c.server.TxOverride {
		a.Tx = ""
	}
	if a.Handling != "strict" || table && method != http.MethodPatch && method != http.MethodDelete {
		a.MaxAffected = nil
	}

	return a.Applied()
}

// contentLocation returns the path of what was read, its parameters in the order of their names.
func contentLocation(path, raw string) string {
	if raw == "" {
		return path
	}

	if strings.IndexByte(raw, '&') >= 0 {
		parts := strings.Split(raw, "&")
		slices.SortStableFunc(parts, func(a, b string) int {
			a, _, _ = strings.Cut(a, "=")
			b, _, _ = strings.Cut(b, "=")

			return strings.Compare(a, b)
		})

		raw = strings.Join(parts, "&")
	}

	return path + "?" + raw
}

// override applies what the statement left in response.headers and response.status. Headers that the database's code may
// not set are dropped.
func (s *Server) override(h http.Header, status int, got *result) (int, error) {
	if len(got.headers) > 0 {
		var all []map[string]string
		if json.Unmarshal(got.headers, &all) != nil {
			return 0, badHeaders()
		}

		seen := map[string]bool{}
		for _, one := range all {
			if len(one) != 1 {
				return 0, badHeaders()
			}

			for name, value := range one {
				name = http.CanonicalHeaderKey(name)
				switch {
				case !s.maySet(name):
				case seen[name]:
					h.Add(name, value)
				default:
					h.Set(name, value)
				}

				seen[name] = true
			}
		}
	}

	if len(got.status) > 0 {
		n, err := strconv.Atoi(string(got.status))
		if err != nil || n < 200 || n > 599 {
			return 0, fail(http.StatusInternalServerError, "PGRST112",
				"response.status guc must be a valid status code")
		}

		status = n
	}

	return status, nil
}

func badHeaders() error {
	return fail(http.StatusInternalServerError, "PGRST111",
		"response.headers guc must be a JSON array composed of objects with a single key and a string value")
}

// times are how long the parts of a request took.
type times struct {
	last                                    time.Time
	jwt, parse, plan, transaction, response time.Duration
}

// mark ends a part, if the time is taken at all.
func (t *times) mark(part *time.Duration) {
	if t.last.IsZero() {
		return
	}

	now := time.Now()
	*part += now.Sub(t.last)
	t.last = now
}

// String returns the times as in the header Server-Timing, in milliseconds.
func (t *times) String() string {
	var b []byte
	for i, part := range [...]struct {
		name string
		took time.Duration
	}{{"jwt", t.jwt}, {"parse", t.parse}, {"plan", t.plan}, {"transaction", t.transaction}, {"response", t.response}} {
		if i > 0 {
			b = append(b, ", "...)
		}

		b = append(append(b, part.name...), ";dur="...)
		b = strconv.AppendFloat(b, float64(part.took.Microseconds())/1000, 'f', 1, 64)
	}

	return string(b)
}
