package enduser

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// PhoneCodeRequest is a request for a code to sign in.
type PhoneCodeRequest struct {
	Phone      string
	Data       json.RawMessage // a new user's metadata
	CreateUser bool            // if the number is unknown
	Channel    string          // sms or whatsapp; "": sms
}

// SendPhoneCode sends a code to sign in. It creates a user for an unknown number if the request and
// the settings allow it.
func (d *Directory) SendPhoneCode(ctx context.Context, in PhoneCodeRequest, c Client) error {
	if !d.SMS.SignIn {
		return errPhoneDisabled("Unsupported phone provider")
	}

	phone, err := cleanPhone(in.Phone)
	if err != nil {
		return err
	}
	if err := d.checkChannel(in.Channel); err != nil {
		return err
	}

	data, err := cleanMetadata("data", in.Data)
	if err != nil {
		return err
	}

	// Counted before the answer tells whether the number is known.
	if err := d.CountRequest(ctx, d.SignInLimit(), c); err != nil {
		return err
	}

	u, err := userByPhone(ctx, d.Rows(), phone)
	isNew := fault.Is(err, fault.NotFound)
	switch {
	case err != nil && !isNew:
		return err
	case isNew && (!in.CreateUser || !d.Settings.SignUp):
		return fault.New(fault.Unprocessable, "Signups not allowed for otp").WithCode("otp_disabled")
	}

	if err := d.countSMS(ctx, phone, c); err != nil {
		return err
	}
	if !isNew {
		return d.sendPhoneCode(ctx, u, newUser{UserMetadata: data}, in.Channel)
	}

	var job smsArgs
	err = d.txAdmitting(ctx, "saving new user", c, func(ctx context.Context, tx pgx.Tx, admit admission) error {
		n := newUser{Phone: phone, AppMetadata: providers("phone"), UserMetadata: data}
		u, err := d.admitUser(ctx, tx, n, admit, c)
		if err != nil {
			return err
		}

		job, err = d.phoneSignUp(ctx, tx, u, n, true, in.Channel)
		return err
	})
	if pg.Violates(err, usersPhoneKey) { // another request created the user meanwhile
		if u, err = userByPhone(ctx, d.Rows(), phone); err == nil {
			return d.sendPhoneCode(ctx, u, newUser{UserMetadata: data}, in.Channel)
		}
	}
	if err != nil {
		return err
	}

	return d.enqueueSMS(ctx, job)
}

// sendPhoneCode sends another code to a user's number. n came with the request, and counts for a
// user who was never confirmed.
func (d *Directory) sendPhoneCode(ctx context.Context, u User, n newUser, channel string) error {
	var job smsArgs
	err := d.Tx(ctx, "sending code", func(ctx context.Context, tx pgx.Tx) error {
		var err error
		if u.isConfirmed() {
			job, err = d.phoneCode(ctx, tx, u, channel)
		} else {
			job, err = d.phoneSignUp(ctx, tx, u, n, false, channel)
		}

		return err
	})
	if err != nil {
		return err
	}

	return d.enqueueSMS(ctx, job)
}

// phoneSignUp creates the token for a number that was never confirmed, and returns the message.
func (d *Directory) phoneSignUp(
	ctx context.Context, tx pgx.Tx, u User, n newUser, created bool, channel string,
) (smsArgs, error) {
	t, err := createSignUp(ctx, tx, signUpRequest{User: u.ID, Address: u.Phone, VerificationType: "sms",
		CreatedUser: created, PasswordHash: n.PasswordHash, UserMetadata: n.UserMetadata})
	if err != nil {
		return smsArgs{}, err
	}

	return d.tokenMessage(t, channel), markSent(ctx, tx, u.ID, "confirmation_sent_at")
}

// phoneCode creates the token for a user's number, and returns the message.
func (d *Directory) phoneCode(ctx context.Context, tx pgx.Tx, u User, channel string) (smsArgs, error) {
	t, err := createToken(ctx, tx, oneTime{UserID: u.ID, TokenType: confirmationToken, RelatesTo: u.Phone,
		VerificationType: "sms"})
	if err != nil {
		return smsArgs{}, err
	}

	return d.tokenMessage(t, channel), markSent(ctx, tx, u.ID, "confirmation_sent_at")
}

// ResendPhoneCode sends a code again: for a sign-up, or for a number change. It does the same for
// known and unknown numbers.
func (d *Directory) ResendPhoneCode(ctx context.Context, kind, number string, c Client) error {
	if !d.SMS.SignIn {
		return errPhoneDisabled("Phone logins are disabled")
	}

	phone, err := cleanPhone(number)
	if err != nil {
		return err
	}
	if _, ok := phoneTokenKinds[kind]; !ok {
		return errInvalid("Missing one of these types: sms, phone_change")
	}
	if err := d.countSMS(ctx, phone, c); err != nil {
		return err
	}

	u, err := userByPhone(ctx, d.Rows(), phone)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}

	var job smsArgs
	err = d.Tx(ctx, "sending code", func(ctx context.Context, tx pgx.Tx) error {
		switch {
		case kind == "sms" && u.PhoneConfirmedAt == nil:
			job, err = d.renewPhoneCode(ctx, tx, u)
		case kind == "phone_change" && u.NewPhone != "":
			job, err = d.phoneChange(ctx, tx, u, u.NewPhone, "")
		}

		return err
	})
	if err != nil || job.Phone == "" {
		return err
	}

	return d.enqueueSMS(ctx, job)
}

// renewPhoneCode gives the latest request for a number another code, and returns its message.
func (d *Directory) renewPhoneCode(ctx context.Context, tx pgx.Tx, u User) (smsArgs, error) {
	t, err := renewSignUp(ctx, tx, u.ID, u.Phone, uuid.NullUUID{})
	if fault.Is(err, fault.NotFound) {
		return d.phoneCode(ctx, tx, u, "")
	}
	if err != nil {
		return smsArgs{}, err
	}

	return d.tokenMessage(t, ""), markSent(ctx, tx, u.ID, "confirmation_sent_at")
}
