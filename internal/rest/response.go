package rest

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/rest/plan"
	"github.com/socle-dev/socle/internal/rest/session"
)

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

// respond writes the response of an executed request. If it returns an error other than an
// *abortedError, nothing has been written.
func (c *call) respond(res *session.Result) error {
	p, h := &c.planned, c.w.Header()
	c.headerValues = make([]string, 0, 6) // the usual number of headers
	status, withBody := http.StatusOK, true
	switch {
	case c.media.explain != "":
		c.setContentType(h)
	case c.route.function || c.r.Method == http.MethodGet || c.r.Method == http.MethodHead:
		if c.media.single() && !(c.route.function && p.function.Returns.Void) {
			if err := checkSingle(res); err != nil {
				return err
			}
		}

		var rangeErr error
		status, rangeErr = c.setReadHeaders(h, p, res)
		if rangeErr != nil {
			return rangeErr
		}

		if c.route.function && p.function.Returns.Void {
			status, withBody = http.StatusNoContent, false
		} else {
			c.setContentType(h)
		}

		if !c.route.function && len(c.path)+len(c.rawQuery) < maxContentLocation {
			c.setHeader(h, "Content-Location", contentLocation(c.path, c.rawQuery))
		}
	default:
		status = c.setWriteHeaders(h, p, res)
		withBody = c.prefer.Return == "representation"
		if withBody {
			c.setContentType(h)
		}
	}

	if len(c.server.Schemas) > 1 || c.r.Header["Accept-Profile"] != nil || c.r.Header["Content-Profile"] != nil {
		c.setHeader(h, "Content-Profile", c.route.target.Schema)
	}
	if applied := c.appliedPreferences(p.Resolved); applied != "" {
		c.setHeader(h, "Preference-Applied", applied)
	}

	body, size, err := c.decodeBody(res)
	if err != nil {
		return err
	}

	vary(h)

	if c.media.explain == "" {
		request := httpx.From(c.r.Context())
		request.Rows, request.HasRows = res.Rows, true
	}

	if len(p.DeprecatedNames) > 0 {
		c.setHeader(h, "Warning", deprecationWarning(p.DeprecatedNames))
	}

	if status, err = c.server.applyOverrides(h, status, res); err != nil {
		return err
	}

	if !withBody {
		size = 0
	}

	switch follows := c.writeHead(status, size); {
	case !follows:
	case res.Streamed():
		return c.streamBody(res)
	default:
		c.writeBody(body)
	}

	return nil
}

// decodeBody returns the body of a result and its size in bytes. PostgreSQL sends that of a binary
// media type in hexadecimal.
func (c *call) decodeBody(res *session.Result) (body []byte, size int, err error) {
	if c.media.explain != "" || c.media.handler == nil || !c.media.handler.Binary {
		return res.Body, res.Size, nil
	}

	body = make([]byte, hex.DecodedLen(res.Size))
	_, err = hex.Decode(body, res.Body)

	return body, len(body), err
}

// varyHeader names the request headers that select the response.
var varyHeader = []string{"Accept, Prefer, Range"}

func vary(h http.Header) {
	if h["Vary"] == nil { // nearly always
		h["Vary"] = varyHeader
		return
	}

	h["Vary"] = append(h["Vary"], varyHeader...)
}

// deprecationWarning warns of aliased relations that are named by their own name.
func deprecationWarning(names []string) string {
	return "299 - " +
		strconv.QuoteToASCII(
			"Filters, orders and limits will have to name an embedded relation that has an alias by that: "+
				strings.Join(names, ", "),
		)
}

func (c *call) setContentType(h http.Header) { c.setHeader(h, "Content-Type", c.media.contentType) }

// setHeader sets a header. The values of all headers share a slice.
func (c *call) setHeader(h http.Header, name, value string) {
	c.headerValues = append(c.headerValues, value)
	h[name] = c.headerValues[len(c.headerValues)-1 : len(c.headerValues) : len(c.headerValues)]
}

// writeHead writes status and headers of a response with a body of size bytes. It reports whether
// the body follows.
func (c *call) writeHead(status, size int) bool {
	h := c.w.Header()
	if c.server.Features.ServerTiming {
		c.timings.mark(&c.timings.response)
		c.setHeader(h, "Server-Timing", c.timings.String())
	}

	head := c.r.Method == http.MethodHead
	if !head && status != http.StatusNoContent {
		c.setHeader(h, "Content-Length", strconv.Itoa(size))
	}

	c.server.setSandbox(h)
	c.w.WriteHeader(status)

	return size > 0 && !head && status != http.StatusNoContent
}

// client is the writer of a response body.
type client struct {
	io.Writer
	*http.ResponseController
}

// writeBody writes a buffered body.
func (c *call) writeBody(body []byte) {
	if len(body) <= session.ChunkSize { // nearly always
		_, _ = c.w.Write(body)
		return
	}

	to := client{c.w, http.NewResponseController(c.w)}
	for chunk := range slices.Chunk(body, session.ChunkSize) {
		_ = to.SetWriteDeadline(time.Now().Add(session.WriteTimeout)) // not every connection has one
		if _, err := to.Write(chunk); err != nil {
			return
		}
	}
}

// streamBody writes a streamed body.
func (c *call) streamBody(res *session.Result) error {
	if err := res.Stream(client{c.w, http.NewResponseController(c.w)}); err != nil {
		return &abortedError{err}
	}
	return nil
}

