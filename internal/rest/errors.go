package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/jwt"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/rest/plan"
	"github.com/socle-dev/socle/internal/rest/query"
	"github.com/socle-dev/socle/internal/rest/session"
)

// failure is an error response.
type failure struct {
	query.Error
	header     http.Header
	retryAfter string // seconds, or ""
}

// errorBody is the body of an error response, in the contract's order.
type errorBody struct {
	Code    string `json:"code"`
	Details any    `json:"details"`
	Hint    any    `json:"hint"`
	Message string `json:"message"`
	// Operation is the index of the operation that failed in a batch; nil for other requests.
	Operation *int `json:"operation,omitempty"`
}

// terseErrorBody is the body with Config.TerseErrors.
type terseErrorBody struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func newError(status int, code, message string) *query.Error {
	return &query.Error{Status: status, Code: code, Message: message}
}

// errOverQuota refuses a statement that would grow a database over its quota, with PostgreSQL's
// code for a full disk.
var errOverQuota = &query.Error{Status: http.StatusServiceUnavailable,
	Code: "53100", Message: "the database has reached its quota",
	Hint: "Rows can be read and deleted. To make room, delete rows and compact their table, delete a table, or have the quota raised."}

// writeError writes an error response.
func (s *Server) writeError(w http.ResponseWriter, r *http.Request, role string, err error) {
	httpx.From(r.Context()).Err = err

	if r.Context().Err() != nil {
		w.WriteHeader(httpx.StatusClientClosedRequest) // the client is gone
		return
	}

	f := s.failure(role, err)
	if s.Hooks.Unavailable != nil && role != "" && isUnreachable(err) {
		if unavailable := s.Hooks.Unavailable(r.Context()); unavailable != nil {
			f = s.failure(role, unavailable)
		}
	}

	request := httpx.From(r.Context())
	request.ErrorCode, request.ErrorText = f.Code, f.Message

	h := w.Header()
	for name, values := range f.header {
		if s.allowsHeader(name) {
			h[name] = values
		}
	}

	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Proxy-Status", "PostgREST; error="+proxyToken(f.Code))

	if f.retryAfter != "" {
		h.Set("Retry-After", f.retryAfter)
	}
	if f.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", challenge(&f.Error))
	}

	var out any = errorBody{f.Code, f.Details, f.Hint, f.Message, operationOf(err)}
	if s.Features.TerseErrors {
		out = terseErrorBody{f.Code, f.Message}
	}

	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // messages quote requests, such as data->key
	if err := e.Encode(out); err != nil {
		panic("rest: " + err.Error()) // details are strings and maps of strings
	}

	text.Truncate(text.Len() - 1) // the newline
	h.Set("Content-Length", strconv.Itoa(text.Len()))
	w.WriteHeader(f.Status)
	_, _ = text.WriteTo(w)
}

// operationOf returns the index of the operation that failed, or nil.
func operationOf(err error) *int {
	if e, ok := errors.AsType[*OperationError](err); ok {
		return &e.Operation
	}
	return nil
}

// isUnreachable reports whether a request failed because the database was unavailable or
// disconnected. Nothing was committed.
func isUnreachable(err error) bool {
	if session.IsOutcomeUnknown(err) {
		return false
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		// admin_shutdown: commits are reported before
		return (e.Code == "57P01" && !pg.EndedByLimit(e)) || e.Code == "53300"
	}

	_, noCatalog := errors.AsType[*catalogError](err)
	_, noConnection := errors.AsType[*pgconn.ConnectError](err)

	return noCatalog || noConnection || errors.Is(err, session.ErrNoConnection) || pg.IsDisconnect(err) ||
		fault.Is(err, fault.Unavailable)
}

