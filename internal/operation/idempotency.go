package operation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/token"
)

const (
	idempotencyHeader = "Idempotency-Key"
	maxKeyLength      = 255 // bytes
)

// rendered is a complete response.
type rendered struct {
	Status int
	Header http.Header
	Body   []byte
	Digest *digest `json:"Weight,omitzero"` // the request's files; nil without files
}

// ServeHTTP writes the response.
func (a rendered) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	writeJSON(w, a.Status, a.Body)
}

// repeatable reports whether the operation creates an entity, so that an Idempotency-Key applies.
func (rt *route) repeatable() bool { return rt.status == http.StatusCreated && rt.hasEnvelope() }

// requestKey returns the hash that identifies an Idempotency-Key. It covers the operation, the user
// and the project, so each of them has its own keys.
func (rt *route) requestKey(ctx context.Context, key string) []byte {
	c := Caller(ctx)
	sum := sha256.Sum256([]byte(strings.Join([]string{rt.op.ID, c.User.String(), c.Project.UUID.String(), key}, "\n")))

	return sum[:]
}

// replay runs a request with an Idempotency-Key at most once. A repeated request with the same body
// gets the stored response, which is sealed under the client's key, since it may contain a secret.
// A failed request may be repeated. It fails with Conflict, code already_done, if its change was
// committed and only the response was lost.
func (q *request) replay(ctx context.Context, next step) (any, error) {
	keys := q.http.Header.Values(idempotencyHeader)
	if len(keys) == 0 || !q.repeatable() {
		return next(ctx)
	}
	if len(keys) > 1 || keys[0] == "" || len(keys[0]) > maxKeyLength {
		return nil, fault.OnField(fault.Invalid, idempotencyHeader, "invalid_format",
			"must be one key of 1 to %d characters", maxKeyLength)
	}

	key := q.requestKey(ctx, keys[0])
	sealingKey := token.Derive(append(slices.Clone(q.config.AnswerKey), keys[0]...), "answer")

	fingerprint, err := fingerprintOf(q.http, q.body)
	if err != nil {
		return nil, err
	}

	_, busy := q.inFlight.LoadOrStore(string(key), nil)
	if !busy {
		defer q.inFlight.Delete(string(key))
	}

	sealedAnswer, err := q.config.Store.ClaimRequest(ctx, platform.Claim{
		Key:         key,
		Fingerprint: fingerprint,
		Holder:      q.config.ClaimHolder(),
		InFlight:    busy,
	})
	if err != nil {
		return nil, err
	}

	files := q.filesToCompare()
	if sealedAnswer != nil {
		answer, err := openStored(sealedAnswer, sealingKey)
		if err == nil && files != nil {
			err = checkSameFiles(files, answer.Digest)
		}
		if err != nil {
			return nil, err
		}

		return answer, nil
	}

	var running *bodyDigest
	if files != nil {
		running = files.startDigest()
	}

	result, err := next(ctx)

	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), DefaultTimeout)
	defer cancel()

	if err != nil {
		err = q.checkDone(cleanup, key, err)

		if e := q.config.Store.ReleaseRequest(cleanup, key); e != nil {
			// the next request with the key takes the claim over
			q.config.Log.Error("release Idempotency-Key", "error", e)
		}

		return nil, err
	}

	answer := q.render(result)
	if files != nil {
		answer.Digest = running.digest()
	}

	return answer, q.keepAnswer(cleanup, key, sealingKey, answer)
}

// keepAnswer seals a request's answer and stores it under its key. The change is committed, so the
// client gets the answer even if the store fails.
func (q *request) keepAnswer(ctx context.Context, key, sealingKey []byte, answer rendered) error {
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}

	ciphertext, err := token.Seal(sealingKey, text)
	if err != nil {
		return err
	}

	if err := q.config.Store.KeepAnswer(ctx, key, answer.Status, ciphertext); err != nil {
		q.config.Log.Error("store response for Idempotency-Key", "error", err)
	}

	return nil
}

// filesToCompare returns the request's files that a repeated request must match, or nil.
func (q *request) filesToCompare() digestedInput {
	if !q.op.Body.hasDigest {
		return nil
	}

	input := q.input.Elem()
	if q.filesIndex != nil {
		return input.FieldByIndex(q.filesIndex).Addr().Interface().(*AttachedFiles)
	}

	return input.FieldByIndex(q.uploadIndex).Addr().Interface().(*Upload)
}

// checkDone returns a request's failure, or already_done if an earlier request with the key
// committed the change. A unique name or a quota fails before the audit entry with the key, and a
// lost connection leaves the outcome open.
func (q *request) checkDone(ctx context.Context, key []byte, failure error) error {
	auditKey := hex.EncodeToString(key)
	err := q.config.Store.CheckRequestDone(ctx, auditKey)
	if err == nil && q.project != nil && Caller(ctx).Status == platform.Active {
		var done bool
		if done, err = audit.HasKey(ctx, q.project.Trusted(), auditKey); done {
			err = audit.AlreadyDone(nil)
		}
	}

	switch {
	case fault.Is(err, fault.Conflict):
		return fault.Of(err).WithCause(failure)
	case err != nil:
		q.config.Log.Error("look up Idempotency-Key in audit log", "error", err)
	}

	return failure
}

// openStored decrypts a stored response.
func openStored(ciphertext, sealingKey []byte) (rendered, error) {
	var answer rendered
	text, err := token.Open(sealingKey, ciphertext)
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err != nil {
		return answer, err
	}

	answer.Header.Set("Idempotency-Replayed", "true")
	return answer, nil
}

// fingerprintOf returns a hash of the URL and the body, which distinguishes requests with the same
// key. For an upload, whose body is read only once, it covers the length; [digestedInput] compares
// the contents.
func fingerprintOf(r *http.Request, body any) ([]byte, error) {
	h := sha256.New()
	h.Write([]byte(r.URL.RequestURI() + "\n"))

	if body == nil {
		h.Write([]byte(r.Header.Get("Content-Length")))
		return h.Sum(nil), nil
	}

	text, err := json.Marshal(body, numberOptions, json.Deterministic(true))
	h.Write(text)

	return h.Sum(nil), err
}