// abortedError ends a response that has started. The client sees a broken connection.
type abortedError struct{ cause error }

func (e *abortedError) Error() string { return "response aborted: " + e.cause.Error() }

// setReadHeaders sets the range headers of a read and returns its status.
func (c *call) setReadHeaders(h http.Header, p *plannedRequest, res *session.Result) (int, error) {
	total := res.Total
	switch p.count {
	case plan.Planned:
		total = res.Estimate
	case plan.Estimated:
		// The exact count is known up to MaxRows. PostgreSQL's estimate is no better: for a table
		// that was never analyzed it assumes ten blocks, even if the table is empty.
		if limit := c.server.Limits.MaxRows; limit != nil && total > *limit {
			total = max(total, res.Estimate)
		}
	}

	offset := c.window.Offset
	c.setHeader(h, "Content-Range", contentRange(offset, res.Rows, total))

	if total < 0 {
		return http.StatusOK, nil
	}
	if offset > total {
		return 0, outOfRange("An offset of " + formatInt(offset) + " was requested, but there are only " +
			formatInt(total) + " rows.")
	}
	if res.Rows < total {
		return http.StatusPartialContent, nil
	}

	return http.StatusOK, nil
}

// contentRange formats a Content-Range. A total below 0 is unknown.
func contentRange(offset, rows, total int64) string {
	var buf [64]byte
	b := buf[:0]
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

// setWriteHeaders sets the headers of a write and returns its status.
func (c *call) setWriteHeaders(h http.Header, p *plannedRequest, res *session.Result) int {
	total := int64(-1)
	if p.count == plan.Exact || p.count == plan.Estimated {
		total = res.Rows
	}

	represented := c.prefer.Return == "representation"
	switch c.r.Method {
	case http.MethodPost:
		c.setHeader(h, "Content-Range", contentRange(0, 0, total))

		if c.prefer.Return == "headers-only" && len(res.Location) > 0 {
			// Without the key the address would be of all rows.
			if key := p.Location(string(res.Location)); key != "" {
				c.setHeader(h, "Location", "/"+strings.TrimPrefix(c.path, "/")+"?"+key)
			}
		}

		if res.Inserted == 0 && c.prefer.Resolution == "merge-duplicates" {
			return http.StatusOK
		}

		return http.StatusCreated
	case http.MethodPut:
		switch {
		case !represented:
			return http.StatusNoContent
		case res.Inserted > 0:
			return http.StatusCreated
		}

		return http.StatusOK
	case http.MethodDelete:
		c.setHeader(h, "Content-Range", contentRange(0, 0, total))
	default:
		c.setHeader(h, "Content-Range", contentRange(0, res.Rows, total))
	}

	if represented {
		return http.StatusOK
	}

	return http.StatusNoContent
}

// appliedPreferences returns the preferences that took effect.
func (c *call) appliedPreferences(resolved bool) string {
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
	if !table || (method != http.MethodPost && method != http.MethodPatch) {
		a.Missing = ""
	}
	if !c.server.Features.TxOverride {
		a.Tx = ""
	}
	if (a.Read == "replica") != (c.replica != nil) || c.server.Replicas == nil {
		a.Read = ""
	}
	if a.Handling != "strict" || (table && method != http.MethodPatch && method != http.MethodDelete) {
		a.MaxAffected = nil
	}

	return a.Applied()
}

// maxContentLocation is the length in bytes up to which a response repeats its URL. Clients bound
// the length of all headers together: Node.js has 16 KiB.
const maxContentLocation = 2 << 10

// contentLocation returns the path and query of a read, with parameters sorted by name.
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

// applyOverrides applies response.headers and response.status as set by user code. It drops headers
// that user code is not allowed to set.
func (s *Server) applyOverrides(h http.Header, status int, res *session.Result) (int, error) {
	if len(res.Headers) > 0 {
		var all []map[string]string
		if json.Unmarshal(res.Headers, &all) != nil {
			return 0, invalidHeaders()
		}

		seen := map[string]bool{}
		for _, entry := range all {
			if len(entry) != 1 {
				return 0, invalidHeaders()
			}

			for name, value := range entry {
				name = http.CanonicalHeaderKey(name)
				switch {
				case !s.allowsHeader(name):
				case seen[name]:
					h.Add(name, value)
				default:
					h.Set(name, value)
				}

				seen[name] = true
			}
		}
	}

	if len(res.Status) > 0 {
		n, err := strconv.Atoi(string(res.Status))
		if err != nil || n < 200 || n > 599 {
			return 0, newError(http.StatusInternalServerError, "PGRST112",
				"response.status guc must be a valid status code")
		}

		status = n
	}

	return status, nil
}

func invalidHeaders() error {
	return newError(http.StatusInternalServerError, "PGRST111",
		"response.headers guc must be a JSON array composed of objects with a single key and a string value")
}

// timings are the durations of a request's phases.
type timings struct {
	last                                    time.Time
	jwt, parse, plan, transaction, response time.Duration
}

// mark ends a phase, if timings are on.
func (t *timings) mark(part *time.Duration) {
	if t.last.IsZero() {
		return
	}

	now := time.Now()
	*part += now.Sub(t.last)
	t.last = now
}

// String returns the value of Server-Timing, in milliseconds.
func (t *timings) String() string {
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
