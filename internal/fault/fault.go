// Package fault says what went wrong in the words of the domain.
//
// A package that knows an entity returns an [Error] with a [Kind]; it knows no
// status codes. The interface that answers the client chooses the status from
// the kind and from what the operation declares. An error without a kind is
// [Internal]: its text goes to the log and never to a client.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Kind classifies a failure.
type Kind uint8

// The kinds, each with the status that it has by nature.
const (
	Internal        Kind = iota // 500: ours; the zero value, so that what nobody classified is ours
	Invalid                     // 400: the request can't be read
	Unprocessable               // 422: the request can be read, and breaks a rule
	Unauthenticated             // 401: we don't know who asks, or they have no business here
	Forbidden                   // 403: we know who asks, and their role is too low
	NotFound                    // 404: there is no such thing for this caller
	Conflict                    // 409: another thing is in the way
	Precondition                // 412: the thing is not in the state that the client counts on
	TooLarge                    // 413
	Mismatch                    // 460 in the tus protocol: the bytes that came are not those that were announced
	TooSlow                     // 408: the body arrives too slowly
	TooMany                     // 429: later, after RetryAfter
	Unavailable                 // 503: something that we need does not answer
)

var codes = [...]string{
	Internal: "internal", Invalid: "invalid_value", Unprocessable: "invalid_value",
	Unauthenticated: "unauthenticated", Forbidden: "forbidden", NotFound: "not_found",
	Conflict: "already_exists", Precondition: "changed", TooLarge: "too_large", Mismatch: "checksum_mismatch",
	TooSlow: "too_slow", TooMany: "rate_limited", Unavailable: "unavailable",
}

// Error is a failure that its caller may tell the client about.
type Error struct {
	Kind       Kind
	Code       string         // stable snake_case word; "" means the kind's own, see [Error.CodeWord]
	Detail     string         // one clause for the client: lower case, no full stop, no secret, no SQL
	Fields     []Field        // the fields at fault, if any
	Extra      map[string]any // further members of the answer's metadata
	RetryAfter time.Duration  // for TooMany and Unavailable; 0 means unknown
	Err        error          // the cause, for the log alone
}

// Field is one field of a request that is at fault.
type Field struct {
	Name    string `json:"field" doc:"Path of the field, dots between its parts; a parameter's or header's name."`
	Code    string `json:"code" doc:"Stable snake_case word."`
	Message string `json:"message"`
}

// Error returns the detail and the cause, for the log.
func (e *Error) Error() string {
	switch {
	case e.Err == nil:
		return e.Detail
	case e.Detail == "":
		return e.Err.Error()
	}

	return e.Detail + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeWord returns the stable word for clients: the error's own code, or its kind's.
func (e *Error) CodeWord() string {
	if e.Code != "" {
		return e.Code
	}
	return codes[e.Kind]
}

// New returns an error of a kind. The text is shown to the client.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// OnField returns an error of a kind that one field of the request is to blame for.
// The text is shown to the client.
func OnField(kind Kind, field, code, format string, args ...any) *Error {
	message := fmt.Sprintf(format, args...)
	return &Error{Kind: kind, Code: code, Detail: field + " " + message,
		Fields: []Field{{Name: field, Code: code, Message: message}}}
}

// WithCode sets the stable word for clients and returns e.
func (e *Error) WithCode(code string) *Error {
	e.Code = code
	return e
}

// Because returns e with a cause, which only the log shows. It is a copy: e may be shared, and even be what the cause comes of.
func (e *Error) Because(cause error) *Error {
	because := *e
	because.Err = cause

	return &because
}

// Of returns the first Error in err's chain, or an Internal one that holds err.
// It returns nil for nil.
func Of(err error) *Error {
	if err == nil {
		return nil
	}

	if e, ok := errors.AsType[*Error](err); ok {
		if e != err {
			wrapped := *e
			wrapped.Err = err

			return &wrapped
		}

		return e
	}

	return &Error{Kind: Internal, Err: err}
}

// Is reports whether err is of the kind.
func Is(err error, kind Kind) bool { return err != nil && Of(err).Kind == kind }

// Except returns nil for an error of the kind, and every other one as it is.
func Except(err error, kind Kind) error {
	if Is(err, kind) {
		return nil
	}
	return err
}
