package account

import (
	"context"
	"crypto/subtle"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/ratelimit"
)

// Sign-up limits.
var (
	signUpNetworkLimit = ratelimit.Limit{Name: "sign-up address", Most: 60, Window: time.Minute}
	signUpAccountLimit = ratelimit.Limit{Name: "sign-up account", Most: 30, Window: 10 * time.Minute}
)

// SignUp is a sign-up's input.
type SignUp struct {
	Username, Email, Password, Bio string

	SetupToken      string // makes the first user the administrator; may be ""
	InvitationToken string // from a mailed link; may be ""
}

// SignUp creates a user and opens a session. It fails as [Service.signUp] does.
func (s *Service) SignUp(ctx context.Context, actor Caller, client Client, in SignUp) (SignedIn, error) {
	var signedIn SignedIn
	err := s.signUp(ctx, actor, client, in, func(tx *Service, user User, hash string) error {
		var err error
		signedIn, err = tx.signIn(ctx, client, user, hash)
		return err
	})

	return signedIn, err
}

// signUp creates a user with an organization of their own, and calls f with the user and the hash
// of their password in the same transaction. The user accepts the invitation, if any. The first
// user of an install becomes its administrator, if they are on the server's machine or have the
// set-up token. It fails with Invalid if sign-up is closed to the actor, with Unprocessable on the
// invalid fields, with Conflict on username or email if one is taken, and with TooMany beyond the
// limits.
func (s *Service) signUp(
	ctx context.Context, actor Caller, client Client, in SignUp, f func(tx *Service, user User, hash string) error,
) error {
	claim := s.mayClaimInstance(client, in.SetupToken)

	invitation, err := s.invitationLink(ctx, in.InvitationToken, in.Email)
	if err != nil {
		return err
	}

	if err := s.checkSignUpOpen(ctx, actor, claim, invitation); err != nil {
		return err
	}
	if err := s.Attempts.CountFrom(ctx, signUpNetworkLimit, client.Network, signUpAccountLimit,
		foldEmail(in.Email)); err != nil {
		return err
	}

	n, err := s.newUser(ctx, in.Username, in.Email, in.Password)
	if err != nil {
		return err
	}

	n.Bio, n.Claim = in.Bio, claim
	return s.inTx(ctx, func(tx *Service) error {
		user, err := tx.CreateUser(ctx, n)
		if err != nil {
			return err
		}

		if invitation != uuid.Nil {
			if _, err := tx.acceptInvitation(ctx, invitation, user.UUID); err != nil {
				return badInvitation(err)
			}
		}

		return f(tx, user, n.PasswordHash)
	})
}

// mayClaimInstance reports whether a request may create the administrator of an instance without
// users.
func (s *Service) mayClaimInstance(client Client, setupToken string) bool {
	return client.Local || subtle.ConstantTimeCompare([]byte(setupToken), []byte(s.SetupToken)) == 1
}

// checkSignUpOpen fails with Invalid, the only refusal that the operation declares, if sign-up is
// closed to the actor.
func (s *Service) checkSignUpOpen(ctx context.Context, actor Caller, claim bool, invitation uuid.UUID) error {
	if invitation != uuid.Nil || actor.Administrator {
		return nil
	}

	settings, err := s.Store.Settings(ctx)
	if err != nil || settings.SignUp {
		return err
	}

	closed := fault.New(fault.Invalid, "sign-up is closed on this server").WithCode("sign_up_closed")
	if !claim {
		return closed
	}

	claimed, err := s.Claimed(ctx)
	if err == nil && claimed {
		return closed
	}

	return err
}

// CreateAdministrator creates an account that administrates the install, whether or not others do.
// It fails as [Service.SignUp] does for invalid and taken values.
func (s *Service) CreateAdministrator(ctx context.Context, username, email, password string) (User, error) {
	n, err := s.newUser(ctx, username, email, password)
	if err != nil {
		return User{}, err
	}

	n.Claim = true
	return pg.InTxValue(ctx, s.inTx, func(tx *Service) (User, error) {
		user, err := tx.CreateUser(ctx, n)
		if err != nil {
			return User{}, err
		}

		if _, err := pg.Exec(ctx, tx.q, `update platform.users set is_administrator = true where uuid = @id`,
			pgx.StrictNamedArgs{"id": user.UUID}); err != nil {
			return User{}, err
		}

		return tx.GetUser(ctx, user.UUID)
	})
}

// NewUser is a new user's row.
type NewUser struct {
	Username, Email, Bio string
	PasswordHash         string
	Claim                bool // becomes the administrator if the install has none
}

// newUser returns the row of a new user in its stored form. It fails with Unprocessable on the
// invalid fields.
func (s *Service) newUser(ctx context.Context, username, email, password string) (NewUser, error) {
	username, usernameErr := cleanUsername(username)
	email, emailErr := cleanEmail(email)
	if err := fault.Join(usernameErr, emailErr, s.Passwords.Check(password, email, username)); err != nil {
		return NewUser{}, err
	}

	hash, err := s.Passwords.For(httpx.Stranger(ctx)).Hash(ctx, password)
	return NewUser{Username: username, Email: email, PasswordHash: hash}, err
}

// CreateUser creates the rows of a user and of the organization that they own. It fails with
// Conflict on username or email if one is taken. The caller validates the values.
func (s *Service) CreateUser(ctx context.Context, n NewUser) (User, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return User{}, err
	}

	organization, err := uuid.NewV7()
	if err != nil {
		return User{}, err
	}

	return pg.InTxValue(ctx, s.inTx, func(tx *Service) (User, error) {
		audit.CreatedUUID(ctx, id)

		administrator, err := tx.claimAdministrator(ctx, id, n.Claim)
		if err != nil {
			return User{}, err
		}

		if err := tx.createOrganization(ctx, organization, n.Username); err != nil {
			return User{}, err
		}
		if _, err := pg.Exec(ctx, tx.q, `
			insert into platform.users (uuid, username, username_folded, email, email_folded, bio, password_hash,
				organization_uuid, is_administrator)
			values (@id, @username, @username_folded, @email, @email_folded, @bio, @hash, @organization, @administrator)`,
			pgx.StrictNamedArgs{"id": id, "username": n.Username, "username_folded": fold(n.Username),
				"email": n.Email, "email_folded": foldEmail(n.Email), "bio": n.Bio, "hash": n.PasswordHash,
				"organization": organization, "administrator": administrator}); err != nil {
			return User{}, userConflict(err)
		}
		if err := tx.addMember(ctx, organization, id, Owner); err != nil {
			return User{}, err
		}

		return tx.GetUser(ctx, id)
	})
}

// claimAdministrator makes the user the administrator if claim is set and the install has none. The
// row lock lets one of several concurrent calls succeed.
func (s *Service) claimAdministrator(ctx context.Context, user uuid.UUID, claim bool) (bool, error) {
	if !claim {
		return false, nil
	}

	n, err := pg.Exec(ctx, s.q, `
		update platform.instance set administrator_uuid = @user where administrator_uuid is null`,
		pgx.StrictNamedArgs{"user": user})
	return n == 1, err
}

// Claimed reports whether the install has an administrator.
func (s *Service) Claimed(ctx context.Context) (bool, error) {
	return pg.Value[bool](ctx, s.q, `select administrator_uuid is not null from platform.instance`)
}
