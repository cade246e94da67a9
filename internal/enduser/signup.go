package enduser

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
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
	if err := d.CountRequest(ctx, d.SignInLimit(), c); err != nil {
		return SignedUp{}, err
	}

	hash, err := d.hashPassword(ctx, in.Password)
	if err != nil {
		return SignedUp{}, err
	}

	u, err := userByEmail(ctx, d.Rows(), email)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return SignedUp{}, err
	}

	exists := err == nil
	if exists && !d.ConfirmEmail {
		return SignedUp{}, errUserExists()
	}
	if d.ConfirmEmail {
		if err := d.countMail(ctx, email, c); err != nil {
			return SignedUp{}, err
		}
	}

	n := newUser{Email: email, PasswordHash: hash, AppMetadata: providers("email"), UserMetadata: data,
		Confirmed: !d.ConfirmEmail}
	if exists {
		return SignedUp{User: d.decoy("email", email, data)}, d.signUpAgain(ctx, u, n, in, c)
	}

	return d.signUpNew(ctx, n, in, c)
}

func (d *Directory) signUpNew(ctx context.Context, n newUser, in SignUp, c Client) (SignedUp, error) {
	var result SignedUp
	var o unsignedSession
	var job *mailArgs
	err := d.txAdmitting(ctx, "saving new user", c, func(ctx context.Context, tx pgx.Tx, admit admission) error {
		u, err := d.admitUser(ctx, tx, n, admit, c)
		if err != nil {
			return err
		}

		if !d.ConfirmEmail {
			o, err = d.openSession(ctx, tx, u.ID, "password", c)
			return err
		}

		job, err = d.confirmation(ctx, tx, u, n, in)
		if err == nil {
			result.User, err = userByID(ctx, tx, u.ID)
		}

		return err
	})
	switch {
	case pg.Violates(err, usersEmailKey) && d.ConfirmEmail: // another request created the user meanwhile
		other, err := userByEmail(ctx, d.Rows(), n.Email)
		if err != nil {
			return result, err
		}

		return SignedUp{User: d.decoy("email", n.Email, n.UserMetadata)}, d.signUpAgain(ctx, other, n, in, c)
	case pg.Violates(err, usersEmailKey):
		return result, errUserExists().WithCause(err)
	case err != nil:
		return result, err
	case job != nil:
		return result, d.enqueue(ctx, *job)
	}

	s, err := d.signNew(ctx, o)
	return SignedUp{Session: &s, User: s.User}, err
}

// signUpAgain answers a sign-up with an address that is taken. It mails another link if the address
// is not confirmed: a request does the same in both cases, and the job finds no token in the other.
// The user stays as it is until a link is opened, since the requests may be of different people.
func (d *Directory) signUpAgain(ctx context.Context, u User, n newUser, in SignUp, c Client) error {
	job := mailArgs{Project: d.UUID, MailKind: rules.MailConfirmation, Email: u.Email, RedirectTo: in.RedirectTo}
	err := d.Tx(ctx, "saving new user", func(ctx context.Context, tx pgx.Tx) error {
		flow, err := createFlow(ctx, tx, in.Challenge, "email/signup")
		if err != nil {
			return err
		}

		t, err := createSignUp(ctx, tx, signUpRequest{User: u.ID, Address: u.Email, VerificationType: "signup",
			PasswordHash: n.PasswordHash, UserMetadata: n.UserMetadata, Flow: flow})
		if err != nil {
			return err
		}
		job.Token = someUUID(t.ID)

		return d.log(ctx, tx, "user_repeated_signup", u, c)
	})
	if err != nil {
		return err
	}

	return d.enqueue(ctx, job)
}

// confirmation creates the token by which a new user confirms their address, and returns its mail.
func (d *Directory) confirmation(ctx context.Context, tx pgx.Tx, u User, n newUser, in SignUp) (*mailArgs, error) {
	flow, err := createFlow(ctx, tx, in.Challenge, "email/signup")
	if err != nil {
		return nil, err
	}

	t, err := createSignUp(ctx, tx, signUpRequest{User: u.ID, Address: u.Email, VerificationType: "signup",
		CreatedUser: true, PasswordHash: n.PasswordHash, UserMetadata: n.UserMetadata, Flow: flow})
	if err != nil {
		return nil, err
	}

	if err := markSent(ctx, tx, u.ID, "confirmation_sent_at"); err != nil {
		return nil, err
	}

	return &mailArgs{Project: d.UUID, MailKind: rules.MailConfirmation, Email: u.Email, Token: someUUID(t.ID),
		RedirectTo: in.RedirectTo}, nil
}

// decoy returns a user that does not exist, for a sign-up with a taken address or number. provider
// is email or phone.
func (d *Directory) decoy(provider, address string, data json.RawMessage) User {
	now, id := now(), uuid.New()
	u := User{ID: id, Aud: "authenticated", Role: "authenticated", ConfirmationSentAt: &now,
		AppMetadata: providers(provider), UserMetadata: data, CreatedAt: now, UpdatedAt: now}
	identity := map[string]any{"identity_id": uuid.New(), "id": id, "user_id": id, "provider": provider, "email": nil,
		"identity_data":   map[string]any{"sub": id, provider: address, "email_verified": false, "phone_verified": false},
		"last_sign_in_at": postgresTime(now), "created_at": postgresTime(now), "updated_at": postgresTime(now)}

	if provider == "phone" {
		u.Phone = address
	} else {
		u.Email, identity["email"] = address, address
	}

	u.Identities, _ = json.Marshal([]any{identity}) // texts and times have no error
	return u
}

// postgresTime returns a time as PostgreSQL writes it in JSON.
func postgresTime(t time.Time) string { return t.Format("2006-01-02T15:04:05.999999-07:00") }

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
	if err := d.CountRequest(ctx, d.AnonymousLimit(), c); err != nil {
		return Session{}, err
	}

	var o unsignedSession
	err = d.txAdmitting(ctx, "creating anonymous user", c, func(ctx context.Context, tx pgx.Tx, admit admission) error {
		n := newUser{Anonymous: true, AppMetadata: providers(), UserMetadata: data}
		if err := admit(&n); err != nil {
			return err
		}

		u, err := insertUser(ctx, tx, n)
		if err == nil {
			o, err = d.openSession(ctx, tx, u.ID, "anonymous", c)
		}

		return err
	})
	if err != nil {
		return Session{}, err
	}

	return d.signNew(ctx, o)
}
