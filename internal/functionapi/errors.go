package functionapi

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/function"
	"github.com/socle-dev/socle/internal/function/runtime"
	"github.com/socle-dev/socle/internal/function/sandbox"
	"github.com/socle-dev/socle/internal/gateway"
	"github.com/socle-dev/socle/internal/httpx"
)

// statusLimit is Supabase's status for a function that exceeded a limit.
const statusLimit = 546

// failure is the body of a failed call.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`

	status int
}

// statuses are the statuses of faults.
var statuses = map[fault.Kind]int{
	fault.Invalid: http.StatusBadRequest, fault.Unauthenticated: http.StatusUnauthorized,
	fault.Forbidden: http.StatusForbidden, fault.NotFound: http.StatusNotFound, fault.Conflict: http.StatusConflict,
	fault.Unavailable: http.StatusServiceUnavailable, fault.TooMany: http.StatusTooManyRequests,
}

// describe returns what a client may know of a failure.
func describe(err error) failure {
	var boot *runtime.BootError
	var limit *function.LimitError
	var unavailable *function.UnavailableError
	var large *http.MaxBytesError

	switch {
	case errors.As(err, &boot):
		return failure{"BOOT_ERROR", "Function failed to start (please check logs)", http.StatusServiceUnavailable}
	case errors.As(err, &limit):
		return failure{"WORKER_LIMIT", "Function failed due to not having enough compute resources (please check logs)",
			statusLimit}
	case errors.As(err, &unavailable):
		return failure{"FUNCTIONS_UNAVAILABLE", reason(unavailable), http.StatusServiceUnavailable}
	case errors.As(err, &large):
		return failure{"REQUEST_TOO_LARGE", "The body is too large", http.StatusRequestEntityTooLarge}
	case errors.Is(err, function.ErrBusy):
		return failure{"WORKER_BUSY", "No process is free for the function", http.StatusServiceUnavailable}
	case errors.Is(err, function.ErrNoAnswer):
		return failure{"WORKER_ERROR", "Function exited due to an error (please check logs)",
			http.StatusInternalServerError}
	case errors.Is(err, errNoAnswer):
		return failure{"IDLE_TIMEOUT", "Function did not answer in time", http.StatusGatewayTimeout}
	case errors.Is(err, gateway.ErrUnknownProject):
		return failure{"PROJECT_NOT_FOUND", "Project not found", http.StatusNotFound}
	case fault.Is(err, fault.NotFound):
		return failure{"NOT_FOUND", errUnknownFunction.Detail, http.StatusNotFound}
	}

	e := fault.Of(err)
	if status, ok := statuses[e.Kind]; ok {
		return failure{e.Code, e.Detail, status}
	}

	return failure{"INTERNAL_ERROR", "Internal error", http.StatusInternalServerError}
}

// reason returns why the server can't run functions, for its operator.
func reason(err error) string {
	for _, known := range []error{runtime.ErrMissing, sandbox.ErrUnsupported, sandbox.ErrRefused} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}

	return "The server can't start processes for functions (please check its log)"
}

// fail answers a call that no function answered.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	f := describe(err)
	request := httpx.From(r.Context())
	request.ErrorCode, request.ErrorText, request.Err = f.Code, f.Message, err

	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Sb-Error-Code", f.Code)
	h.Set("X-Relay-Error", "true")
	h.Set("Access-Control-Expose-Headers", "sb-error-code, x-relay-error")
	if f.status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "5")
	}

	body, _ := json.Marshal(f) // two strings
	w.WriteHeader(f.status)
	_, _ = w.Write(body)
}
