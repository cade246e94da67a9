package enduser

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/hook"
	"github.com/socle-dev/socle/internal/pg"
)

// Hooks maps names of hooks to functions of the project, pg-functions://postgres/schema/function,
// or to the URLs of endpoints, see package hook.
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

// contractHooks maps names of hooks to those in the metadata of their events.
var contractHooks = map[string]string{
	hookAccessToken: "customize-access-token", hookNewUser: "before-user-created",
	hookCreated: "after-user-created", hookPassword: "password-verification", hookFactor: "mfa-verification",
	hookMail: "send-email",
}

// hookSecrets begins the names of the secrets of endpoints.
const hookSecrets = "hooks."

func (h Hooks) validate() error {
	var errs []error
	for name, address := range h {
		field := "hooks." + name
		if contractHooks[name] == "" {
			errs = append(errs, fault.OnField(fault.Unprocessable, field, "unknown", "is no hook"))
		} else if err := hook.CheckAddress(address); err != nil {
			errs = append(errs, fault.OnField(fault.Unprocessable, field, "invalid_format", "%s", err))
		}
	}

	return fault.Join(errs...)
}

// checkHookSecrets fails with Unprocessable unless each endpoint has a secret.
func (c ProjectConfig) checkHookSecrets() error {
	var errs []error
	for name, address := range c.Hooks {
		if hook.IsEndpoint(address) && contractHooks[name] != "" {
			errs = append(errs, c.Secrets.checkWebhook(hookSecrets+name, "is required by the URL of the hook"))
		}
	}

	return fault.Join(errs...)
}

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

// ask calls a hook that is set and returns its reply. It fails with a *[hook.Rejection] if the hook
// replies an error, and with an error of [hook.Failure] or Internal if the hook fails.
func (d *Directory) ask(ctx context.Context, name string, event any) (hook.Reply, error) {
	return d.askAs(ctx, name, uuid.New(), event)
}

// askAs is ask for an event that may come again under the same id.
func (d *Directory) askAs(ctx context.Context, name string, id uuid.UUID, event any) (hook.Reply, error) {
	var reply hook.Reply
	text, err := json.Marshal(event)
	if err != nil {
		return reply, err
	}

	address := d.Hooks[name]
	var answer []byte
	if hook.IsEndpoint(address) {
		answer, err = hook.CallEndpoint(ctx, d.service.HookCalls, d.Key(ctx),
			hook.Webhook{URL: address, Secrets: d.Secrets[hookSecrets+name], ID: id, Body: text})
	} else {
		answer, err = hook.CallFunction(ctx, d.db.Owner(), address, text)
	}
	if err == nil {
		reply, err = hook.ParseReply(answer)
	}
	if err == nil || ctx.Err() != nil {
		return reply, err
	}

	if _, chosen := errors.AsType[*hook.Rejection](err); chosen {
		return reply, err
	}

	d.service.Log.Warn("hook of a project failed", "project", d.UUID, "hook", name, "state", pg.State(err),
		"error", err)
	if _, known := errors.AsType[*fault.Error](err); !known {
		err = fault.New(fault.Internal, "Error running hook URI: %s", address).WithCode("unexpected_failure").
			WithCause(err)
	}

	return reply, err
}

// question ends a transaction that needs the answer of a hook.
type question struct{ event any }

// Error names the hook's absence, which only a caller without txAsking would see.
func (*question) Error() string { return "a hook has not been asked" }

// txAsking is [Directory.tx] for a change that a hook may refuse. f calls consent where it needs
// the answer. If the hook is set, the transaction is rolled back there, the hook is asked, and f
// runs again if it agrees. refusal returns the failure of a reply, nil for none.
func (d *Directory) txAsking(
	ctx context.Context, change, name string, refusal func(hook.Reply) error,
	f func(ctx context.Context, tx pgx.Tx, consent func(event func() any) error) error,
) error {
	agreed := d.Hooks[name] == ""
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

		reply, err := d.ask(ctx, name, q.event)
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

	message, rejected := reply.Rejects("Further password verification attempts will be rejected.")
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
func (d *Directory) refuseFactor(ctx context.Context, user uuid.UUID, reply hook.Reply, c Client) error {
	message, rejected := reply.Rejects("Further MFA verification attempts will be rejected.")
	if !rejected {
		return nil
	}
	if _, err := d.EndSessions(ctx, user, c); err != nil {
		return err
	}

	return fault.New(fault.Forbidden, "%s", message).WithCode("mfa_verification_rejected")
}
