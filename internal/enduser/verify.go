package enduser

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/pg"
)

// Verification is the input of a check of a link or a code.
type Verification struct {
	Type  string // signup, invite, magiclink, recovery, email or email_change
	Hash  string // token in a link; "" with a code
	Email string // address that the code was mailed to
	Code  string
}

// Verified is the result of a check: a session, an authorization code for the client that began the
// flow, or neither after the first half of a change of the address.
type Verified struct {
	Session  *Session
	AuthCode string

	unsigned *unsignedSession // becomes Session
}

// Verify spends a link or a code. byLink says that a browser has opened the link, so that a flow
// ends with an authorization code. It fails with Forbidden for an unknown, wrong, used or expired
// one alike.
func (d *Directory) Verify(ctx context.Context, v Verification, byLink bool, c Client) (Verified, error) {
	kinds, ok := tokenKinds[v.Type]
	if !ok || v.Type == "reauthentication" {
		return Verified{}, errInvalid("Verify requires a verification type")
	}

	email := ""
	if v.Hash == "" {
		var err error
		if email, err = cleanEmail(v.Email); err != nil {
			return Verified{}, err
		}
	}

	if err := d.CountRequest(ctx, d.CheckLimit(), c); err != nil {
		return Verified{}, err
	}
	if v.Hash == "" {
		if err := d.attempts.CheckGuesses(ctx, rules.CodeLimit, email, c.Network); err != nil {
			return Verified{}, asRequestLimit(err)
		}
	}

	var result Verified
	ok = true
	err := d.Tx(ctx, "confirming user", func(ctx context.Context, tx pgx.Tx) error {
		var t oneTime
		var err error
		if v.Hash != "" {
			t, err = d.findLink(ctx, tx, kinds, v.Hash)
		} else {
			t, ok, err = d.findCode(ctx, tx, kinds, email, v.Code)
		}
		if err != nil || !ok {
			return err
		}

		result, err = d.finishVerification(ctx, tx, t, byLink, c)
		return err
	})
	if err == nil && !ok {
		err = d.wrongCode(ctx, email, c)
	}
	if err == nil && v.Hash == "" {
		err = d.attempts.RecordNetwork(ctx, c.Network, email)
	}
	if err != nil || result.unsigned == nil {
		return result, err
	}

	s, err := d.signNew(ctx, *result.unsigned)
	result.Session = &s

	return result, err
}

// finishVerification spends a token, confirms the address and opens the session.
func (d *Directory) finishVerification(
	ctx context.Context, tx pgx.Tx, t oneTime, byLink bool, c Client,
) (Verified, error) {
	u, err := userByID(ctx, tx, t.UserID)
	if err != nil {
		return Verified{}, err
	}
	if u.DeletedAt != nil {
		return Verified{}, errCode()
	}
	if u.IsBanned() {
		return Verified{}, errBanned()
	}

	switch t.TokenType {
	case emailChangeCurrent, emailChangeNew:
		complete, err := d.confirmChange(ctx, tx, u)
		if err == nil && !complete {
			err = spend(ctx, tx, t)
		}
		if err != nil || !complete {
			return Verified{}, err
		}
	default:
		if t.RelatesTo != u.Email { // the address has changed since
			return Verified{}, errCode()
		}
		if err := d.confirmEmail(ctx, tx, u, t); err != nil {
			return Verified{}, err
		}
	}

	if err := spend(ctx, tx, t); err != nil {
		return Verified{}, err
	}

	if t.FlowStateID.Valid && byLink {
		code, err := d.issueCode(ctx, tx, t.FlowStateID.UUID, u.ID)
		return Verified{AuthCode: code}, err
	}

	o, err := d.openSession(ctx, tx, u.ID, "otp", c)
	return Verified{unsigned: &o}, err
}

