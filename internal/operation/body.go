package operation

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
)

const (
	maxBody          = 1 << 20  // bytes per JSON body
	maxAnonymousBody = 16 << 10 // bytes per JSON body from an anonymous caller
	maxValues        = 60_000   // JSON values parsed from a body
	bodyReadTimeout  = 30 * time.Second

	uncountedBody = 16 << 10 // body bytes that do not count against the budget
	// Memory per body byte: the text, the parsed values and the input struct.
	bodyMemoryFactor = 4
	budgetTimeout    = 2 * time.Second

	// Concurrent large-body decodings. Member names take up to 15 times their size while they are
	// decoded.
	maxDecodings = 4
)

// maxBodyBytes returns the operation's JSON body limit in bytes.
func (op Operation) maxBodyBytes() int64 {
	if op.Access.anonymous {
		return maxAnonymousBody
	}
	return cmp.Or(op.MaxBody, maxBody)
}

// withFiles reports whether files accompany the JSON body.
func (rt *route) withFiles(r *http.Request) bool {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return rt.filesIndex != nil && err == nil && media == multipartType
}

// readBody reads a JSON body, or the start of a multipart body. release returns the memory reserved
// from the body budget; it is never nil.
func (q *request) readBody(ctx context.Context) (body any, release func(), err error) {
	r := q.http
	release = noRelease
	if q.bodySchema == nil && q.op.Body.begin == nil {
		return nil, release, nil
	}
	if r.Header.Get("Content-Encoding") != "" {
		return nil, release, fault.OnField(fault.Invalid, "Content-Encoding", "unknown", "is not supported")
	}
	if q.op.Body.begin != nil {
		upload := q.input.Elem().FieldByIndex(q.uploadIndex).Addr().Interface().(*Upload)
		return nil, release, q.op.Body.begin(upload, q.w, r)
	}
	if q.withFiles(r) {
		files := q.input.Elem().FieldByIndex(q.filesIndex).Addr().Interface().(*AttachedFiles)
		return files.attach(ctx, q.route, q.w, r)
	}

	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	// curl sends this content type by default; the body is parsed as JSON.
	if err != nil || (media != "application/json" && media != "application/x-www-form-urlencoded") {
		return nil, release, fault.OnField(fault.Invalid, "Content-Type", "unknown", "must be application/json")
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, release, fault.OnField(fault.Invalid, "Content-Type", "unknown", "must be in UTF-8")
	}

	return q.readJSON(ctx, q.w, r)
}

// decodeBody validates a body against its schema and decodes it into the input. prefix is the path
// that listBody put before the client's field names.
func (q *request) decodeBody() (prefix string, err error) {
	if q.bodySchema == nil {
		return "", nil
	}

	body, prefix := q.listBody()

	r := rules{registry: q.registry}
	r.checkValue("", q.bodySchema, body)

	if len(r.faults) > 0 {
		return prefix, invalid(fault.Unprocessable, r.faults)
	}

	text, err := json.Marshal(body, numberOptions)
	if err != nil {
		return prefix, err
	}

	field := q.input.Elem().FieldByIndex(q.bodyIndex)
	if err := json.Unmarshal(text, field.Addr().Interface()); err != nil {
		return prefix, err // the schema and the Go type disagree: a programming error
	}

	object, _ := body.(map[string]any)
	id, _ := object["projectUUID"].(string)
	if id := OptionalUUID(id); id.Valid && q.project != nil && id.UUID != q.project.UUID {
		return prefix, fault.OnField(fault.Unprocessable, "projectUUID", "mismatch",
			"must be the project of the request")
	}

	return prefix, nil
}

// listBody returns the body. It wraps a single item in a list under [Operation.ListOf]; prefix is
// then the item's path.
func (q *request) listBody() (body any, prefix string) {
	item, ok := q.body.(map[string]any)
	if _, several := item[q.op.ListOf]; !ok || several || q.op.ListOf == "" {
		return q.body, ""
	}

	list := map[string]any{q.op.ListOf: []any{item}}
	if id, ok := item["projectUUID"]; ok {
		list["projectUUID"] = id
	}

	return list, q.op.ListOf + ".0."
}

// invalid returns the failure for invalid parameters or body members.
func invalid(kind fault.Kind, faults []fault.Field) error {
	return &fault.Error{Kind: kind, Detail: faults[0].Name + " " + faults[0].Message, Fields: faults}
}

