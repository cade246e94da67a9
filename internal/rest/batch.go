package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/rest/query"
	"github.com/socle-dev/socle/internal/rest/session"
)

// maxOperations is the maximum number of operations in a batch.
const maxOperations = 100

// batch is a list of operations in one transaction. Each one is a request of its own to the planner
// and the session: it is planned when those before it have their results.
type batch struct {
	operations []operation
	started    []*call
	answers    []*responseRecorder // answers of the operations that have run
	references references
	replans    bool // the operation under way may fail because the catalog is outdated
	isDone     bool // all operations have run
}

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

// isBatch reports whether the request is a batch: JSON for the root.
func (c *call) isBatch() bool {
	if !c.server.Features.Transactions || c.r.Method != http.MethodPost || (c.path != "/" && c.path != "") {
		return false
	}

	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	return err == nil && kind == "application/json"
}

// serveBatch reads the operations, runs them and answers.
func (c *call) serveBatch(ctx context.Context) (err error) {
	defer func() { c.payload.lease.release() }()
	if err := c.parse(); err != nil {
		return err
	}
	if c.rawQuery != "" {
		return invalidBatch("a batch has no query string")
	}
	if err := c.prefer.StrictError(); err != nil {
		return err
	}
	if c.key, err = c.readKey(); err != nil {
		return err
	}

	c.payload.lease = c.server.bodyLease()
	text, err := readAll(c.w, c.r, c.server.Limits.MaxBody, &c.payload.lease)
	if err != nil {
		return err
	}
	if c.key != nil {
		c.key.content.Write(text)
	}

	if c.batch, err = parseBatch(text); err != nil {
		return err
	}
	defer c.batch.restart(0)

	return c.run(ctx)
}

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

	for name, value := range o.Headers {
		if !slices.Contains(operationHeaders, http.CanonicalHeaderKey(name)) {
			return invalidBatch("an operation has no header " + name + ", only " + strings.Join(operationHeaders, ", "))
		}
		if strings.ContainsFunc(value, func(c rune) bool { return (c < ' ' && c != '\t') || c == 0x7f }) {
			return invalidBatch("the header " + name + " has control characters")
		}
	}

	return nil
}

// restart forgets the operations from the n-th one on.
func (b *batch) restart(n int) {
	for _, started := range b.started[n:] {
		started.payload.lease.release()
	}

	b.started, b.answers, b.isDone = b.started[:n], b.answers[:n], false
	b.references.forget()
}

// attemptBatch runs the operations with the current snapshot, see [call.attempt].
func (c *call) attemptBatch(ctx context.Context) (planned bool, err error) {
	b := c.batch
	b.restart(0)
	if c.key != nil {
		if replayed, err := c.replay(ctx); replayed || err != nil {
			return true, err
		}
	}
	if err := c.clearWrite(ctx); err != nil {
		return true, err
	}

	first, err := c.begin(0)
	if err != nil {
		return false, err
	}

	settings, isolation := first.settings(nil)
	c.prepare(isolation)
	c.execution.Step, c.execution.Next = first.step(settings), c.nextOperation
	if c.key != nil {
		c.execution.Guard = c.key.claim()
	}

	res, err := c.server.sessions.Execute(ctx, &c.execution)
	if err != nil {
		return !b.replans, b.atOperation(err)
	}
	defer res.Release()

	if c.server.Hooks.Written != nil {
		c.server.Hooks.Written()
	}

	answer := b.answer()
	for name, values := range answer.header {
		c.w.Header()[name] = values
	}
	if c.writeHead(answer.status, len(answer.body)) {
		c.writeBody(answer.body)
	}

	return true, nil
}

// atOperation adds the operation under way to an error about its statement.
func (b *batch) atOperation(err error) error {
	_, isPg := errors.AsType[*pgconn.PgError](err)
	_, isKnown := errors.AsType[*OperationError](err)
	isStatement := (isPg || isQueryError(err)) && !isGuard(err) && !session.IsStaleCatalog(err) &&
		!session.IsOutcomeUnknown(err)
	if !isStatement || isKnown || b.isDone {
		return err
	}

	return &OperationError{len(b.answers), err}
}