// confirmEmail confirms the address of a user.
func (d *Directory) confirmEmail(ctx context.Context, tx pgx.Tx, u User, t oneTime) error {
	switch {
	case u.EmailConfirmedAt != nil:
		return nil
	case !u.isConfirmed():
		return d.takeOver(ctx, tx, u, proof{Token: t, Provider: "email"})
	}

	// The owner of the number has proved it. Only an administrator has set the address besides.
	if _, err := pg.Exec(ctx, tx, `
		update auth.users set email_confirmed_at = now(), updated_at = now(),
			encrypted_password = case when @keep then encrypted_password end
		where id = @id`,
		pgx.StrictNamedArgs{"id": u.ID,
			"keep": t.TokenType == confirmationToken && t.VerificationType != "invite"}); err != nil {
		return err
	}

	return saveEmailIdentity(ctx, tx, u.ID, u.Email, true)
}

// VerifyPhone spends a code that was sent to a number, confirms the number and opens a session. It
// fails with Forbidden for an unknown, wrong, used or expired code alike.
func (d *Directory) VerifyPhone(ctx context.Context, kind, number, code string, c Client) (Session, error) {
	kinds, ok := phoneTokenKinds[kind]
	if !ok {
		return Session{}, errInvalid("Verify requires a verification type")
	}

	phone, err := cleanPhone(number)
	if err != nil {
		return Session{}, err
	}
	if !d.SMS.SignIn {
		return Session{}, errPhoneDisabled("Phone logins are disabled")
	}
	if err := d.CountRequest(ctx, d.CheckLimit(), c); err != nil {
		return Session{}, err
	}
	if err := d.attempts.CheckGuesses(ctx, rules.CodeLimit, phone, c.Network); err != nil {
		return Session{}, asRequestLimit(err)
	}

	var o unsignedSession
	err = d.Tx(ctx, "confirming user", func(ctx context.Context, tx pgx.Tx) error {
		t, found, err := d.findCode(ctx, tx, kinds, phone, code)
		if ok = found; err != nil || !ok {
			return err
		}

		o, err = d.finishPhoneVerification(ctx, tx, t, c)
		return err
	})
	if err == nil && !ok {
		err = d.wrongCode(ctx, phone, c)
	}
	if err == nil {
		err = d.attempts.RecordNetwork(ctx, c.Network, phone)
	}
	if err != nil {
		return Session{}, err
	}

	return d.signNew(ctx, o)
}

// finishPhoneVerification spends a token, confirms the number and opens the session.
func (d *Directory) finishPhoneVerification(
	ctx context.Context, tx pgx.Tx, t oneTime, c Client,
) (unsignedSession, error) {
	if err := d.checkSignIn(ctx, tx, t.UserID); err != nil {
		return unsignedSession{}, err
	}

	u, err := userByID(ctx, tx, t.UserID)
	if err != nil {
		return unsignedSession{}, err
	}

	switch t.TokenType {
	case phoneChangeToken:
		if t.RelatesTo != u.NewPhone {
			return unsignedSession{}, errCode()
		}
		if err := setPhone(ctx, tx, u.ID, u.NewPhone); err != nil {
			return unsignedSession{}, err
		}
	default:
		if t.RelatesTo != u.Phone { // the number has changed since
			return unsignedSession{}, errCode()
		}
		if err := d.confirmPhone(ctx, tx, u, t); err != nil {
			return unsignedSession{}, err
		}
	}

	if err := spend(ctx, tx, t); err != nil {
		return unsignedSession{}, err
	}

	return d.openSession(ctx, tx, u.ID, "otp", c)
}

// confirmPhone confirms the number of a user.
func (d *Directory) confirmPhone(ctx context.Context, tx pgx.Tx, u User, t oneTime) error {
	switch {
	case u.PhoneConfirmedAt != nil:
		return nil
	case !u.isConfirmed():
		return d.takeOver(ctx, tx, u, proof{Token: t, Provider: "phone"})
	}

	return setPhone(ctx, tx, u.ID, u.Phone)
}