// readJSON reads a JSON body and keeps only the members that the operation declares. release
// returns the reserved memory; it is never nil.
func (rt *route) readJSON(
	ctx context.Context, w http.ResponseWriter, r *http.Request,
) (v any, release func(), err error) {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(bodyReadTimeout)); err != nil &&
		!errors.Is(err, http.ErrNotSupported) {
		return nil, noRelease, err
	}

	text, release, err := rt.readText(ctx, http.MaxBytesReader(w, r.Body, rt.op.maxBodyBytes()), r.ContentLength,
		rt.op.maxBodyBytes())
	if err != nil {
		return nil, release, err
	}

	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, release, err
	}

	v, err = rt.decode(ctx, text, rt.shape)
	if err != nil {
		return nil, release, malformed(err, "body")
	}

	if _, ok := v.(map[string]any); !ok {
		return nil, release, fault.New(fault.Invalid, "the body must be a JSON object").WithCode("malformed_json")
	}

	return v, release, nil
}

// decode limits concurrent [parseJSON] calls for large texts.
func (p *Pipeline) decode(ctx context.Context, text []byte, members *shape) (any, error) {
	if len(text) > uncountedBody {
		place, err := p.decoding.Acquire(ctx, poolKey(ctx), 1)
		if err != nil {
			return nil, errTooBusy(err)
		}
		defer place.Release()
	}

	return parseJSON(text, members)
}

// malformed converts a parseJSON error to a failure.
func malformed(err error, what string) error {
	if fault.Is(err, fault.TooMany) { // no place to decode it
		return err
	}

	if errors.Is(err, errTooManyValues) {
		return fault.New(fault.TooLarge, "the %s has more than %d values", what, maxValues)
	}
	return fault.New(fault.Invalid, "the %s is not JSON", what).WithCode("malformed_json").WithCause(err)
}

func noRelease() {}

// readText reads at most limit bytes. length is the announced length, or -1. A text larger than
// uncountedBody waits for memory in the budget before it is read.
func (p *Pipeline) readText(
	ctx context.Context, body io.Reader, length, limit int64,
) (text []byte, release func(), err error) {
	tooLarge := fault.New(fault.TooLarge, "the body is larger than %d bytes", limit)
	if length > limit {
		return nil, noRelease, tooLarge
	}

	var start []byte
	if length < 0 {
		start, err = io.ReadAll(io.LimitReader(body, min(limit, uncountedBody)+1))
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, noRelease, tooLarge.WithCause(err)
		}
		if err != nil || len(start) <= uncountedBody {
			return start, noRelease, incompleteJSON(err)
		}

		length = limit
	}

	release = noRelease
	if length > uncountedBody {
		if release, err = p.reserveMemory(ctx, length*bodyMemoryFactor); err != nil {
			return nil, noRelease, err
		}
	}

	buffer := bytes.NewBuffer(make([]byte, 0, length+bytes.MinRead))
	buffer.Write(start)

	_, err = buffer.ReadFrom(body)
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok || int64(buffer.Len()) > limit {
		return nil, release, tooLarge.WithCause(err)
	}

	return buffer.Bytes(), release, incompleteJSON(err)
}

func incompleteJSON(err error) error {
	if err == nil {
		return nil
	}
	return fault.New(fault.Invalid, "the body is incomplete").WithCode("incomplete_body").WithCause(err)
}

// reserveMemory reserves n bytes in the body budget for the caller: for their user, or for their
// network if anonymous.
func (p *Pipeline) reserveMemory(ctx context.Context, n int64) (release func(), err error) {
	waitCtx, cancel := context.WithTimeout(ctx, budgetTimeout)
	defer cancel()

	lease, err := p.config.Bodies.Acquire(waitCtx, poolKey(ctx), n)
	if err != nil {
		return noRelease, errTooBusy(err)
	}

	return lease.Release, nil
}

func errTooBusy(cause error) error {
	f := fault.New(fault.TooMany, "too many large requests are in flight; try again later").
		WithCode("too_busy").WithCause(cause)
	f.RetryAfter = budgetTimeout

	return f
}

// poolKey returns the caller's key in pools: their user, or their network if anonymous.
func poolKey(ctx context.Context) fair.Key {
	if user := Caller(ctx).User; user != uuid.Nil {
		return fair.Key{Account: user.String()}
	}

	return httpx.Stranger(ctx)
}

// newDecodings returns the pool that limits concurrent large-body decodings.
func newDecodings() *fair.Pool {
	return fair.New(fair.Config{Name: "large_decodings", Capacity: maxDecodings, Waiting: 1024})
}
