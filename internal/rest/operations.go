package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/socle-dev/socle/internal/rest/query"
)

// operation is a request in a batch.
type operation struct {
	ID      string            `json:"id"`
	Method  string            `json:"method"`
	Path    string            `json:"path"` // with a query string
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
}

// OperationError is the failure of an operation, and so of its batch.
type OperationError struct {
	Operation int // index
	Cause     error
}

func (e *OperationError) Error() string {
	return "operation " + strconv.Itoa(e.Operation) + ": " + e.Cause.Error()
}
func (e *OperationError) Unwrap() error { return e.Cause }

func invalidBatch(message string) *query.Error {
	return newError(http.StatusBadRequest, "invalid_batch", message)
}

var operationID = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// parseBatch parses a list of operations.
func parseBatch(text []byte) (*batch, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()

	var body struct {
		Operations []operation `json:"operations"`
	}
	if err := d.Decode(&body); err != nil {
		e := invalidBatch("the body is no list of operations")
		e.Details = `It is {"operations": [{"id", "method", "path", "headers", "body"}, …]}.`

		return nil, e
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, invalidBatch("something follows the operations")
	}
	if len(body.Operations) == 0 || len(body.Operations) > maxOperations {
		return nil, invalidBatch("a batch has 1 to " + strconv.Itoa(maxOperations) + " operations")
	}

	seen := map[string]bool{}
	for i := range body.Operations {
		o := &body.Operations[i]
		if o.ID != "" && (!operationID.MatchString(o.ID) || seen[o.ID]) {
			return nil, &OperationError{i, invalidBatch("an id has letters, digits and _, and is used once")}
		}
		if err := o.check(); err != nil {
			return nil, &OperationError{i, err}
		}

		seen[o.ID] = true
	}

	return &batch{operations: body.Operations}, nil
}

// operationHeaders are the headers that an operation may have.
var operationHeaders = []string{"Accept", "Accept-Profile", "Content-Profile", "Content-Type", "Prefer", "Range"}

// check checks the parts of an operation that need no catalog.
func (o *operation) check() error {
	methods := []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete}
	if !slices.Contains(methods, o.Method) {
		return invalidBatch("the method must be " + strings.Join(methods, ", "))
	}
	if strings.ContainsAny(o.Path, "#\x00") || strings.Trim(o.Path, "/") == "" || !utf8.ValidString(o.Path) {
		return invalidBatch("the path must be /table or /rpc/function, with a query string")
	}

	if o.Body != nil && (o.Method == http.MethodGet || o.Method == http.MethodDelete) {
		return invalidBatch("a " + o.Method + " has no body")
	}

	size := 0
	for name, value := range o.Headers {
		if !slices.Contains(operationHeaders, http.CanonicalHeaderKey(name)) {
			return invalidBatch("an operation has no header " + name + ", only " + strings.Join(operationHeaders, ", "))
		}
		if size += len(value); size > maxOperationHead {
			return invalidBatch("the headers are too long")
		}
		if strings.ContainsFunc(value, func(c rune) bool { return (c < ' ' && c != '\t') || c == 0x7f }) {
			return invalidBatch("the header " + name + " has control characters")
		}
	}

	return nil
}

// operationCall returns the call for an operation, with the references resolved.
func (c *call) operationCall(o *operation) (*call, error) {
	b, maxBody := c.batch, c.server.Limits.MaxBody
	target, err := b.resolvePath(o)
	if err != nil {
		return nil, err
	}
	body, err := b.resolveBody(o.Body, maxBody)
	if err != nil {
		return nil, err
	}

	if len(target) > maxOperationHead {
		return nil, invalidBatch("the path is too long")
	}

	path, rawQuery, _ := strings.Cut(target, "?")
	r := c.r.Clone(c.r.Context())
	r.Method, r.URL = o.Method, &url.URL{Path: path, RawQuery: rawQuery}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	for _, name := range append(operationHeaders, idempotencyHeader, "Content-Length", "Content-Encoding") {
		r.Header.Del(name)
	}
	if schema := c.r.Header.Get("Content-Profile"); schema != "" { // every operation
		r.Header.Set("Content-Profile", schema)
		r.Header.Set("Accept-Profile", schema)
	}
	for name, value := range o.Headers {
		r.Header.Set(name, value)
	}

	return &call{server: c.server, w: &responseRecorder{header: http.Header{}}, r: r,
		path: "/" + strings.TrimPrefix(path, "/"), deadline: c.deadline, caller: c.caller, role: c.role,
		snapshot: c.snapshot, skipVersion: c.skipVersion, cleared: true, inBatch: true}, nil
}

// planOperation reads and plans the request of an operation, in the time zone of its batch.
func (c *call) planOperation(ctx context.Context, timezone string) error {
	if err := c.findTarget(); err != nil {
		return err
	}
	if c.route.target.Name == "" {
		return invalidPath()
	}
	if err := c.parse(); err != nil {
		return err
	}
	if c.prefer.Tx != "" || c.prefer.Timezone != "" {
		return invalidBatch("tx and timezone are preferences of the whole batch")
	}
	c.prefer.Timezone = timezone

	if err := c.readPayload(ctx); err != nil {
		return err
	}
	if err := c.plan(); err != nil {
		return err
	}

	p := &c.planned
	switch {
	case p.overQuota:
		return errOverQuota
	case c.media.explain != "":
		return newError(http.StatusNotAcceptable, "PGRST107", "a batch has no plans")
	case p.function != nil && c.r.Method == http.MethodGet && p.function.Volatility == 'v':
		return newError(http.StatusMethodNotAllowed, "25006", "a GET in a batch calls no volatile function")
	}

	return nil
}