// proxyToken returns the characters of a code that are valid in the header. Only codes raised by
// functions have others.
func proxyToken(code string) string {
	return strings.Map(func(c rune) rune {
		if (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '-' {
			return c
		}
		return -1
	}, code)
}

// challenge returns the WWW-Authenticate header.
func challenge(e *query.Error) string {
	if e.Code == "PGRST301" || e.Code == "PGRST303" {
		return `Bearer error="invalid_token", error_description="` + strings.ReplaceAll(e.Message, `"`, `'`) + `"`
	}
	return "Bearer"
}

// failure maps err to the response for a role. Unknown errors become an internal error without
// details.
func (s *Server) failure(role string, err error) failure {
	if e, ok := errors.AsType[*query.Error](err); ok {
		f := failure{Error: *e}
		if e.Status == http.StatusServiceUnavailable || e == errInProgress {
			f.retryAfter = "1"
		}

		return f
	}

	if session.IsOutcomeUnknown(err) {
		return failure{Error: query.Error{Status: http.StatusInternalServerError, Code: pg.OutcomeUnknown,
			Message: "the connection to the database ended before it confirmed the change",
			Hint:    "Check whether the change was made before repeating the request."}}
	}

	// The text of an outdated catalog is internal.
	if _, ok := errors.AsType[*catalogError](err); ok || session.IsStaleCatalog(err) {
		return unavailable("PGRST002", "Could not query the database for the schema cache. Retrying.")
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return unavailable("PGRST000", "Database connection error.")
	}

	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		if f, ok := errors.AsType[*fault.Error](pg.Fault(err)); ok && pg.EndedByLimit(e) {
			return faultFailure(f)
		}
		return s.pgFailure(role, e)
	}

	switch {
	case errors.Is(err, session.ErrNoConnection):
		return failure{
			Error: *newError(http.StatusGatewayTimeout, "PGRST003",
				"Timed out acquiring connection from connection pool."),
		}
	case errors.Is(err, session.ErrNoBudget):
		return unavailable("53200", "too many answers wait for their clients")
	case errors.Is(err, session.ErrNUL):
		return failure{Error: *newError(http.StatusBadRequest, "22021", "a name can't hold a NUL")}
	case errors.Is(err, context.DeadlineExceeded):
		return failure{
			Error: *newError(http.StatusInternalServerError, "57014", "canceling statement due to statement timeout"),
		}
	case fault.Is(err, fault.Unavailable), pg.IsDisconnect(err):
		return unavailable("PGRST001", "Database client error. Retrying the connection.")
	}

	if e, ok := errors.AsType[*pgproto3.ExceededMaxBodyLenErr](err); ok {
		return failure{Error: query.Error{Status: http.StatusInternalServerError,
			Code: "54000", Message: "the answer is too large",
			Details: maxResponseDetail(e.MaxExpectedBodyLen), Hint: fewerRowsHint}}
	}
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind != fault.Internal {
		return faultFailure(f)
	}

	return failure{Error: *newError(http.StatusInternalServerError, "PGRSTX00", "Internal error")}
}

func maxResponseDetail(bytes int) string {
	return "An answer has at most " + strconv.Itoa(bytes) + " bytes."
}

const fewerRowsHint = "Ask for fewer rows with limit, or for fewer columns with select."

// faultFailure maps a domain error, such as one of the injected functions.
func faultFailure(f *fault.Error) failure {
	if f.Kind == fault.Unauthenticated {
		return refusedFailure(f)
	}

	status := map[fault.Kind]int{
		fault.Invalid: 400, fault.Unprocessable: 422, fault.Forbidden: 403, fault.NotFound: 404, fault.Conflict: 409,
		fault.TooLarge: 413, fault.TooMany: 429,
	}[f.Kind]
	out := failure{Error: *newError(status, f.CodeWord(), f.Detail)}
	if f.RetryAfter > 0 {
		out.retryAfter = strconv.Itoa(int(f.RetryAfter.Seconds()) + 1)
	}

	return out
}

// refusedFailure maps refused credentials. Claims have a code of their own.
func refusedFailure(f *fault.Error) failure {
	code := "PGRST301"
	if f.Code == jwt.InvalidClaims {
		code = "PGRST303"
	}

	out := failure{Error: *newError(http.StatusUnauthorized, code, f.Detail)}
	out.Details = f.Extra["details"]

	return out
}

// unavailable reports that the database does not respond. It omits the cause, which may name hosts.
func unavailable(code, message string) failure {
	return failure{Error: *newError(http.StatusServiceUnavailable, code, message), retryAfter: "1"}
}

// pgFailure maps an error of PostgreSQL.
func (s *Server) pgFailure(role string, e *pgconn.PgError) failure {
	if e.Code == "PGRST" {
		return raisedFailure(e)
	}
	if plan.IsTooLong(e.Code, e.Message) {
		return failure{Error: query.Error{Status: http.StatusInternalServerError,
			Code: "54000", Message: "the answer is too large",
			Details: "Nothing was changed. " + maxResponseDetail(s.sessions.MaxResponse),
			Hint:    "Ask for fewer columns with select, or for none with return=minimal."}}
	}

	f := failure{
		Error: query.Error{
			Status:  s.pgStatus(role, e),
			Code:    e.Code,
			Message: e.Message,
			Details: nullable(e.Detail),
			Hint:    nullable(e.Hint),
		},
	}
	if f.Status == http.StatusServiceUnavailable {
		f.retryAfter = "1"
	}

	// Policies and functions of the project raise the same code with other texts.
	if e.Code == "42501" && f.Hint == nil && slices.Contains(aclRoutines, e.Routine) && s.GrantHint != nil {
		f.Hint = nullable(s.GrantHint(role, e.Message))
	}
	// a value has at most 1 GB
	if e.Code == "54000" && f.Hint == nil && strings.HasPrefix(e.Detail, "Cannot enlarge string buffer") {
		f.Hint = fewerRowsHint
	}

	return f
}

