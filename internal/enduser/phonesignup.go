package enduser

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// PhoneSignUp is the input for a sign-up with a number.
type PhoneSignUp struct {
	Phone, Password string
	Data            json.RawMessage // user metadata; nil: none
	Channel         string          // sms or whatsapp; "": sms
}

// SignUpByPhone creates a user with a number and a password. A user whose number is confirmed
// already gets the same response as a new one; without confirmation, it fails with Unprocessable.
func (d *Directory) SignUpByPhone(ctx context.Context, in PhoneSignUp, c Client) (SignedUp, error) {
	switch {
	case !d.Settings.SignUp:
		return SignedUp{}, errSignUpDisabled()
	case !d.SMS.SignIn:
		return SignedUp{}, errPhoneDisabled("Phone signups are disabled")
	case isEmpty(in.Password):
		return SignedUp{}, errInvalid("Signup requires a valid password")
	}

	phone, err := cleanPhone(in.Phone)
	if err != nil {
		return SignedUp{}, err
	}
	if err := d.checkChannel(in.Channel); err != nil {
		return SignedUp{}, err
	}

	data, err := cleanMetadata("user_metadata", in.Data)
	if err != nil {
		return SignedUp{}, err
	}

	if err := d.CountRequest(ctx, d.SignInLimit(), c); err != nil {
		return SignedUp{}, err
	}

	hash, err := d.hashPassword(ctx, in.Password)
	if err != nil {
		return SignedUp{}, err
	}

	if !d.SMS.AutoConfirm {
		if err := d.countSMS(ctx, phone, c); err != nil {
			return SignedUp{}, err
		}
	}

	u, err := userByPhone(ctx, d.Rows(), phone)
	switch {
	case fault.Is(err, fault.NotFound):
		return d.signUpNewPhone(ctx, newUser{Phone: phone, PasswordHash: hash, AppMetadata: providers("phone"),
			UserMetadata: data, PhoneConfirmed: d.SMS.AutoConfirm}, in.Channel, c)
	case err != nil:
		return SignedUp{}, err
	case d.SMS.AutoConfirm:
		return SignedUp{}, errUserExists()
	}

	return d.signUpPhoneAgain(ctx, u, newUser{Phone: phone, PasswordHash: hash, UserMetadata: data}, in.Channel)
}

// signUpPhoneAgain answers a sign-up with a number that is taken. It sends another code if the
// number is not confirmed.
func (d *Directory) signUpPhoneAgain(
	ctx context.Context, u User, n newUser, channel string,
) (result SignedUp, err error) {
	result.User = d.decoy("phone", n.Phone, n.UserMetadata)
	if u.PhoneConfirmedAt == nil {
		err = d.sendPhoneCode(ctx, u, n, channel)
	}

	return result, err
}

// signUpNewPhone creates a user with a number, and opens the session if it needs no code.
func (d *Directory) signUpNewPhone(ctx context.Context, n newUser, channel string, c Client) (SignedUp, error) {
	var result SignedUp
	var o unsignedSession
	var job smsArgs
	err := d.txAdmitting(ctx, "saving new user", c, func(ctx context.Context, tx pgx.Tx, admit admission) error {
		u, err := d.admitUser(ctx, tx, n, admit, c)
		if err != nil {
			return err
		}

		if n.PhoneConfirmed {
			o, err = d.openSession(ctx, tx, u.ID, "password", c)
			return err
		}

		job, err = d.phoneSignUp(ctx, tx, u, n, true, channel)
		if err == nil {
			result.User, err = userByID(ctx, tx, u.ID)
		}

		return err
	})
	switch {
	case pg.Violates(err, usersPhoneKey) && !n.PhoneConfirmed: // another request created the user meanwhile
		other, err := userByPhone(ctx, d.Rows(), n.Phone)
		if err != nil {
			return result, err
		}

		return d.signUpPhoneAgain(ctx, other, n, channel)
	case pg.Violates(err, usersPhoneKey):
		return result, errUserExists().WithCause(err)
	case err != nil:
		return result, err
	case !n.PhoneConfirmed:
		return result, d.enqueueSMS(ctx, job)
	}

	s, err := d.signNew(ctx, o)
	return SignedUp{Session: &s, User: s.User}, err
}
