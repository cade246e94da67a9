package enduser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/idp"
	"github.com/socle-dev/socle/internal/pg"
)

// Hooks maps names of hooks to functions of the project, pg-functions://postgres/schema/function,
// or to the URLs of endpoints, see [Directory.callEndpoint].
//
// A function runs on the login of the project's owner, in a transaction of its own. No hook runs
// within a transaction of the auth login: that would hold one connection and wait for another, and
// as many such requests as there are connections would wait for each other. So a change that needs
// an answer asks before it begins or after it has committed, see [Directory.txAsking].
type Hooks map[string]string

// Names of hooks.
const (
	hookAccessToken = "custom_access_token"
	hookNewUser     = "before_user_created"
	hookCreated     = "after_user_created"
	hookPassword    = "password_verification_attempt"
	hookFactor      = "mfa_verification_attempt"
	hookMail        = "send_email"
)

const (
	maxHookReply   = 64 << 10 // characters of a function's reply, bytes of an endpoint's
	maxHookMessage = 1000     // bytes of a rejection
)

// contractHooks maps names of hooks to those in the metadata of their events.
var contractHooks = map[string]string{
	hookAccessToken: "customize-access-token", hookNewUser: "before-user-created",
	hookCreated: "after-user-created", hookPassword: "password-verification", hookFactor: "mfa-verification",
	hookMail: "send-email",
}

// hookSecrets begins the names of the secrets of endpoints.
const hookSecrets = "hooks."

var errHookAddress = errors.New("must be pg-functions://postgres/schema/function, or an https URL")

func (h Hooks) validate() error {
	var errs []error
	for name, address := range h {
		field := "hooks." + name
		if contractHooks[name] == "" {
			errs = append(errs, fault.OnField(fault.Unprocessable, field, "unknown", "is no hook"))
		} else if err := checkHookAddress(address); err != nil {
			errs = append(errs, fault.OnField(fault.Unprocessable, field, "invalid_format", "%s", err))
		}
	}

	return fault.Join(errs...)
}

func checkHookAddress(address string) error {
	if !isEndpoint(address) {
		_, err := functionOf(address)
		return err
	}
	if len(address) > maxURL {
		return fmt.Errorf("must have at most %d bytes", maxURL)
	}

	return idp.CheckURL(address)
}

// checkHookSecrets fails with Unprocessable unless each endpoint has a secret.
func (c ProjectConfig) checkHookSecrets() error {
	var errs []error
	for name, address := range c.Hooks {
		if isEndpoint(address) && contractHooks[name] != "" {
			errs = append(errs, c.Secrets.checkWebhook(hookSecrets+name, "is required by the URL of the hook"))
		}
	}

	return fault.Join(errs...)
}

// Rejection is a failure that a hook of the project has chosen.
type Rejection struct {
	Status  int // of HTTP, 400 to 599
	Message string
}

// Error returns the message.
func (r *Rejection) Error() string { return r.Message }

// hookMetadata is a member of the event of every hook.
type hookMetadata struct {
	UUID      uuid.UUID `json:"uuid"`
	Time      time.Time `json:"time"`
	Name      string    `json:"name"`
	IPAddress string    `json:"ip_address,omitempty"`
}

func newHookMetadata(name string, c Client) hookMetadata {
	m := hookMetadata{UUID: uuid.New(), Time: time.Now().UTC(), Name: contractHooks[name]}
	if c.Address.IsValid() {
		m.IPAddress = c.Address.String()
	}

	return m
}

// hookReply has the members of the replies of all hooks.
type hookReply struct {
	Error *struct {
		Status  int    `json:"http_code"`
		Message string `json:"message"`
	} `json:"error"`
	Claims           map[string]json.RawMessage `json:"claims"`
	Decision         string                     `json:"decision"`
	Message          string                     `json:"message"`
	ShouldLogoutUser bool                       `json:"should_logout_user"`
}

// ask calls a hook that is set and returns its reply. It fails with a *[Rejection] if the hook
// replies an error, and with an error of [errHook] or Internal if the hook fails.
func (d *Directory) ask(ctx context.Context, hook string, event any) (hookReply, error) {
	return d.askAs(ctx, hook, uuid.New(), event)
}

// askAs is ask for an event that may come again under the same id.
func (d *Directory) askAs(ctx context.Context, hook string, id uuid.UUID, event any) (hookReply, error) {
	var reply hookReply
	text, err := json.Marshal(event)
	if err != nil {
		return reply, err
	}

	address := d.Hooks[hook]
	var answer []byte
	if isEndpoint(address) {
		answer, err = d.callEndpoint(ctx, webhook{URL: address, Secret: hookSecrets + hook, ID: id, Body: text})
	} else {
		answer, err = d.callFunction(ctx, address, text)
	}
	if err == nil {
		reply, err = parseHookReply(answer)
	}
	if err == nil || ctx.Err() != nil {
		return reply, err
	}

	if _, chosen := errors.AsType[*Rejection](err); chosen {
		return reply, err
	}

	d.service.Log.Warn("hook of a project failed", "project", d.UUID, "hook", hook, "state", pg.State(err),
		"error", err)
	if _, known := errors.AsType[*fault.Error](err); !known {
		err = fault.New(fault.Internal, "Error running hook URI: %s", address).WithCode("unexpected_failure").
			WithCause(err)
	}

	return reply, err
}