// aclRoutines are PostgreSQL's functions that report a missing privilege.
var aclRoutines = []string{"aclcheck_error", "aclcheck_error_col", "nextval_internal"}

// nullable returns nil for an empty string.
func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// pgStatus returns the HTTP status of an SQLSTATE.
func (s *Server) pgStatus(role string, e *pgconn.PgError) int {
	switch e.Code {
	case "21000":
		if strings.HasSuffix(e.Message, "requires a WHERE clause") {
			return 400
		}
		return 500
	case "22023":
		if strings.HasPrefix(e.Message, `role "`) && strings.HasSuffix(e.Message, `" does not exist`) {
			return 401
		}
		return 400
	case "42501":
		if allowed, _ := s.Auth.Role(role); allowed.Anonymous || role == s.Auth.Anonymous {
			return 401
		}
		return 403
	case "42883":
		if strings.HasPrefix(e.Message, "function xmlagg(") {
			return 406
		}
		return 404
	}

	if status, ok := stateStatus[e.Code]; ok {
		return status
	}
	if len(e.Code) != 5 {
		return 500
	}
	if e.Code[:2] == "PT" {
		if n, err := strconv.Atoi(e.Code[2:]); err == nil && n >= 200 && n <= 599 {
			return n
		}
		return 500
	}

	return cmp.Or(classStatus[e.Code[:2]], 400)
}

// stateStatus has the statuses of SQLSTATEs that differ from their class's. 57P01 to 57P05, but for
// 57P04, are a server that stops or ended the session, so the request can be repeated.
var stateStatus = map[string]int{
	"23503": 409, "23505": 409, "25006": 405, "42P01": 404, "42P17": 500, "53400": 500, "57P01": 503, "57P02": 503,
	"57P03": 503, "57P05": 503, "P0001": 400,
}

// classStatus has the statuses of classes of SQLSTATEs: 503 for those of a server that is
// unavailable, 403 for refused authorization, 500 for what the client can't mend. All others are
// 400.
var classStatus = map[string]int{
	"08": 503, "53": 503,
	"0L": 403, "0P": 403, "28": 403,
	"09": 500, "25": 500, "2D": 500, "38": 500, "39": 500, "3B": 500, "40": 500, "54": 500, "55": 500,
	"57": 500, "58": 500, "F0": 500, "HV": 500, "P0": 500, "XX": 500,
}

// raisedFailure maps an error that a function raised with SQLSTATE PGRST. It sets body, status and
// headers itself.
func raisedFailure(e *pgconn.PgError) failure {
	var message struct {
		Code, Message *string
		Details, Hint *string
	}
	if err := json.Unmarshal([]byte(e.Message), &message); err != nil || message.Code == nil || message.Message == nil {
		return invalidRaise("Invalid JSON value for MESSAGE: '"+e.Message+"'",
			"MESSAGE must be a JSON object with obligatory keys: 'code', 'message' and optional keys: 'details', 'hint'.")
	}

	const detailHint = "DETAIL must be a JSON object with obligatory keys: 'status', 'headers' and optional key: 'status_text'."
	if e.Detail == "" {
		return invalidRaise("DETAIL is missing in the RAISE statement", detailHint)
	}

	var detail struct {
		Status  *int
		Headers map[string]string
	}
	if err := json.Unmarshal([]byte(e.Detail), &detail); err != nil || detail.Status == nil || detail.Headers == nil ||
		*detail.Status < 200 || *detail.Status > 599 {
		return invalidRaise("Invalid JSON value for DETAIL: '"+e.Detail+"'", detailHint)
	}

	f := failure{header: http.Header{}}
	f.Error = query.Error{Status: *detail.Status, Code: *message.Code, Message: *message.Message}

	if message.Details != nil {
		f.Details = *message.Details
	}
	if message.Hint != nil {
		f.Hint = *message.Hint
	}

	for name, value := range detail.Headers {
		f.header.Add(name, value)
	}

	return f
}

func invalidRaise(details, hint string) failure {
	return failure{
		Error: query.Error{
			Status:  500,
			Code:    "PGRST121",
			Message: `Could not parse JSON in the "RAISE SQLSTATE 'PGRST'" error`,
			Details: details,
			Hint:    hint,
		},
	}
}
