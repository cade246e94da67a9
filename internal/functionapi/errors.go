package functionapi

import (
	"errors"
	"net/http"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/function"
	"github.com/socle-dev/socle/internal/gateway"
	"github.com/socle-dev/socle/internal/httpx"
)

// statuses are the statuses of faults.
var statuses = map[fault.Kind]int{
	fault.Invalid: http.StatusBadRequest, fault.Unauthenticated: http.StatusUnauthorized,
	fault.Forbidden: http.StatusForbidden, fault.NotFound: http.StatusNotFound, fault.Conflict: http.StatusConflict,
	fault.Unavailable: http.StatusServiceUnavailable, fault.TooMany: http.StatusTooManyRequests,
}

// describe returns what a client may know of a failure.
func describe(err error) function.Failure {
	var large *http.MaxBytesError

	switch {
	case errors.As(err, &large):
		return function.Failure{Code: "REQUEST_TOO_LARGE", Message: "The body is too large",
			Status: http.StatusRequestEntityTooLarge}
	case errors.Is(err, errNoAnswer):
		return function.Failure{Code: "IDLE_TIMEOUT", Message: "Function did not answer in time",
			Status: http.StatusGatewayTimeout}
	case errors.Is(err, errTooDeep):
		return function.Failure{Code: "LOOP_DETECTED", Message: "Functions call each other too deeply",
			Status: http.StatusLoopDetected}
	case errors.Is(err, gateway.ErrUnknownProject):
		return function.Failure{Code: "PROJECT_NOT_FOUND", Message: "Project not found", Status: http.StatusNotFound}
	}

	if f, ok := function.FailureOf(err); ok {
		return f
	}

	e := fault.Of(err)
	if status, ok := statuses[e.Kind]; ok {
		return function.Failure{Code: e.Code, Message: e.Detail, Status: status}
	}

	return function.Failure{Code: "INTERNAL_ERROR", Message: "Internal error", Status: http.StatusInternalServerError}
}

// fail answers a call that no function answered.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	f := describe(err)
	request := httpx.From(r.Context())
	request.ErrorCode, request.ErrorText, request.Err = f.Code, f.Message, err

	f.Write(w)
}
