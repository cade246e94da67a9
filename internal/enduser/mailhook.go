package enduser

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser/message"
	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/hook"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/queue"
)

// mailEvent is the event for the hook send_email.
type mailEvent struct {
	Metadata hookMetadata `json:"metadata"`
	User     User         `json:"user"`
	Mail     mailData     `json:"email_data"`
}

// mailData has a mail's codes and link tokens. For an address change it describes two mails, and
// the contract crosses the names: Token and TokenHashNew are for the present address, TokenNew and
// TokenHash for the new one. Without a present address, Token and TokenHash are for the new one.
type mailData struct {
	Token           string `json:"token"`
	TokenHash       string `json:"token_hash"`
	RedirectTo      string `json:"redirect_to"`
	EmailActionType string `json:"email_action_type"`
	SiteURL         string `json:"site_url"` // the auth interface's base address
	TokenNew        string `json:"token_new"`
	TokenHashNew    string `json:"token_hash_new"`
}

// askToMail has the project's hook send a mail. It asks once for both mails about an address
// change.
func (d *Directory) askToMail(ctx context.Context, job *queue.Job[mailArgs]) error {
	t, u, err := d.mailToken(ctx, job.Args)
	if err != nil {
		return fault.Ignore(err, fault.NotFound) // no user, or the token was used or replaced
	}
	if t.TokenType == emailChangeCurrent {
		return nil // the mail to the new address has both
	}

	outbox, err := d.outbox()
	if err != nil {
		return err
	}
	if err := d.countFirst(ctx, outbox, job, false); err != nil {
		return err
	}

	data := mailData{Token: d.keys.code(t.ID), TokenHash: d.keys.link(t.ID), EmailActionType: t.VerificationType,
		RedirectTo: d.Redirect(job.Args.RedirectTo), SiteURL: d.Issuer()}
	if t.TokenType == emailChangeNew {
		if err := d.addCurrent(ctx, &data, t.UserID); err != nil {
			return err
		}
	}

	// The id is the token's: an attempt with a new token is a new event.
	_, err = d.askAs(ctx, rules.HookMail, t.ID,
		mailEvent{Metadata: newHookMetadata(rules.HookMail, Client{}), User: u, Mail: data})
	outbox.Record(ctx, attemptOf(job), err)
	if isDeclined(err) {
		return queue.Cancel(err)
	}

	return err
}

// addCurrent adds the code and the link for the present address if a user changes it and there is
// one to confirm.
func (d *Directory) addCurrent(ctx context.Context, data *mailData, user uuid.UUID) error {
	id, err := pg.Value[uuid.UUID](ctx, d.Rows(), `
		select id from auth.one_time_tokens where user_id = @user and token_type = @type`,
		pgx.StrictNamedArgs{"user": user, "type": emailChangeCurrent})
	if err != nil {
		return fault.Ignore(err, fault.NotFound)
	}

	data.TokenNew, data.Token = data.Token, d.keys.code(id)
	data.TokenHashNew = d.keys.link(id)

	return nil
}

// isDeclined reports whether a hook would decline a mail again.
func isDeclined(err error) bool {
	r, ok := errors.AsType[*hook.Rejection](err)
	if ok {
		return r.Status < http.StatusInternalServerError && r.Status != http.StatusTooManyRequests
	}

	return message.IsPermanent(err)
}
