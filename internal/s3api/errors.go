package s3api

import (
	"encoding/xml"
	"net/http"
	"strconv"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
)

// failure is an error body.
type failure struct {
	XMLName   xml.Name `xml:"Error"`
	Code      string
	Message   string
	Resource  string
	RequestID string `xml:"RequestId"`
}

var (
	errNoBucket = fault.New(fault.NotFound, "The specified bucket does not exist").WithCode("NoSuchBucket")
	errNoKey    = fault.New(fault.NotFound, "The specified key does not exist.").WithCode("NoSuchKey")
	errNoUpload = fault.New(fault.NotFound, "The specified upload does not exist.").WithCode("NoSuchUpload")

	errOwned = fault.New(fault.Conflict,
		"Your previous request to create the named bucket succeeded and you already own it.").
		WithCode("BucketAlreadyOwnedByYou")

	errMethod = fault.New(fault.Invalid, "The specified method is not allowed against this resource").
			WithCode("MethodNotAllowed")
	errNotImplemented = fault.New(fault.Invalid, "The server does not implement this function").
				WithCode("NotImplemented")
	errMalformedXML = fault.New(fault.Invalid, "The XML you provided was not well-formed or did not validate").
			WithCode("MalformedXML")
	errPrecondition = fault.New(fault.Invalid, "At least one of the pre-conditions you specified did not hold").
			WithCode("PreconditionFailed")
)

// statuses are HTTP statuses by code where they differ from the kind's.
var statuses = map[string]int{
	"MethodNotAllowed": http.StatusMethodNotAllowed, "NotImplemented": http.StatusNotImplemented,
	"PreconditionFailed": http.StatusPreconditionFailed, "InvalidRange": http.StatusRequestedRangeNotSatisfiable,
	"MissingContentLength": http.StatusLengthRequired, "EntityTooLarge": http.StatusBadRequest,
}

// kinds are HTTP statuses and codes for failures without an S3 code.
var kinds = map[fault.Kind]struct {
	status int
	code   string
}{
	fault.Invalid:       {http.StatusBadRequest, "InvalidRequest"},
	fault.Unprocessable: {http.StatusBadRequest, "InvalidArgument"},
	fault.Forbidden:     {http.StatusForbidden, "AccessDenied"},
	fault.NotFound:      {http.StatusNotFound, "NoSuchKey"},
	fault.Conflict:      {http.StatusConflict, "OperationAborted"},
	fault.TooLarge:      {http.StatusBadRequest, "EntityTooLarge"},
	fault.TooMany:       {http.StatusServiceUnavailable, "SlowDown"},
	fault.Unavailable:   {http.StatusServiceUnavailable, "ServiceUnavailable"},
}

// failureOf returns a failure's status and body. The log keeps the texts of unknown errors.
func failureOf(err error) (int, failure) {
	e := fault.Of(err)
	kind, ok := kinds[e.Kind]
	if !ok {
		return http.StatusInternalServerError, failure{Code: "InternalError",
			Message: "We encountered an internal error. " +
				"Please try again."}
	}

	f := failure{Code: kind.code, Message: e.Detail}
	switch word := e.CodeWord(); {
	case e.Code != "" && e.Code[0] >= 'A' && e.Code[0] <= 'Z': // an S3 code
		f.Code = e.Code
	case word == "quota_exceeded":
		f.Code, kind.status = "QuotaExceeded", http.StatusForbidden
	case len(e.Fields) > 0 && e.Fields[0].Name == "full_file_name" && word == "too_long":
		f.Code = "KeyTooLongError"
	}
	if len(e.Fields) > 0 && e.Fields[0].Name == "full_file_name" {
		f.Message = "The key " + e.Fields[0].Message
	}
	if status := statuses[f.Code]; status != 0 {
		kind.status = status
	}

	return kind.status, f
}

// fail writes an error response.
func (c *call) fail(err error) {
	status, f := failureOf(err)
	if status >= http.StatusInternalServerError {
		httpx.From(c.r.Context()).Err = err
	}
	if e := fault.Of(err); e.RetryAfter > 0 {
		c.w.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds())+1))
	}

	request := httpx.From(c.r.Context())
	request.ErrorCode, request.ErrorText = f.Code, f.Message

	f.Resource, f.RequestID = c.r.URL.Path, request.ID
	text, _ := xml.Marshal(f) // strings have no error

	c.w.Header().Set("Content-Type", "application/xml")
	c.w.WriteHeader(status)
	if c.r.Method != http.MethodHead {
		_, _ = c.w.Write(append([]byte(xml.Header), text...)) // fails only if the client has disconnected
	}
}
