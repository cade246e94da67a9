package enduser

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

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
	if err := d.countRequest(ctx, d.checkLimit(), c); err != nil {
		return Session{}, err
	}
	if err := d.attempts.CheckGuesses(ctx, codeGuessLimit, phone, c.Network); err != nil {
		return Session{}, asRequestLimit(err)
	}

	var o opened
	err = d.tx(ctx, "confirming user", func(ctx context.Context, tx pgx.Tx) error {
		t, found, err := d.findCode(ctx, tx, kinds, phone, code)
		if ok = found; err != nil || !ok {
			return err
		}

		o, err = d.phoneVerified(ctx, tx, t, c)
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

// phoneVerified spends a token, confirms the number and opens the session.
func (d *Directory) phoneVerified(ctx context.Context, tx pgx.Tx, t oneTime, c Client) (opened, error) {
	if err := d.checkSignIn(ctx, tx, t.UserID); err != nil {
		return opened{}, err
	}

	u, err := userByID(ctx, tx, t.UserID)
	if err != nil {
		return opened{}, err
	}

	switch t.TokenType {
	case phoneChangeToken:
		if t.RelatesTo != u.NewPhone {
			return opened{}, errCode()
		}
		if err := setPhone(ctx, tx, u.ID, u.NewPhone); err != nil {
			return opened{}, err
		}
	default:
		if t.RelatesTo != u.Phone { // the number has changed since
			return opened{}, errCode()
		}
		if err := d.confirmPhone(ctx, tx, u, t); err != nil {
			return opened{}, err
		}
	}

	if err := spend(ctx, tx, t); err != nil {
		return opened{}, err
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

// setPhone gives a user a confirmed number. Codes that were sent to a former one end with it.
func setPhone(ctx context.Context, tx pgx.Tx, id uuid.UUID, phone string) error {
	if _, err := pg.Exec(ctx, tx, `
		update auth.users set phone = @phone, phone_confirmed_at = now(), phone_change = '', is_anonymous = false, updated_at = now()
		where id = @id`, pgx.StrictNamedArgs{"id": id, "phone": phone}); err != nil {
		return err
	}
	if err := dropTokens(ctx, tx, id); err != nil {
		return err
	}
	if err := savePhoneIdentity(ctx, tx, id, phone, true); err != nil {
		return err
	}

	return listProviders(ctx, tx, id)
}

// changePhone changes the number, or returns the message with a code if it must be confirmed.
func (d *Directory) changePhone(ctx context.Context, tx pgx.Tx, u User, phone, channel string) (smsArgs, error) {
	if d.SMS.AutoConfirm {
		return smsArgs{}, setPhone(ctx, tx, u.ID, phone)
	}

	return d.phoneChange(ctx, tx, u, phone, channel)
}

// phoneChange creates the token of a change of the number, and returns its message.
func (d *Directory) phoneChange(ctx context.Context, tx pgx.Tx, u User, phone, channel string) (smsArgs, error) {
	if _, err := pg.Exec(ctx, tx, `
		update auth.users set phone_change = @phone, phone_change_sent_at = now(), updated_at = now() where id = @id`,
		pgx.StrictNamedArgs{"id": u.ID, "phone": phone}); err != nil {
		return smsArgs{}, err
	}

	t, err := createToken(ctx, tx, oneTime{UserID: u.ID, TokenType: phoneChangeToken, RelatesTo: phone,
		VerificationType: "phone_change"})
	return d.tokenMessage(t, channel), err
}

// preparePhone returns the new number of an update, "" for no change. It counts its message.
func (d *Directory) preparePhone(ctx context.Context, u User, in Update, c Client) (string, error) {
	if in.Phone == "" {
		return "", nil
	}
	if !d.SMS.SignIn {
		return "", errPhoneDisabled("Unsupported phone provider")
	}

	phone, err := cleanPhone(in.Phone)
	if err != nil || phone == u.Phone {
		return "", err
	}
	if err := d.checkChannel(in.Channel); err != nil {
		return "", err
	}

	// Counted before the answer tells whether the number is taken.
	if err := d.countChange(ctx, u, c); err != nil {
		return "", err
	}
	if !d.SMS.AutoConfirm {
		if err := d.countSMS(ctx, phone, c); err != nil {
			return "", err
		}
	}

	_, err = userByPhone(ctx, d.q(), phone)
	switch {
	case err == nil:
		return "", errPhoneExists()
	case !fault.Is(err, fault.NotFound):
		return "", err
	}

	return phone, nil
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
	if err := d.tx(ctx, "sending code", func(ctx context.Context, tx pgx.Tx) error {
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
