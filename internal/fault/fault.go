// Package fault owns the error type for failures that clients may see.
//
// A domain package returns an [Error] with a [Kind]; it knows no status codes. The API layer
// derives the status from the kind and the operation's declaration. An error without a kind is
// [Internal]: its text goes to the log and never to a client.
package fault

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// Kind classifies a failure.
type Kind uint8

// The kinds, each with its default status.
const (
	Internal        Kind = iota // 500: our bug; the zero value
	Invalid                     // 400: malformed request
	Unprocessable               // 422: well-formed request that violates a rule
	Unauthenticated             // 401: no or invalid credentials
	Forbidden                   // 403: known caller with insufficient rights
	NotFound                    // 404: does not exist, or not for this caller
	Conflict                    // 409: conflict with the current state
	Precondition                // 412: state differs from the client's precondition
	TooLarge                    // 413
	Mismatch                    // 460 in the tus protocol: body checksum mismatch
	TooSlow                     // 408: body arrives below the minimum rate
	TooMany                     // 429: retry after RetryAfter
	Unavailable                 // 503: dependency unavailable
)

var codes = [...]string{
	Internal: "internal", Invalid: "invalid_value", Unprocessable: "invalid_value",
	Unauthenticated: "unauthenticated", Forbidden: "forbidden", NotFound: "not_found",
	Conflict: "already_exists", Precondition: "changed", TooLarge: "too_large", Mismatch: "checksum_mismatch",
	TooSlow: "too_slow", TooMany: "rate_limited", Unavailable: "unavailable",
}

// Error is a failure that may be shown to the client.
type Error struct {
	Kind       Kind
	Code       string         // stable snake_case word; "": the kind's default, see [Error.CodeWord]
	Detail     string         // one clause for the client: lower case, no full stop, no secret, no SQL
	Fields     []Field        // invalid fields, if any
	Extra      map[string]any // further members of the response's metadata
	RetryAfter time.Duration  // for TooMany and Unavailable; 0: unknown
	Err        error          // cause, for the log only
}

// Field is an invalid field of a request.
type Field struct {
	Name    string `json:"field" doc:"Path of the field, separated by dots, or name of the parameter or header."`
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

// New returns an error with a kind. The text is shown to the client.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// Missing returns a NotFound error for a resource that does not exist or that the caller may not
// see: one text for both, so that responses do not reveal which.
func Missing() *Error { return New(NotFound, "the resource does not exist") }

// NothingToChange returns the error for an update without any member to change.
func NothingToChange() *Error {
	return New(Unprocessable, "the request changes nothing").WithCode("nothing_to_change")
}

// OnField returns an error about one request field. The text is shown to the client.
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

// WithCause returns a copy of e with a cause, which only the log shows. It copies, because e may be
// shared, or be part of the cause's own chain.
func (e *Error) WithCause(cause error) *Error {
	because := *e
	because.Err = cause

	return &because
}

// Join merges several field errors into one. An error that is not Unprocessable takes precedence.
func Join(errs ...error) error {
	var all *Error
	for _, err := range errs {
		if err == nil {
			continue
		}

		e := Of(err)
		if e.Kind != Unprocessable {
			return err
		}

		if all == nil {
			first := *e
			all = &first
			continue
		}

		all.Fields = append(all.Fields, e.Fields...)
	}

	if all == nil {
		return nil
	}

	return all
}

// Of returns the first Error in err's chain, an Internal one that wraps err if there is none, or
// nil for nil.
func Of(err error) *Error {
	if err == nil {
		return nil
	}

	if e, ok := errors.AsType[*Error](err); ok {
		if e != err {
			outer := *e
			outer.Err = err

			return &outer
		}

		return e
	}

	return &Error{Kind: Internal, Err: err}
}

// Is reports whether err is an error of the kind.
func Is(err error, kind Kind) bool { return err != nil && Of(err).Kind == kind }

// Ignore returns nil for an error of the kind, and any other err unchanged.
func Ignore(err error, kind Kind) error {
	if Is(err, kind) {
		return nil
	}
	return err
}

// maxClipped bounds a clipped text, in bytes.
const maxClipped = 1000

// Clip truncates a third party's text, such as a tenant server's, that goes into an error.
func Clip(text string) string {
	if len(text) <= maxClipped {
		return text
	}
	return strings.ToValidUTF8(text[:maxClipped], "")
}

// Recover makes a panic of the function that defers it the function's error, with the stack. A
// panic in a goroutine of its own would end the server for all projects, so what works on a
// project's data there defers Recover.
func Recover(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}
