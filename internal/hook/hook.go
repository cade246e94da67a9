// Package hook calls a project's hooks, by the contract of Supabase Auth: database functions and
// endpoints. It owns addresses, timeouts, attempts, signatures, replies and failures. Package
// enduser decides which hooks exist, their events and when they are called.
package hook

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/outbound"
)

const (
	maxReply   = 64 << 10 // characters of a function's reply, bytes of an endpoint's
	maxAddress = 500      // bytes
	maxName    = 63       // bytes; PostgreSQL's limit
)

var errAddress = errors.New("must be pg-functions://postgres/schema/function, functions://name, " +
	"or an https URL")

// CheckAddress fails unless an address names a function of the database, or an endpoint.
func CheckAddress(address string) error {
	if !IsEndpoint(address) {
		_, err := functionOf(address)
		return err
	}
	if len(address) > maxAddress {
		return fmt.Errorf("must have at most %d bytes", maxAddress)
	}

	return outbound.CheckAddress(address)
}

// Rejection is a failure that a project's hook has chosen.
type Rejection struct {
	Status  int // HTTP status, 400 to 599
	Message string
}

func (r *Rejection) Error() string { return r.Message }

// Reply has all hooks' reply members.
type Reply struct {
	Error *struct {
		Status  int    `json:"http_code"`
		Message string `json:"message"`
	} `json:"error"`
	Claims           map[string]json.RawMessage `json:"claims"`
	Decision         string                     `json:"decision"`
	Message          string                     `json:"message"`
	ShouldLogoutUser bool                       `json:"should_logout_user"`
}

// Rejects reports whether a hook rejects an attempt, and returns its message, or otherwise.
func (r Reply) Rejects(otherwise string) (string, bool) {
	if r.Message == "" {
		r.Message = otherwise
	}
	return r.Message, r.Decision == "reject"
}

// kinds maps hook failure codes to kinds other than Internal.
var kinds = map[string]fault.Kind{
	"hook_timeout": fault.Unprocessable, "hook_timeout_after_retry": fault.Unprocessable,
	"hook_payload_over_size_limit": fault.Unprocessable, "hook_payload_invalid_content_type": fault.Invalid,
}

// Failure reports a hook that breaks the contract.
func Failure(code, format string, args ...any) *fault.Error {
	return fault.New(kinds[code], format, args...).WithCode(code)
}

// AtRefresh returns a hook's failure at a refresh as Internal: clients retry the refresh then, and
// end the session after other failures.
func AtRefresh(err error) error {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		if _, ok := kinds[e.Code]; ok {
			return &fault.Error{Kind: fault.Internal, Code: e.Code, Detail: e.Detail, Err: e.Err}
		}
	}

	return err
}

func errReplyTooLarge() *fault.Error {
	return Failure("hook_payload_over_size_limit", "Payload size exceeded size limit of %d bytes", maxReply)
}

// ParseReply parses a hook's reply. No text is an empty reply.
func ParseReply(text []byte) (Reply, error) {
	var reply Reply
	switch {
	case utf8.RuneCount(text) > maxReply:
		return reply, errReplyTooLarge()
	case len(text) == 0:
		return reply, nil
	}

	if err := json.Unmarshal(text, &reply); err != nil {
		return reply, Failure("unexpected_failure", "Error unmarshaling JSON output.").WithCause(err)
	}

	if e := reply.Error; e != nil && e.Message != "" {
		status := e.Status
		if status < 400 || status > 599 {
			status = 500
		}

		return reply, &Rejection{Status: status, Message: fault.Clip(e.Message)}
	}

	reply.Message = fault.Clip(reply.Message)
	return reply, nil
}
