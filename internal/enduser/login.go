package enduser

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/password"
)

// SignUp is the input of a sign-up.
type SignUp struct {
	Email, Password string
	Data            json.RawMessage // user metadata; nil: none
	Challenge       Challenge
	RedirectTo      string
}

// SignedUp is the result of a sign-up: a session, or a user without a confirmed address.
type SignedUp struct {
	Session *Session
	User    User
}

// SignUp creates a user with an address and a password. A user whose address is confirmed already
// gets the same response as a new one; without confirmation, it fails with Unprocessable.
func (d *Directory) SignUp(ctx context.Context, in SignUp, c Client) (SignedUp, error) {
	if !d.Settings.SignUp {
		return SignedUp{}, errSignUpDisabled()
	}
	if err := in.Challenge.check(); err != nil {
		return SignedUp{}, err
	}

	email, err := cleanEmail(in.Email)
	if err != nil {
		return SignedUp{}, err
	}

	data, err := cleanMetadata("user_metadata", in.Data)
	if err != nil {
		return SignedUp{}, err
	}

	if isEmpty(in.Password) {
		return SignedUp{}, errInvalid("Signup requires a valid password")
	}
	if err := d.countRequest(ctx, d.signInLimit(), c); err != nil {
		return SignedUp{}, err
	}

	hash, err := d.hashPassword(ctx, in.Password, email)
	if err != nil {
		return SignedUp{}, err
	}

	known, err := userByEmail(ctx, d.q(), email)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return SignedUp{}, err
	}

	exists := err == nil
	if exists && !d.ConfirmEmail {
		return SignedUp{}, errUserExists()
	}
	if exists && known.isConfirmed() {
		return SignedUp{User: d.decoy(email, data)}, nil
	}
	if d.ConfirmEmail {
		if err := d.countMail(ctx, email); err != nil {
			return SignedUp{}, err
		}
	}

	if exists {
		return d.signUpAgain(ctx, known, in, c)
	}

	return d.signUpNew(ctx, newUser{Email: email, PasswordHash: hash, AppMetadata: providers("email"),
		UserMetadata: data, Confirmed: !d.ConfirmEmail}, in, c)
}

func (d *Directory) signUpNew(ctx context.Context, n newUser, in SignUp, c Client) (SignedUp, error) {
	var result SignedUp
	var job *mailArgs
	err := d.tx(ctx, "saving new user", func(ctx context.Context, tx pgx.Tx) error {
		u, err := insertUser(ctx, tx, n)
		if err != nil {
			return err
		}
		if err := d.log(ctx, tx, "user_signedup", u, c); err != nil {
			return err
		}

		if !d.ConfirmEmail {
			s, err := d.openSession(ctx, tx, u.ID, "password", c)
			result = SignedUp{Session: &s, User: s.User}

			return err
		}

		job, err = d.confirmation(ctx, tx, u, in)
		if err == nil {
			result.User, err = userByID(ctx, tx, u.ID)
		}

		return err
	})
	if fault.Is(err, fault.Unprocessable) && d.ConfirmEmail { // another request created the user meanwhile
		return SignedUp{User: d.decoy(n.Email, n.UserMetadata)}, nil
	}
	if err == nil && job != nil {
		err = d.enqueue(ctx, *job)
	}

	return result, err
}

// signUpAgain mails another link to a user without a confirmed address. Neither the password nor
// the metadata change, since the two requests may be of different people.
func (d *Directory) signUpAgain(ctx context.Context, u User, in SignUp, c Client) (SignedUp, error) {
	var job *mailArgs
	err := d.tx(ctx, "saving new user", func(ctx context.Context, tx pgx.Tx) error {
		var err error
		job, err = d.confirmation(ctx, tx, u, in)
		return err
	})
	if err == nil {
		err = d.enqueue(ctx, *job)
	}

	return SignedUp{User: d.decoy(u.Email, in.Data)}, err
}

// confirmation creates the token by which a user confirms their address, and returns its mail.
func (d *Directory) confirmation(ctx context.Context, tx pgx.Tx, u User, in SignUp) (*mailArgs, error) {
	flow, err := createFlow(ctx, tx, in.Challenge, "email/signup")
	if err != nil {
		return nil, err
	}

	t, err := createToken(ctx, tx, oneTime{UserID: u.ID, TokenType: confirmationToken, RelatesTo: u.Email,
		FlowStateID: flow, VerificationType: "signup"})
	if err != nil {
		return nil, err
	}

	if err := markSent(ctx, tx, u.ID, "confirmation_sent_at"); err != nil {
		return nil, err
	}

	return &mailArgs{Project: d.UUID, MailKind: mailConfirmation, Email: u.Email, Token: someUUID(t.ID),
		RedirectTo: in.RedirectTo}, nil
}

