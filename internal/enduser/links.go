package enduser

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Invite creates a user and mails an invitation. It mails another one until the user has accepted.
func (d *Directory) Invite(
	ctx context.Context, address string, data json.RawMessage, redirect string, c Client,
) (User, error) {
	email, err := cleanEmail(address)
	if err != nil {
		return User{}, err
	}

	data, err = cleanMetadata("data", data)
	if err != nil {
		return User{}, err
	}

	var user User
	var t oneTime
	err = d.txFinding(ctx, "inviting user", c, func(ctx context.Context, tx pgx.Tx, admit admission) error {
		user, t, err = d.invite(ctx, tx, email, data, admit, c)
		return err
	})
	if err != nil {
		return user, err
	}

	return user, d.enqueue(ctx, mailArgs{Project: d.UUID, MailKind: rules.MailInvite, Email: email,
		Token: someUUID(t.ID), RedirectTo: redirect})
}

func (d *Directory) invite(
	ctx context.Context, tx pgx.Tx, email string, data json.RawMessage, admit admission, c Client,
) (User, oneTime, error) {
	u, err := userByEmail(ctx, tx, email)
	switch {
	case fault.Is(err, fault.NotFound):
		n := newUser{Email: email, AppMetadata: providers("email"), UserMetadata: data, Invited: true}
		if err = admit(&n); err == nil {
			u, err = insertUser(ctx, tx, n)
		}
	case err == nil && u.isConfirmed():
		return u, oneTime{}, errEmailExists()
	}
	if err != nil {
		return u, oneTime{}, err
	}

	t, err := createSignUp(ctx, tx, signUpRequest{User: u.ID, Address: u.Email, VerificationType: "invite",
		UserMetadata: data})
	if err != nil {
		return u, t, err
	}

	for _, column := range []string{"invited_at", "confirmation_sent_at"} {
		if err := markSent(ctx, tx, u.ID, column); err != nil {
			return u, t, err
		}
	}

	if err := d.log(ctx, tx, "user_invited", u, c); err != nil {
		return u, t, err
	}

	u, err = userByID(ctx, tx, u.ID)
	return u, t, err
}

// NewLink is a request for a link that the caller delivers.
type NewLink struct {
	Type       string // signup, invite, magiclink, recovery, email_change_current or email_change_new
	Email      string
	NewEmail   string
	Password   string
	Data       json.RawMessage
	RedirectTo string
}

// Link is a link with its user.
type Link struct {
	User
	ActionLink       string `json:"action_link"`
	EmailOTP         string `json:"email_otp"`
	HashedToken      string `json:"hashed_token"`
	VerificationType string `json:"verification_type"`
	RedirectTo       string `json:"redirect_to"`
}

// GenerateLink returns a link that would otherwise be mailed. It creates the user for a sign-up, an
// invitation or a magic link to an unknown address.
func (d *Directory) GenerateLink(ctx context.Context, in NewLink, c Client) (Link, error) {
	email, err := cleanEmail(in.Email)
	if err != nil {
		return Link{}, err
	}

	data, err := cleanMetadata("data", in.Data)
	if err != nil {
		return Link{}, err
	}

	n := newUser{Email: email, AppMetadata: providers("email"), UserMetadata: data}
	if in.Type == "signup" {
		if in.Password == "" {
			return Link{}, errInvalid("Signup requires a valid password")
		}
		if n.PasswordHash, err = d.hashPassword(ctx, in.Password); err != nil {
			return Link{}, err
		}
	}

	if in.NewEmail != "" {
		if in.NewEmail, err = cleanEmail(in.NewEmail); err != nil {
			return Link{}, err
		}
	}

	var u User
	var t oneTime
	err = d.txFinding(ctx, "saving new user", c, func(ctx context.Context, tx pgx.Tx, admit admission) error {
		u, t, err = d.linkToken(ctx, tx, in, n, admit, c)
		return err
	})
	if err != nil {
		return Link{}, err
	}

	redirect := d.Redirect(in.RedirectTo)
	return Link{User: u, ActionLink: d.verifyURL(t, redirect), EmailOTP: d.keys.code(t.ID),
		HashedToken: d.keys.link(t.ID), VerificationType: in.Type, RedirectTo: redirect}, nil
}

func (d *Directory) linkToken(
	ctx context.Context, tx pgx.Tx, in NewLink, n newUser, admit admission, c Client,
) (User, oneTime, error) {
	if in.Type == "invite" {
		return d.invite(ctx, tx, n.Email, n.UserMetadata, admit, c)
	}

	u, err := userByEmail(ctx, tx, n.Email)
	isNew := fault.Is(err, fault.NotFound)
	if err != nil && !isNew {
		return u, oneTime{}, err
	}

	t := oneTime{RelatesTo: n.Email, VerificationType: in.Type}
	switch in.Type {
	case "signup":
		if t.TokenType = confirmationToken; !isNew && u.isConfirmed() {
			return u, t, errEmailExists()
		}
	case "magiclink":
		t.TokenType = recoveryToken
	case "recovery":
		if t.TokenType = recoveryToken; isNew {
			return u, t, errUserNotFound()
		}
	case "email_change_current", "email_change_new":
		if isNew {
			return u, t, errUserNotFound()
		}
		if t, err = changeByLink(ctx, tx, u, in); err != nil {
			return u, t, err
		}
	default:
		return u, t, errInvalid("Invalid email action link type requested: %s", in.Type)
	}

	if isNew {
		if err := admit(&n); err != nil {
			return u, t, err
		}
		if u, err = insertUser(ctx, tx, n); err != nil {
			return u, t, err
		}
	}

	if t.UserID = u.ID; t.TokenType != emailChangeNew {
		t.RelatesTo = u.Email
	}
	if in.Type == "signup" { // a stranger may have signed up with the address before
		t, err = createSignUp(ctx, tx, signUpRequest{User: u.ID, Address: u.Email, VerificationType: "signup",
			PasswordHash: n.PasswordHash, UserMetadata: n.UserMetadata})
	} else {
		t, err = createToken(ctx, tx, t)
	}
	if err != nil {
		return u, t, err
	}

	u, err = userByID(ctx, tx, u.ID)
	return u, t, err
}

// changeByLink records a user's new address, and returns the token to create for one half of the
// change.
func changeByLink(ctx context.Context, tx pgx.Tx, u User, in NewLink) (oneTime, error) {
	t := oneTime{TokenType: emailChangeCurrent, RelatesTo: u.Email, VerificationType: "email_change"}
	if in.NewEmail == "" {
		return t, errInvalid("A valid new email is required")
	}
	if in.Type == "email_change_new" {
		t.TokenType, t.RelatesTo = emailChangeNew, in.NewEmail
	}

	_, err := pg.Exec(ctx, tx, `
		update auth.users set email_change_confirm_status = case when email_change = @email then email_change_confirm_status else 0 end,
			email_change = @email, email_change_sent_at = now(), updated_at = now() where id = @id`,
		pgx.StrictNamedArgs{"id": u.ID, "email": in.NewEmail})
	return t, err
}
