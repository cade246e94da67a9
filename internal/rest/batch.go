package rest

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/rest/session"
)

const (
	maxOperations    = 100      // operations of a batch
	maxOperationHead = 64 << 10 // bytes of an operation's path, and of its headers
)

// batch is a list of operations in one transaction. Each one is a request of its own to the planner
// and the session: it is planned when those before it have their results.
type batch struct {
	operations []operation
	started    []*call
	answers    []*responseRecorder // answers of the operations that have run
	references references
	replans    bool // the operation under way may fail because the catalog is outdated
	isDone     bool // all operations have run
	uncharged  int  // bytes of answers that the batch's lease does not have yet
}

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

	if len(text) > uncountedBody { // the operations have copies
		if err := c.payload.lease.take(ctx, int64(len(text))); err != nil {
			return err
		}
	}

	if c.batch, err = parseBatch(text); err != nil {
		return err
	}
	defer c.batch.restart(0)

	return c.run(ctx)
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
	c.setPosition(ctx)

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
	c.batch.uncharged += 2 * len(answer.body) // once more in the batch's answer
	if c.batch.uncharged > uncountedBody {
		if err := c.payload.lease.take(c.r.Context(), int64(c.batch.uncharged)); err != nil {
			return err
		}
		c.batch.uncharged = 0
	}

	c.batch.answers = append(c.batch.answers, answer)
	return nil
}

// begin plans the n-th operation.
func (c *call) begin(n int) (*call, error) {
	one, err := c.operationCall(&c.batch.operations[n])
	if err == nil {
		c.batch.started = append(c.batch.started, one)
		err = one.planOperation(c.r.Context(), c.prefer.Timezone)
	}
	if err != nil {
		return nil, &OperationError{n, err}
	}

	c.snapshot = one.snapshot
	return one, nil
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