// nextOperation keeps the answer of the n-th operation, and starts the one after it. With an
// Idempotency-Key, the batch's answer is kept after the last one.
func (c *call) nextOperation(n int, res *session.Result) (*session.Step, error) {
	b := c.batch
	if n >= len(b.operations) {
		return nil, nil
	}

	b.restartAfter(n)
	answer, err := b.started[n].record(res, int(c.server.Limits.MaxBody))
	if err != nil {
		return nil, &OperationError{n, err}
	}
	if err := c.addAnswer(answer); err != nil {
		return nil, &OperationError{n, err}
	}

	if n+1 < len(b.operations) {
		next, err := c.begin(n + 1)
		if err != nil {
			b.replans = true
			return nil, err
		}

		settings, _ := next.settings(nil)
		step := next.step(settings)

		return &step, nil
	}

	b.isDone = true
	if c.key == nil {
		return nil, nil
	}

	answer = b.answer()
	answer.isCut = len(answer.body) > maxKeptBody

	return c.keepStep(answer), nil
}

// restartAfter forgets the operations after the n-th one, and the answers from it on: the session
// may run the steps again.
func (b *batch) restartAfter(n int) {
	for _, started := range b.started[n+1:] {
		started.payload.lease.release()
	}

	b.started, b.answers, b.replans, b.isDone = b.started[:n+1], b.answers[:n], false, false
	if n == 0 {
		b.references.forget()
	}
}

// addAnswer adds an operation's answer, whose memory is the batch's.
func (c *call) addAnswer(answer *responseRecorder) error {
	size := len(answer.body)
	for _, other := range c.batch.answers {
		size += len(other.body)
	}

	if answer.isCut || int64(size) > c.server.Limits.MaxBody {
		return newError(http.StatusRequestEntityTooLarge, "invalid_batch", "the answers of the batch are too long")
	}
	if len(answer.body) > uncountedBody {
		if err := c.payload.lease.take(c.r.Context(), int64(len(answer.body))); err != nil {
			return err
		}
	}

	c.batch.answers = append(c.batch.answers, answer)
	return nil
}

// begin plans the n-th operation.
func (c *call) begin(n int) (*call, error) {
	one, err := c.operationCall(&c.batch.operations[n])
	if err == nil {
		c.batch.started = append(c.batch.started, one)
		err = one.planOperation(c.r.Context())
	}
	if err != nil {
		return nil, &OperationError{n, err}
	}

	c.snapshot = one.snapshot
	return one, nil
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

	path, rawQuery, _ := strings.Cut(target, "?")
	r := c.r.Clone(c.r.Context())
	r.Method, r.URL = o.Method, &url.URL{Path: path, RawQuery: rawQuery}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	for _, name := range append(operationHeaders, idempotencyHeader, "Content-Length", "Content-Encoding") {
		r.Header.Del(name)
	}
	for name, value := range o.Headers {
		r.Header.Set(name, value)
	}

	return &call{server: c.server, w: &responseRecorder{header: http.Header{}}, r: r,
		path: "/" + strings.TrimPrefix(path, "/"), deadline: c.deadline, caller: c.caller, role: c.role,
		snapshot: c.snapshot, skipVersion: c.skipVersion, cleared: true, inBatch: true}, nil
}

// planOperation reads and plans the request of an operation.
func (c *call) planOperation(ctx context.Context) error {
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

// answer returns the batch's response: a list of the operations' responses.
func (b *batch) answer() *responseRecorder {
	out := []byte{'['}
	for i, answer := range b.answers {
		if i > 0 {
			out = append(out, ',')
		}

		out = append(out, '{')
		if id := b.operations[i].ID; id != "" {
			out = append(appendJSON(append(out, `"id":`...), id), ',')
		}

		out = append(out, `"status":`...)
		out = strconv.AppendInt(out, int64(answer.status), 10)
		out = appendAnswerHeaders(append(out, `,"headers":`...), answer.header)
		out = append(out, `,"body":`...)

		switch {
		case len(answer.body) == 0:
			out = append(out, "null"...)
		case answer.isJSON():
			out = append(out, answer.body...)
		default:
			out = appendJSON(out, string(answer.body))
		}

		out = append(out, '}')
	}

	return &responseRecorder{status: http.StatusOK, body: append(out, ']'),
		header: http.Header{"Content-Type": {"application/json; charset=utf-8"}}}
}

// isJSON reports whether the response has a JSON body.
func (r *responseRecorder) isJSON() bool {
	kind, _, err := mime.ParseMediaType(r.header.Get("Content-Type"))
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json")) && json.Valid(r.body)
}

// appendAnswerHeaders appends the headers of an operation's answer as a JSON object.
func appendAnswerHeaders(b []byte, h http.Header) []byte {
	names := make([]string, 0, len(h))
	for name := range h {
		if name != "Content-Length" && name != "Vary" && name != "Server-Timing" {
			names = append(names, name)
		}
	}
	slices.Sort(names)

	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendJSON(b, name), ':')
		b = appendJSON(b, strings.Join(h[name], ", "))
	}

	return append(b, '}')
}
