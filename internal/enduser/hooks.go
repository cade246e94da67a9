package enduser

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/hook"
	"github.com/socle-dev/socle/internal/pg"
)

// hookMetadata is a member in every hook's event.
type hookMetadata struct {
	UUID      uuid.UUID `json:"uuid"`
	Time      time.Time `json:"time"`
	Name      string    `json:"name"`
	IPAddress string    `json:"ip_address,omitempty"`
}

func newHookMetadata(name string, c Client) hookMetadata {
	m := hookMetadata{UUID: uuid.New(), Time: time.Now().UTC(), Name: rules.HookEvent(name)}
	if c.Address.IsValid() {
		m.IPAddress = c.Address.String()
	}

	return m
}

// ask calls a hook that is set and returns its reply. It fails with a *[hook.Rejection] if the hook
// replies an error, and with an error of [hook.Failure] or Internal if the hook fails.
//
// A function runs on the login of the project's owner, in a transaction of its own. No hook runs
// within a transaction of the auth login: that would hold one connection and wait for another, and
// as many such requests as there are connections would wait for each other. So a change that needs
// an answer asks before it begins or after it has committed, see [Directory.txAsking].
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
		answer, err = hook.CallEndpoint(ctx, d.service.Functions.Endpoints(d.db, d.service.HookCalls), d.Key(ctx),
			hook.Webhook{URL: address, Secrets: d.Secrets.Hook(name), ID: id, Body: text})
	} else {
		answer, err = hook.CallFunction(ctx, d.db.Owner(), address, text)
	}
	if err == nil {
		reply, err = hook.ParseReply(answer)
	}
	if err == nil || ctx.Err() != nil {
		return reply, err
	}

	if _, isRejection := errors.AsType[*hook.Rejection](err); isRejection {
		return reply, err
	}

	d.service.Log.Warn("hook of a project failed", "project", d.UUID, "hook", name, "state", pg.State(err),
		"error", err)
	if _, isFault := errors.AsType[*fault.Error](err); !isFault {
		err = fault.New(fault.Internal, "Error running hook URI: %s", address).WithCode("unexpected_failure").
			WithCause(err)
	}

	return reply, err
}

// question ends a transaction that needs a hook's answer.
type question struct{ event any }

// Error names the hook's absence, which only a caller without txAsking would see.
func (*question) Error() string { return "a hook has not been asked" }

// txAsking is [Directory.Tx] for a change that a hook may refuse. f calls consent where it needs
// the answer. If the hook is set, the transaction is rolled back there, the hook is asked, and f
// runs again if it agrees. refusal returns the failure of a reply, nil for none.
func (d *Directory) txAsking(
	ctx context.Context, change, name string, refusal func(hook.Reply) error,
	f func(ctx context.Context, tx pgx.Tx, consent func(event func() any) error) error,
) error {
	consents := d.Hooks[name] == ""
	consent := func(event func() any) error {
		if consents {
			return nil
		}
		return &question{event()}
	}

	for {
		err := d.Tx(ctx, change, func(ctx context.Context, tx pgx.Tx) error { return f(ctx, tx, consent) })
		q, isQuestion := errors.AsType[*question](err)
		if !isQuestion {
			return err
		}

		reply, err := d.ask(ctx, name, q.event)
		if err == nil {
			err = refusal(reply)
		}
		if err != nil {
			return err
		}

		consents = true
	}
}

// attemptEvent is the event for hooks on passwords and second factors.
type attemptEvent struct {
	Metadata   hookMetadata `json:"metadata"`
	UserID     uuid.UUID    `json:"user_id"`
	FactorID   *uuid.UUID   `json:"factor_id,omitempty"`
	FactorType string       `json:"factor_type,omitempty"`
	Valid      bool         `json:"valid"`
}
