package storageapi

import (
	"cmp"
	"net/http"
	"strconv"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
)

// failure is an error body. StatusCode is the true status: the response has 400 for nearly all
// client errors.
type failure struct {
	StatusCode string `json:"statusCode"`
	Error      string `json:"error"`
	Message    string `json:"message"`
	Code       string `json:"code"`
}

// failuresByCode maps error codes to bodies that differ from their kind's.
var failuresByCode = map[string]failure{
	"NoSuchBucket":  {"404", "Bucket not found", "Bucket not found", "NoSuchBucket"},
	"RouteNotFound": {"404", "Not Found", "", "RouteNotFound"},
	"ResourceNotEmpty": {"409", "ResourceNotEmpty", "The bucket you tried to delete is not empty",
		"ResourceNotEmpty"},
	"BucketAlreadyExists":   {"409", "Duplicate", "The resource already exists", "BucketAlreadyExists"},
	"InvalidBucketName":     {"400", "Invalid Input", "", "InvalidBucketName"},
	"NotImplemented":        {"501", "NotImplemented", "", "NotImplemented"},
	"InvalidMimeType":       {"415", "invalid_mime_type", "", "InvalidMimeType"},
	"mime_type_not_allowed": {"415", "invalid_mime_type", "the type of the object is not supported", "InvalidMimeType"},
	"too_large":             {"413", "Payload too large", "The object exceeded the maximum allowed size", "EntityTooLarge"},
	"busy":                  {"423", "ResourceLocked", "The resource is locked", "ResourceLocked"},
	"project_paused":        {"409", "ProjectPaused", "", "ProjectPaused"},
	"project_deleted":       {"404", "TenantNotFound", "", "TenantNotFound"},
	"project_not_found":     {"404", "TenantNotFound", "", "TenantNotFound"},
	"quota_exceeded":        {"413", "Payload too large", "", "EntityTooLarge"},
	"mismatch":              {"409", "Conflict", "", "InvalidUploadOffset"},
	"changed":               {"412", "PreconditionFailed", "", "PreconditionFailed"},
	"policy_failed":         {"400", "DatabaseError", "", "DatabaseError"},
	"policy_timeout":        {"544", "DatabaseTimeout", "", "DatabaseTimeout"},
}

// failures maps kinds to the other bodies. Without an Error the body repeats its Code there.
var failures = map[fault.Kind]failure{
	fault.Invalid:         {"400", "", "", "InvalidRequest"},
	fault.Unprocessable:   {"400", "", "", "InvalidRequest"},
	fault.Unauthenticated: {"403", "Unauthorized", "", "AccessDenied"},
	fault.Forbidden:       {"403", "Unauthorized", "", "AccessDenied"},
	fault.NotFound:        {"404", "not_found", "Object not found", "NoSuchKey"},
	fault.Conflict:        {"409", "Duplicate", "The resource already exists", "KeyAlreadyExists"},
	fault.TooLarge: {"413", "Payload too large", "The object exceeded the maximum allowed size",
		"EntityTooLarge"},
	fault.TooSlow:     {"408", "RequestTimeout", "", "RequestTimeout"},
	fault.TooMany:     {"429", "too_many_requests", "", "SlowDown"},
	fault.Unavailable: {"503", "unavailable", "", "DatabaseError"},
}

// errNoBucket reports a bucket that does not exist or is hidden.
var errNoBucket = fault.New(fault.NotFound, "Bucket not found").WithCode("NoSuchBucket")

// failureOf returns a failure's status and body. The log keeps the texts of unknown errors.
func failureOf(err error) (int, failure) {
	e := fault.Of(err)
	f, ok := failuresByCode[e.CodeWord()]
	if !ok {
		f, ok = failures[e.Kind]
		if e.Code != "" && e.Code[0] >= 'A' && e.Code[0] <= 'Z' { // a contract code
			f.Code = e.Code
		}
	}
	if !ok {
		return http.StatusInternalServerError, failure{"500", "internal", "Internal Server Error", "InternalError"}
	}

	if f.Error == "" {
		f.Error = f.Code
	}
	if f.Message == "" {
		f.Message = e.Detail
	}

	switch e.Kind {
	case fault.TooMany:
		return http.StatusTooManyRequests, f
	case fault.Unavailable:
		return http.StatusServiceUnavailable, f
	}

	return http.StatusBadRequest, f
}

// tusMessage returns the message if it differs for resumable uploads, else "".
func tusMessage(e *fault.Error) string {
	switch word := e.CodeWord(); {
	case word == "too_large":
		return "Maximum size exceeded"
	case word == "mismatch" && len(e.Fields) > 0 && e.Fields[0].Name == "Upload-Offset":
		return "Upload-Offset conflict"
	}
	return ""
}

// fail writes an error response.
func (c *call) fail(err error) {
	status, body := failureOf(err)
	if status >= http.StatusInternalServerError {
		httpx.From(c.r.Context()).Err = err
	}
	if e := fault.Of(err); e.RetryAfter > 0 {
		c.w.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds())+1))
	}

	if c.trueStatus {
		status, _ = strconv.Atoi(body.StatusCode) // a constant
		body.Message = cmp.Or(tusMessage(fault.Of(err)), body.Message)
	}

	request := httpx.From(c.r.Context())
	request.ErrorCode, request.ErrorText = body.Code, body.Message

	_ = c.respond(status, body) // strings have no error
}
