package rest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"net/http"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/rest/session"
)

const (
	idempotencyHeader = "Idempotency-Key"
	maxIdempotencyKey = 255      // bytes
	maxKeptBody       = 64 << 10 // bytes of an answer that is kept
)

// idempotencyKey is a caller's Idempotency-Key for a write.
//
// The write's transaction takes a lock on the key first, and keeps its answer last. So the answer
// is there if and only if the write is, and two requests at once never both write. A key's lock is
// not waited for: those who wait would occupy the project's connections.
type idempotencyKey struct {
	digest  []byte
	content hash.Hash // hash of the request
}

// fingerprintHeaders are the request headers that select what a write does, or its answer.
var fingerprintHeaders = []string{"Accept", "Content-Type", "Prefer"}

// readKey returns the request's key, or nil. Reads have none.
func (c *call) readKey() (*idempotencyKey, error) {
	values := c.r.Header[idempotencyHeader]
	if values == nil || !c.server.Features.Transactions || c.r.Method == http.MethodGet ||
		c.r.Method == http.MethodHead {
		return nil, nil
	}

	if len(values) > 1 || values[0] == "" || len(values[0]) > maxIdempotencyKey {
		return nil, newError(http.StatusBadRequest, "invalid_idempotency_key",
			"Idempotency-Key must have 1 to "+strconv.Itoa(maxIdempotencyKey)+" bytes")
	}

	caller := sha256.New()
	hashParts(caller, c.caller.Role, c.caller.Subject, values[0])

	k := &idempotencyKey{digest: caller.Sum(nil), content: sha256.New()}
	hashParts(k.content, c.r.Method, c.route.target.Schema, c.path, c.rawQuery)
	for _, name := range fingerprintHeaders {
		hashParts(k.content, append([]string{name}, c.r.Header[name]...)...)
	}

	return k, nil
}

// hashParts hashes texts, with their lengths and number.
func hashParts(h hash.Hash, parts ...string) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(parts)))
	h.Write(size[:])

	for _, part := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
}

// keptAnswer is the answer to an earlier request.
type keptAnswer struct {
	Fingerprint []byte
	Status      int16
	Headers     map[string][]string
	Body        []byte // nil if it was too long to keep
}

// replay answers with the answer to an earlier request with the key. It reports false if there was
// none.
func (c *call) replay(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, c.server.sessions.AcquireTimeout)
	defer cancel()

	answer, err := pg.One[keptAnswer](ctx, c.role.Pool,
		`select fingerprint, status, headers, body from socle.find_answer(@key)`,
		pgx.StrictNamedArgs{"key": c.key.digest})
	switch {
	case fault.Is(err, fault.NotFound):
		return false, nil
	case errors.Is(err, context.DeadlineExceeded):
		return false, session.ErrNoConnection
	case err != nil:
		return false, err
	case string(answer.Fingerprint) != string(c.key.content.Sum(nil)):
		return false, newError(http.StatusUnprocessableEntity, "idempotency_key_reused",
			"the Idempotency-Key was used for another request")
	case answer.Body == nil:
		e := newError(http.StatusConflict, "already_done", "the request with this Idempotency-Key has succeeded")
		e.Details = "Its answer was too long to keep."

		return false, e
	}

	h := c.w.Header()
	for name, values := range answer.Headers {
		h[name] = values
	}
	h.Set("Idempotency-Replayed", "true")
	c.setPosition(ctx)

	if c.writeHead(int(answer.Status), len(answer.Body)) {
		c.writeBody(answer.Body)
	}

	return true, nil
}

// claim is the guard of a transaction that may write under the key.
func (k *idempotencyKey) claim() session.Statement {
	return session.Statement{SQL: "select socle.claim_answer($1)", Args: []any{byteaText(k.digest)}}
}

// keepAnswer is the last step of a single write: it keeps the answer.
func (c *call) keepAnswer(n int, res *session.Result) (*session.Step, error) {
	if n > 0 {
		return nil, nil
	}

	answer, err := c.record(res, maxKeptBody)
	if err != nil {
		return nil, err
	}

	return c.keepStep(answer), nil
}

// record returns the response to a result, with a body of at most so many bytes.
func (c *call) record(res *session.Result, maxBody int) (*responseRecorder, error) {
	to := c.w
	defer func() { c.w = to }()

	answer := &responseRecorder{header: http.Header{}, body: []byte{}, max: maxBody}
	c.w = answer

	return answer, c.respond(res)
}

// keepStep returns the step that keeps an answer, as the login.
func (c *call) keepStep(answer *responseRecorder) *session.Step {
	header := answer.header.Clone()
	header.Del("Content-Length")
	header.Del("Server-Timing")

	text, err := json.Marshal(header)
	if err != nil {
		panic("rest: " + err.Error()) // names and texts
	}

	var body any
	if !answer.isCut {
		body = byteaText(answer.body)
	}

	return &session.Step{
		Settings: []actor.Setting{{Name: "role", Value: []byte("none")}},
		Statement: session.Statement{NoResult: true, SQL: "select socle.keep_answer($1, $2, $3, $4, $5)",
			Args: []any{byteaText(c.key.digest), byteaText(c.key.content.Sum(nil)), strconv.Itoa(answer.status),
				text, body}},
		Restore: []actor.Setting{{Name: "role", Value: []byte(c.caller.Role)}}, // for deferred triggers
	}
}

// byteaText returns bytes in PostgreSQL's text format.
func byteaText(b []byte) string { return `\x` + hex.EncodeToString(b) }

// isGuard reports whether the claim of a key failed.
func isGuard(err error) bool {
	_, ok := errors.AsType[*session.GuardError](err)
	return ok
}

// isInProgress reports whether another transaction has claimed the key.
func isInProgress(err error) bool { return pg.State(err) == "55P03" } // lock_not_available

var errInProgress = newError(http.StatusConflict, "in_progress", "a request with this Idempotency-Key is in progress")
