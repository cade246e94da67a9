package enduser

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// freshSession is the age up to which a session may change the password without a code.
const freshSession = 24 * time.Hour

// Reauthenticate mails a code that the user needs to change the password in an old session. A user
// without an address gets a text message.
func (d *Directory) Reauthenticate(ctx context.Context, who Identity, c Client) error {
	u, err := d.Authenticate(ctx, who)
	if err != nil {
		return err
	}
	if u.Email == "" && u.Phone != "" {
		return d.reauthenticateByPhone(ctx, u, c)
	}
	if u.Email == "" {
		return errInvalid("Reauthentication requires the user to have an email or a phone number")
	}
	if u.EmailConfirmedAt == nil {
		return fault.New(fault.Unprocessable, "Please verify your email first.").WithCode("email_not_confirmed")
	}
	if err := d.countMail(ctx, u.Email, c); err != nil {
		return err
	}

	var t oneTime
	if err := d.Tx(ctx, "sending reauthentication email", func(ctx context.Context, tx pgx.Tx) error {
		if t, err = createToken(ctx, tx, oneTime{UserID: u.ID, TokenType: reauthenticationCode, RelatesTo: u.Email,
			VerificationType: "reauthentication"}); err != nil {
			return err
		}

		return markSent(ctx, tx, u.ID, "reauthentication_sent_at")
	}); err != nil {
		return err
	}

	return d.enqueue(ctx, mailArgs{Project: d.UUID, MailKind: rules.MailReauthentication, Email: u.Email,
		Token: someUUID(t.ID)})
}

// reauthenticateByPhone sends the code that a user without an address needs to change the password.
func (d *Directory) reauthenticateByPhone(ctx context.Context, u User, c Client) error {
	if u.PhoneConfirmedAt == nil {
		return fault.New(fault.Unprocessable, "Please verify your phone first.").WithCode("phone_not_confirmed")
	}
	if err := d.countSMS(ctx, u.Phone, c); err != nil {
		return err
	}

	var job smsArgs
	if err := d.Tx(ctx, "sending code", func(ctx context.Context, tx pgx.Tx) error {
		t, err := createToken(ctx, tx, oneTime{UserID: u.ID, TokenType: reauthenticationCode, RelatesTo: u.Phone,
			VerificationType: "reauthentication"})
		if err != nil {
			return err
		}
		job = d.tokenMessage(t, "")

		return markSent(ctx, tx, u.ID, "reauthentication_sent_at")
	}); err != nil {
		return err
	}

	return d.enqueueSMS(ctx, job)
}

// checkFresh fails unless the session is recent or the reauthentication code is right, which it
// spends.
func (d *Directory) checkFresh(ctx context.Context, who Identity, u User, nonce string, c Client) error {
	if nonce == "" {
		start, err := pg.Value[time.Time](ctx, d.Rows(), `select created_at from auth.sessions where id = @id`,
			pgx.StrictNamedArgs{"id": who.Session})
		if err == nil && time.Since(start) > freshSession {
			err = fault.New(fault.Invalid, "Password update requires reauthentication").
				WithCode("reauthentication_needed")
		}

		return err
	}

	to := cmp.Or(u.Email, u.Phone)
	if err := d.attempts.CheckGuesses(ctx, rules.CodeLimit, to, c.Network); err != nil {
		return asRequestLimit(err)
	}

	var right bool
	err := d.Tx(ctx, "updating user", func(ctx context.Context, tx pgx.Tx) error {
		t, ok, err := d.findCode(ctx, tx, tokenKinds["reauthentication"], to, nonce)
		if right = ok; err != nil || !ok {
			return err
		}

		return spend(ctx, tx, t)
	})
	if err == nil && !right {
		if err := d.wrongCode(ctx, to, c); fault.Of(err).Code != errCode().Code {
			return err
		}
		err = fault.New(fault.Unprocessable, "Nonce has expired or is invalid").WithCode("reauthentication_not_valid")
	}

	return err
}