// hookKinds maps codes of failed hooks to kinds other than Internal.
var hookKinds = map[string]fault.Kind{
	"hook_timeout": fault.Unprocessable, "hook_timeout_after_retry": fault.Unprocessable,
	"hook_payload_over_size_limit": fault.Unprocessable, "hook_payload_invalid_content_type": fault.Invalid,
}

// errHook is the failure of a hook that does not keep the contract.
func errHook(code, format string, args ...any) *fault.Error {
	return fault.New(hookKinds[code], format, args...).WithCode(code)
}

// asRefreshFailure returns the failure of a hook at a refresh as Internal: clients repeat the
// refresh then, and end the session after other failures.
func asRefreshFailure(err error) error {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		if _, failed := hookKinds[e.Code]; failed {
			return &fault.Error{Kind: fault.Internal, Code: e.Code, Detail: e.Detail, Err: e.Err}
		}
	}

	return err
}

func errReplyTooLarge() *fault.Error {
	return errHook("hook_payload_over_size_limit", "Payload size exceeded size limit of %d bytes", maxHookReply)
}

// parseHookReply reads the reply of a hook. No text is an empty reply.
func parseHookReply(text []byte) (hookReply, error) {
	var reply hookReply
	switch {
	case utf8.RuneCount(text) > maxHookReply:
		return reply, errReplyTooLarge()
	case len(text) == 0:
		return reply, nil
	}

	if err := json.Unmarshal(text, &reply); err != nil {
		return reply, errHook("unexpected_failure", "Error unmarshaling JSON output.").WithCause(err)
	}

	if e := reply.Error; e != nil && e.Message != "" {
		status := e.Status
		if status < 400 || status > 599 {
			status = 500
		}

		return reply, &Rejection{Status: status, Message: clip(e.Message)}
	}

	reply.Message = clip(reply.Message)
	return reply, nil
}

// clip bounds a message of a hook.
func clip(message string) string {
	if len(message) <= maxHookMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxHookMessage], "")
}

// question ends a transaction that needs the answer of a hook.
type question struct{ event any }

// Error names the hook's absence, which only a caller without txAsking would see.
func (*question) Error() string { return "a hook has not been asked" }

// txAsking is [Directory.tx] for a change that a hook may refuse. f calls consent where it needs
// the answer. If the hook is set, the transaction is rolled back there, the hook is asked, and f
// runs again if it agrees. refusal returns the failure of a reply, nil for none.
func (d *Directory) txAsking(
	ctx context.Context, change, hook string, refusal func(hookReply) error,
	f func(ctx context.Context, tx pgx.Tx, consent func(event func() any) error) error,
) error {
	agreed := d.Hooks[hook] == ""
	consent := func(event func() any) error {
		if agreed {
			return nil
		}
		return &question{event()}
	}

	for {
		err := d.tx(ctx, change, func(ctx context.Context, tx pgx.Tx) error { return f(ctx, tx, consent) })
		q, asks := errors.AsType[*question](err)
		if !asks {
			return err
		}

		reply, err := d.ask(ctx, hook, q.event)
		if err == nil {
			err = refusal(reply)
		}
		if err != nil {
			return err
		}

		agreed = true
	}
}

// attemptEvent is the event of the hooks on passwords and second factors.
type attemptEvent struct {
	Metadata   hookMetadata `json:"metadata"`
	UserID     uuid.UUID    `json:"user_id"`
	FactorID   *uuid.UUID   `json:"factor_id,omitempty"`
	FactorType string       `json:"factor_type,omitempty"`
	Valid      bool         `json:"valid"`
}

// rejects reports whether a hook refuses an attempt, and returns its message or another.
func (r hookReply) rejects(otherwise string) (string, bool) {
	if r.Message == "" {
		r.Message = otherwise
	}
	return r.Message, r.Decision == "reject"
}

// askAboutPassword tells a hook of a checked password of a user. It fails if the hook refuses the
// log-in.
func (d *Directory) askAboutPassword(ctx context.Context, u User, valid bool, c Client) error {
	if d.Hooks[hookPassword] == "" || u.ID == uuid.Nil {
		return nil
	}

	reply, err := d.ask(ctx, hookPassword,
		attemptEvent{Metadata: newHookMetadata(hookPassword, c), UserID: u.ID, Valid: valid})
	if err != nil {
		return err
	}

	message, rejected := reply.rejects("Further password verification attempts will be rejected.")
	if !rejected {
		return nil
	}

	if reply.ShouldLogoutUser {
		if _, err := d.EndSessions(ctx, u.ID, c); err != nil {
			return err
		}
	}

	return fault.New(fault.Invalid, "%s", message).WithCode("invalid_credentials")
}

// refuseFactor fails if a hook refuses the check of a second factor, and ends the user's sessions.
func (d *Directory) refuseFactor(ctx context.Context, user uuid.UUID, reply hookReply, c Client) error {
	message, rejected := reply.rejects("Further MFA verification attempts will be rejected.")
	if !rejected {
		return nil
	}
	if _, err := d.EndSessions(ctx, user, c); err != nil {
		return err
	}

	return fault.New(fault.Forbidden, "%s", message).WithCode("mfa_verification_rejected")
}
