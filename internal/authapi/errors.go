package authapi

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/hook"
	"github.com/socle-dev/socle/internal/httpx"
)

// apiVersion is the contract version in which errors have a code.
const apiVersion = "2024-01-01"

// statuses maps failure kinds.
var statuses = map[fault.Kind]int{
	fault.Invalid: http.StatusBadRequest, fault.Unprocessable: http.StatusUnprocessableEntity,
	fault.Unauthenticated: http.StatusUnauthorized, fault.Forbidden: http.StatusForbidden,
	fault.NotFound: http.StatusNotFound, fault.Conflict: http.StatusConflict,
	fault.TooLarge: http.StatusRequestEntityTooLarge, fault.TooMany: http.StatusTooManyRequests,
	fault.Unavailable: http.StatusServiceUnavailable,
}

// failure is an error's body, in the version that the request names or the one before.
type failure struct {
	Code         any            `json:"code"`
	ErrorCode    string         `json:"error_code,omitempty"`
	Message      string         `json:"message,omitempty"`
	Msg          string         `json:"msg,omitempty"`
	WeakPassword map[string]any `json:"weak_password,omitempty"`
}

// statusOf returns a failure's status, code and text. Texts of unknown errors stay in the log.
func statusOf(err error) (status int, code, text string, extra map[string]any) {
	if r, ok := errors.AsType[*hook.Rejection](err); ok {
		code = map[bool]string{true: "unexpected_failure", false: "unknown"}[r.Status == http.StatusInternalServerError]
		return r.Status, code, r.Message, nil
	}

	e := fault.Of(err)
	status, ok := statuses[e.Kind]
	if !ok {
		status = http.StatusInternalServerError
	}

	code, text = e.CodeWord(), e.Detail
	if e.Kind == fault.Internal && e.Code != "unexpected_failure" && !strings.HasPrefix(e.Code, "hook_") {
		code, text = "unexpected_failure", "Unexpected failure, please check server logs for more information"
	}
	if code == "method_not_allowed" {
		status = http.StatusMethodNotAllowed
	}

	return status, code, text, e.Extra
}

// fail writes a failure.
func (c *call) fail(err error) {
	status, code, text, extra := statusOf(err)
	if status >= http.StatusInternalServerError {
		httpx.From(c.r.Context()).Err = err
	}

	request := httpx.From(c.r.Context())
	request.ErrorCode, request.ErrorText = code, text

	h := c.w.Header()
	h.Set("X-Sb-Error-Code", code)
	if e, ok := errors.AsType[*fault.Error](err); ok && e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds())+1))
	}

	body := failure{Code: status, ErrorCode: code, Msg: text}
	if c.r.Header.Get("X-Supabase-Api-Version") >= apiVersion {
		h.Set("X-Supabase-Api-Version", apiVersion)
		body = failure{Code: code, Message: text}
	}
	if code == "weak_password" {
		body.WeakPassword = extra
	}

	_ = c.respond(status, body) // strings have no error
}