// decoy returns a user that does not exist, for a sign-up with an address that is taken.
func (d *Directory) decoy(email string, data json.RawMessage) User {
	now := now()
	if len(data) == 0 {
		data = json.RawMessage("{}")
	}

	return User{ID: uuid.New(), Aud: "authenticated", Role: "authenticated", Email: email, ConfirmationSentAt: &now,
		AppMetadata: providers("email"), UserMetadata: data, Identities: json.RawMessage("[]"), CreatedAt: now,
		UpdatedAt: now}
}

// SignInAnonymously creates a user without credentials and opens a session.
func (d *Directory) SignInAnonymously(ctx context.Context, data json.RawMessage, c Client) (Session, error) {
	switch {
	case !d.Settings.SignUp:
		return Session{}, errSignUpDisabled()
	case !d.AnonymousSignIn:
		return Session{}, fault.New(fault.Unprocessable, "Anonymous sign-ins are disabled").
			WithCode("anonymous_provider_disabled")
	}

	data, err := cleanMetadata("user_metadata", data)
	if err != nil {
		return Session{}, err
	}
	if err := d.countRequest(ctx, d.anonymousLimit(), c); err != nil {
		return Session{}, err
	}

	var opened Session
	err = d.tx(ctx, "creating anonymous user", func(ctx context.Context, tx pgx.Tx) error {
		u, err := insertUser(ctx, tx, newUser{Anonymous: true, AppMetadata: providers(), UserMetadata: data})
		if err == nil {
			opened, err = d.openSession(ctx, tx, u.ID, "anonymous", c)
		}

		return err
	})

	return opened, err
}

// Login opens a session by an address and a password. It fails with Invalid for an unknown address
// and a wrong password alike, with TooMany beyond the limits.
func (d *Directory) Login(ctx context.Context, address, secret string, c Client) (Session, error) {
	email, err := cleanEmail(address)
	if err != nil {
		return Session{}, errCredentials()
	}

	if err := d.countRequest(ctx, d.signInLimit(), c); err != nil {
		return Session{}, err
	}
	if err := d.attempts.CheckGuesses(ctx, guessLimit, email, c.Network); err != nil {
		return Session{}, asRequestLimit(err)
	}

	u, err := userByEmail(ctx, d.q(), email)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return Session{}, err
	}

	// An unknown address has no hash; Verify takes the same time for it.
	ok, err := d.hasher().Verify(ctx, u.PasswordHash, secret)
	if err != nil {
		return Session{}, err
	}

	if !ok {
		if err := d.attempts.CountGuess(ctx, guessLimit, email, c.Network); err != nil {
			return Session{}, asRequestLimit(err)
		}
		return Session{}, errCredentials()
	}

	// Checked again, for guesses sent in parallel before the first was counted.
	if err := d.attempts.CheckGuesses(ctx, guessLimit, email, c.Network); err != nil {
		return Session{}, asRequestLimit(err)
	}

	switch {
	case u.IsBanned():
		return Session{}, errBanned()
	case d.ConfirmEmail && u.EmailConfirmedAt == nil:
		return Session{}, errNotConfirmed()
	}

	return d.openByPassword(ctx, u, secret, c)
}

func (d *Directory) openByPassword(ctx context.Context, u User, secret string, c Client) (Session, error) {
	var renewed string
	if !password.IsCurrent(u.PasswordHash) {
		var err error
		if renewed, err = d.hasher().Hash(ctx, secret); err != nil {
			return Session{}, err
		}
	}

	var opened Session
	err := d.tx(ctx, "granting user", func(ctx context.Context, tx pgx.Tx) error {
		if renewed != "" {
			if err := d.rehash(ctx, tx, u.ID, u.PasswordHash, renewed); err != nil {
				return err
			}
		}

		var err error
		opened, err = d.openSession(ctx, tx, u.ID, "password", c)
		return err
	})
	if err != nil {
		return opened, err
	}

	return opened, d.attempts.RecordNetwork(ctx, u.Email, c.Network)
}
