package enduser

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// LinkRequest is a request for a mail with a link and a code.
type LinkRequest struct {
	Email      string
	Data       json.RawMessage // a new user's metadata
	CreateUser bool            // if the address is unknown
	Challenge  Challenge
	RedirectTo string
}

// Recover mails a link to set a new password. It does the same for known and unknown addresses.
func (d *Directory) Recover(ctx context.Context, in LinkRequest, c Client) error {
	return d.mailIfKnown(ctx, in, rules.MailRecovery, "recovery", c)
}

// Resend mails a link again: for a sign-up, or for an address change. It does the same for known
// and unknown addresses.
func (d *Directory) Resend(ctx context.Context, kind string, in LinkRequest, c Client) error {
	switch kind {
	case "signup":
		return d.mailIfKnown(ctx, in, rules.MailConfirmation, "email/signup", c)
	case "email_change":
		return d.mailIfKnown(ctx, in, rules.MailEmailChange, "email_change", c)
	}

	return errInvalid("Missing one of these types: signup, email_change")
}

// mailIfKnown has a job mail a link, if the address is known by then.
func (d *Directory) mailIfKnown(ctx context.Context, in LinkRequest, kind, method string, c Client) error {
	email, err := cleanEmail(in.Email)
	if err != nil {
		return err
	}
	if err := in.Challenge.check(); err != nil {
		return err
	}
	if err := d.CountRequest(ctx, d.SignInLimit(), c); err != nil {
		return err
	}
	if err := d.countMail(ctx, email, c); err != nil {
		return err
	}

	flow, err := createFlow(ctx, d.Rows(), in.Challenge, method)
	if err != nil {
		return err
	}

	return d.enqueue(ctx, mailArgs{Project: d.UUID, MailKind: kind, Email: email, Flow: flow,
		RedirectTo: in.RedirectTo})
}

// SendCode mails a link and a code to sign in. It creates a user for an unknown address if the
// request and the settings allow it.
func (d *Directory) SendCode(ctx context.Context, in LinkRequest, c Client) error {
	email, err := cleanEmail(in.Email)
	if err != nil {
		return err
	}

	data, err := cleanMetadata("data", in.Data)
	if err != nil {
		return err
	}

	if err := in.Challenge.check(); err != nil {
		return err
	}
	if err := d.CountRequest(ctx, d.SignInLimit(), c); err != nil {
		return err
	}

	u, err := userByEmail(ctx, d.Rows(), email)
	isNew := fault.Is(err, fault.NotFound)
	switch {
	case err != nil && !isNew:
		return err
	case isNew && (!in.CreateUser || !d.Settings.SignUp):
		return fault.New(fault.Unprocessable, "Signups not allowed for otp").WithCode("otp_disabled")
	}

	if err := d.countMail(ctx, email, c); err != nil {
		return err
	}
	if !isNew {
		return d.sendCodeAgain(ctx, u, in, data, c)
	}

	var job *mailArgs
	err = d.txAdmitting(ctx, "saving new user", c, func(ctx context.Context, tx pgx.Tx, admit admission) error {
		n := newUser{Email: email, AppMetadata: providers("email"), UserMetadata: data}
		u, err := d.admitUser(ctx, tx, n, admit, c)
		if err != nil {
			return err
		}

		job, err = d.confirmation(ctx, tx, u, n, SignUp{Challenge: in.Challenge, RedirectTo: in.RedirectTo})
		return err
	})
	if pg.Violates(err, usersEmailKey) { // another request created the user meanwhile
		if u, err = userByEmail(ctx, d.Rows(), email); err == nil {
			return d.sendCodeAgain(ctx, u, in, data, c)
		}
	}
	if err != nil {
		return err
	}

	return d.enqueue(ctx, *job)
}

// sendCodeAgain mails a link and a code to a user. Like the first request, which creates the user,
// it commits a change: the time of a response does not tell the two apart.
func (d *Directory) sendCodeAgain(
	ctx context.Context, u User, in LinkRequest, data json.RawMessage, c Client,
) error {
	job := mailArgs{Project: d.UUID, MailKind: rules.MailMagicLink, Email: u.Email, RedirectTo: in.RedirectTo}
	err := d.Tx(ctx, "sending email", func(ctx context.Context, tx pgx.Tx) error {
		flow, err := createFlow(ctx, tx, in.Challenge, "magiclink")
		if err != nil {
			return err
		}

		var t oneTime
		if u.EmailConfirmedAt == nil {
			t, err = createSignUp(ctx, tx, signUpRequest{User: u.ID, Address: u.Email, VerificationType: "magiclink",
				UserMetadata: data, Flow: flow})
		} else {
			t, err = createToken(ctx, tx, oneTime{UserID: u.ID, TokenType: recoveryToken, RelatesTo: u.Email,
				FlowStateID: flow, VerificationType: "magiclink"})
		}
		if err != nil {
			return err
		}
		job.Token = someUUID(t.ID)

		if err := markSent(ctx, tx, u.ID, "recovery_sent_at"); err != nil {
			return err
		}

		return d.log(ctx, tx, "user_recovery_requested", u, c)
	})
	if err != nil {
		return err
	}

	return d.enqueue(ctx, job)
}
