package operation

import (
	"encoding/hex"
	"log/slog"
	"net/http"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/pg"
)

// envelope is the body in every JSON response of the platform API.
type envelope struct {
	Content  any      `json:"content"`
	Errors   []string `json:"errors"`
	Metadata any      `json:"metadata"`
	Success  bool     `json:"success"`
}

// Nothing is the content if an operation has no result: null.
type Nothing struct{}

// MarshalJSON returns null.
func (Nothing) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// Schema returns the schema for null.
func (Nothing) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: "null"} }

// failure is a failure response's metadata.
type failure struct {
	Code      string        `json:"code" doc:"Stable error code in snake_case."`
	Detail    string        `json:"detail" doc:"One sentence for a person."`
	Fields    []fault.Field `json:"fields" nullable:"false" doc:"The invalid fields."`
	RequestID string        `json:"requestId"`
}

// messages maps failure statuses to their fixed messages.
var messages = map[int]string{
	400: "Invalid input parameter",
	401: "Unauthorized access",
	403: "Forbidden",
	404: "Not found",
	405: "Method not allowed",
	408: "Request timeout",
	409: "Conflict",
	412: "Precondition failed",
	413: "Payload too large",
	416: "Range not satisfiable",
	422: "Validation failed",
	429: "Too many requests",
	460: "Checksum mismatch",
	500: "Internal server error",
	503: "Service unavailable",
}

// statuses maps failure kinds to their possible statuses, in order of preference. The response has
// the first one that the operation declares, or 500.
var statuses = map[fault.Kind][]int{
	fault.Internal:        {500},
	fault.Invalid:         {400},
	fault.Unprocessable:   {422, 400},
	fault.Unauthenticated: {401},
	fault.Forbidden:       {403, 401},
	fault.NotFound:        {404, 400},
	fault.Conflict:        {409, 422, 400},
	fault.Precondition:    {412, 409, 422, 400},
	fault.TooLarge:        {413, 400},
	fault.Mismatch:        {460, 400},
	fault.TooSlow:         {408, 400},
	fault.TooMany:         {429},
	fault.Unavailable:     {503, 500},
}

// statusOf returns the status for a failure if the operation declares these statuses.
func statusOf(kind fault.Kind, failures []int) int {
	for _, status := range statuses[kind] {
		for _, d := range failures {
			if d == status {
				return status
			}
		}
	}

	return http.StatusInternalServerError
}

// encoding writes times in UTC with exactly six fractional digits, and nil slices as []. It writes
// UUIDs without allocating their text.
var encoding = json.WithMarshalers(json.JoinMarshalers(
	json.MarshalToFunc(func(e *jsontext.Encoder, t time.Time) error {
		return e.WriteValue(t.UTC().AppendFormat(e.AvailableBuffer(), `"2006-01-02T15:04:05.000000Z"`))
	}),
	json.MarshalToFunc(func(e *jsontext.Encoder, id uuid.UUID) error {
		return e.WriteValue(appendQuoted(e.AvailableBuffer(), id))
	})))

// appendQuoted appends a UUID as a JSON string.
func appendQuoted(b []byte, id uuid.UUID) []byte {
	quote := byte('"')
	for _, group := range [][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		b = hex.AppendEncode(append(b, quote), group)
		quote = '-'
	}

	return append(b, '"')
}

// writeEnvelope responds with an envelope.
func writeEnvelope(w http.ResponseWriter, status int, v any) {
	writeJSON(w, status, encode(v))
}

// encode returns v as JSON.
func encode(v any) []byte {
	body, err := json.Marshal(v, encoding, json.Deterministic(true))
	if err != nil {
		panic("operation: answer: " + err.Error()) // a type without a JSON representation: a programming error
	}

	return append(body, '\n')
}

// writeJSON writes a JSON response.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)

	if _, err := w.Write(body); err != nil {
		slog.Debug("write response", "error", err) // the client disconnected
	}
}

// WriteFailure responds with a failure, with a status that the operation declares.
func WriteFailure(w http.ResponseWriter, r *http.Request, err error, failures []int) {
	e := fault.Of(err)
	status, retryAfter := statusOf(e.Kind, failures), e.RetryAfter
	record := httpx.From(r.Context())
	record.Err = err

	switch {
	case e.Code == pg.OutcomeUnknown: // the change may have been made: a client must not just repeat it
		status, retryAfter = http.StatusInternalServerError, 0
	case e.Kind == fault.Unavailable:
		retryAfter = max(retryAfter, time.Second)
	}

	if retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((retryAfter+time.Second-1)/time.Second)))
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}

	f := failureOf(e, record.ID)
	record.ErrorCode, record.ErrorText = f.Code, f.Detail
	if e.Kind == fault.Internal {
		f.Detail, f.Fields = "An internal error occurred; the server's log has the details under the request ID.", nil
	}

	var metadata any = f
	if len(e.Extra) > 0 {
		object := map[string]any{"code": f.Code, "detail": f.Detail, "fields": f.Fields, "requestId": f.RequestID}
		for name, v := range e.Extra {
			object[name] = v
		}

		metadata = object
	}

	writeEnvelope(w, status, envelope{Content: "null", Errors: []string{messages[status]}, Metadata: metadata})
}

func failureOf(e *fault.Error, request string) failure {
	return failure{Code: e.CodeWord(), Detail: sentence(e.Detail), Fields: e.Fields, RequestID: request}
}

// isRead reports whether a method is safe: it only reads.
func isRead(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// sentence converts a clause to a sentence.
func sentence(clause string) string {
	first, size := utf8.DecodeRuneInString(clause)
	if size == 0 {
		return ""
	}

	return string(unicode.ToUpper(first)) + clause[size:] + "."
}

// Respond responds with the envelope of a success to a request that no operation handles.
func Respond(w http.ResponseWriter, status int, content, metadata any) {
	writeEnvelope(w, status, envelope{Content: content, Errors: []string{}, Metadata: metadata, Success: true})
}

// RespondFailure responds with an envelope to a request that no operation handles.
func RespondFailure(w http.ResponseWriter, r *http.Request, status int, code, detail string) {
	httpx.From(r.Context()).Err = fault.New(fault.NotFound, "%s", detail)

	writeEnvelope(w, status, envelope{Content: "null", Errors: []string{messages[status]},
		Metadata: failure{
			Code:      code,
			Detail:    sentence(detail),
			Fields:    []fault.Field{},
			RequestID: httpx.From(r.Context()).ID,
		}})
}
