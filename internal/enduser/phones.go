package enduser

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// phoneChangeToken is the kind of a one-time token that was sent to a new number.
const phoneChangeToken = "phone_change_token"

// phoneTokenKinds maps the type of a verification to the kinds of tokens that it accepts.
var phoneTokenKinds = map[string][]string{"sms": {confirmationToken}, "phone_change": {phoneChangeToken}}

// e164 matches phone numbers by E.164 in their stored form, without plus.
var e164 = regexp.MustCompile(`^[1-9][0-9]{1,14}$`)

// cleanPhone returns a number in its stored form: digits without plus and spaces. It fails with
// Invalid.
func cleanPhone(s string) (string, error) {
	phone := strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(s), "+"), " ", "")
	if !e164.MatchString(phone) {
		return "", errInvalid("Invalid phone number format (E.164 required)")
	}

	return phone, nil
}

// isPhone reports whether the address of a token is a number.
func isPhone(address string) bool { return !strings.Contains(address, "@") }

// errPhoneDisabled is the failure of a request with a number while phone numbers are off.
func errPhoneDisabled(detail string) *fault.Error {
	return fault.New(fault.Invalid, "%s", detail).WithCode("phone_provider_disabled")
}

func errPhoneExists() *fault.Error {
	return fault.New(fault.Unprocessable, "A user with this phone number has already been registered").
		WithCode("phone_exists")
}

func errPhoneNotConfirmed() *fault.Error {
	return fault.New(fault.Invalid, "Phone not confirmed").WithCode("phone_not_confirmed")
}

// userByPhone returns a user that is not deleted. It fails with NotFound for an unknown number.
func userByPhone(ctx context.Context, q pg.Querier, phone string) (User, error) {
	return pg.One[User](ctx, q, `
		select`+userColumns+`from auth.users u where u.phone = @phone and not u.is_sso_user and u.deleted_at is null`,
		pgx.StrictNamedArgs{"phone": phone})
}

// savePhoneIdentity inserts the identity of a user's number, or updates it.
func savePhoneIdentity(ctx context.Context, tx pgx.Tx, id uuid.UUID, phone string, verified bool) error {
	_, err := pg.Exec(ctx, tx, `
		insert into auth.identities as i (provider_id, user_id, identity_data, provider, last_sign_in_at, created_at, updated_at)
		values (@id::text, @id::uuid, jsonb_build_object('sub', @id::text, 'phone', @phone::text, 'email_verified', false,
			'phone_verified', @verified::boolean), 'phone', now(), now(), now())
		on conflict (provider_id, provider) do update
		set identity_data = i.identity_data || excluded.identity_data, updated_at = now()`,
		pgx.StrictNamedArgs{"id": id.String(), "phone": phone, "verified": verified})
	return err
}

// PhoneSignUp is the input of a sign-up with a number.
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

	if err := d.countRequest(ctx, d.signInLimit(), c); err != nil {
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

	known, err := userByPhone(ctx, d.q(), phone)
	switch {
	case fault.Is(err, fault.NotFound):
		return d.signUpNewPhone(ctx, newUser{Phone: phone, PasswordHash: hash, AppMetadata: providers("phone"),
			UserMetadata: data, PhoneConfirmed: d.SMS.AutoConfirm}, in.Channel, c)
	case err != nil:
		return SignedUp{}, err
	case d.SMS.AutoConfirm:
		return SignedUp{}, errUserExists()
	}

	return d.signUpPhoneAgain(ctx, known, newUser{Phone: phone, PasswordHash: hash, UserMetadata: data}, in.Channel)
}

// signUpPhoneAgain answers a sign-up with a number that is taken. It sends another code if the
// number is not confirmed.
func (d *Directory) signUpPhoneAgain(
	ctx context.Context, known User, n newUser, channel string,
) (result SignedUp, err error) {
	result.User = d.decoy("phone", n.Phone, n.UserMetadata)
	if known.PhoneConfirmedAt == nil {
		err = d.sendPhoneCode(ctx, known, n, channel)
	}

	return result, err
}

// signUpNewPhone creates a user with a number, and opens the session of one that needs no code.
func (d *Directory) signUpNewPhone(ctx context.Context, n newUser, channel string, c Client) (SignedUp, error) {
	var result SignedUp
	var o opened
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
		known, err := userByPhone(ctx, d.q(), n.Phone)
		if err != nil {
			return result, err
		}

		return d.signUpPhoneAgain(ctx, known, n, channel)
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

// PhoneCodeRequest is a request for a code to sign in.
type PhoneCodeRequest struct {
	Phone      string
	Data       json.RawMessage // user metadata of a new user
	CreateUser bool            // if the number is unknown
	Channel    string          // sms or whatsapp; "": sms
}

// SendPhoneCode sends a code to sign in. It creates the user of an unknown number if the request
// and the settings allow it.
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
	if err := d.countRequest(ctx, d.signInLimit(), c); err != nil {
		return err
	}

	u, err := userByPhone(ctx, d.q(), phone)
	unknown := fault.Is(err, fault.NotFound)
	switch {
	case err != nil && !unknown:
		return err
	case unknown && (!in.CreateUser || !d.Settings.SignUp):
		return fault.New(fault.Unprocessable, "Signups not allowed for otp").WithCode("otp_disabled")
	}

	if err := d.countSMS(ctx, phone, c); err != nil {
		return err
	}
	if !unknown {
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
		if u, err = userByPhone(ctx, d.q(), phone); err == nil {
			return d.sendPhoneCode(ctx, u, newUser{UserMetadata: data}, in.Channel)
		}
	}
	if err != nil {
		return err
	}

	return d.enqueueSMS(ctx, job)
}

// sendPhoneCode sends another code to the number of a user. n is what came with the request, which
// counts for a user who was never confirmed.
func (d *Directory) sendPhoneCode(ctx context.Context, u User, n newUser, channel string) error {
	var job smsArgs
	err := d.tx(ctx, "sending code", func(ctx context.Context, tx pgx.Tx) error {
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

// phoneSignUp creates the token of a request for a number that was never confirmed, and returns its
// message.
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

// phoneCode creates the token of a code for the number of a user, and returns its message.
func (d *Directory) phoneCode(ctx context.Context, tx pgx.Tx, u User, channel string) (smsArgs, error) {
	t, err := createToken(ctx, tx, oneTime{UserID: u.ID, TokenType: confirmationToken, RelatesTo: u.Phone,
		VerificationType: "sms"})
	if err != nil {
		return smsArgs{}, err
	}

	return d.tokenMessage(t, channel), markSent(ctx, tx, u.ID, "confirmation_sent_at")
}

// ResendPhoneCode sends a code again: of a sign-up, or of a change of the number. It does the same
// for known and unknown numbers.
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

	u, err := userByPhone(ctx, d.q(), phone)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}

	var job smsArgs
	err = d.tx(ctx, "sending code", func(ctx context.Context, tx pgx.Tx) error {
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

// LoginByPhone is [Directory.Login] with a number.
func (d *Directory) LoginByPhone(ctx context.Context, number, secret string, c Client) (Session, error) {
	if !d.SMS.SignIn {
		return Session{}, errPhoneDisabled("Phone logins are disabled")
	}

	phone, err := cleanPhone(number)
	if err != nil {
		return Session{}, errCredentials()
	}

	return d.login(ctx, phone, secret, userByPhone, c)
}
