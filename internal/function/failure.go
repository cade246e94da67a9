package function

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/function/runtime"
	"github.com/socle-dev/socle/internal/function/sandbox"
)

// statusLimit is Supabase's status for a function that exceeded a limit.
const statusLimit = 546

// Failure is the answer to a call that no function answered, by the contract of Supabase's.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`

	Status int `json:"-"`
}

// FailureOf returns the answer for a failure of [Service.Acquire] or [Call.RoundTrip]. It reports
// false for other errors.
func FailureOf(err error) (Failure, bool) {
	var boot *runtime.BootError
	var limit *LimitError
	var unavailable *UnavailableError

	switch {
	case errors.As(err, &boot):
		return Failure{"BOOT_ERROR", "Function failed to start (please check logs)",
			http.StatusServiceUnavailable}, true
	case errors.As(err, &limit):
		return Failure{"WORKER_LIMIT", "Function failed due to not having enough compute resources (please check logs)",
			statusLimit}, true
	case errors.As(err, &unavailable):
		return Failure{"FUNCTIONS_UNAVAILABLE", reason(unavailable), http.StatusServiceUnavailable}, true
	case errors.Is(err, ErrBusy):
		return Failure{"WORKER_BUSY", "No process is free for the function", http.StatusServiceUnavailable}, true
	case errors.Is(err, ErrNoAnswer):
		return Failure{"WORKER_ERROR", "Function exited due to an error (please check logs)",
			http.StatusInternalServerError}, true
	case fault.Is(err, fault.NotFound):
		return Failure{"NOT_FOUND", "Requested function was not found", http.StatusNotFound}, true
	}

	return Failure{}, false
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

// Write answers with the failure.
func (f Failure) Write(w http.ResponseWriter) {
	header, body := f.content()
	for name, values := range header {
		w.Header()[name] = values
	}

	w.WriteHeader(f.Status)
	_, _ = w.Write(body)
}

// content returns the answer's header and body.
func (f Failure) content() (http.Header, []byte) {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Sb-Error-Code", f.Code)
	h.Set("X-Relay-Error", "true")
	h.Set("Access-Control-Expose-Headers", "sb-error-code, x-relay-error")
	if f.Status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "5")
	}

	body, _ := json.Marshal(f) // two strings
	return h, body
}
