package enduser

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
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

	opened *opened // whose tokens are Session
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

	if err := d.countRequest(ctx, d.checkLimit(), c); err != nil {
		return Verified{}, err
	}
	if v.Hash == "" {
		if err := d.attempts.CheckGuesses(ctx, codeGuessLimit, email, c.Network); err != nil {
			return Verified{}, asRequestLimit(err)
		}
	}

	var done Verified
	ok = true
	err := d.tx(ctx, "confirming user", func(ctx context.Context, tx pgx.Tx) error {
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

		done, err = d.verified(ctx, tx, t, byLink, c)
		return err
	})
	if err == nil && !ok {
		err = d.wrongCode(ctx, email, c)
	}
	if err == nil && v.Hash == "" {
		err = d.attempts.RecordNetwork(ctx, c.Network, email)
	}
	if err != nil || done.opened == nil {
		return done, err
	}

	s, err := d.signNew(ctx, *done.opened)
	done.Session = &s

	return done, err
}

// wrongCode charges a wrong code to the network that has sent it, and returns its failure.
func (d *Directory) wrongCode(ctx context.Context, address string, c Client) error {
	if err := d.attempts.CountGuess(ctx, codeGuessLimit, address, c.Network); err != nil &&
		!fault.Is(err, fault.TooMany) {
		return err
	}
	return errCode()
}

// verified spends a token, confirms the address and opens the session.
func (d *Directory) verified(ctx context.Context, tx pgx.Tx, t oneTime, byLink bool, c Client) (Verified, error) {
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
	return Verified{opened: &o}, err
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

// confirmChange counts a confirmed half of a change of the address, and changes it when both
// addresses have confirmed. A user without an address confirms the new one only.
func (d *Directory) confirmChange(ctx context.Context, tx pgx.Tx, u User) (complete bool, err error) {
	if u.NewEmail == "" {
		return false, errCode()
	}

	if u.Email != "" && u.NewStatus == 0 {
		_, err := pg.Exec(ctx, tx, `
			update auth.users set email_change_confirm_status = 1, updated_at = now() where id = @id`,
			pgx.StrictNamedArgs{"id": u.ID})
		return false, err
	}

	if _, err := pg.Exec(ctx, tx, `
		update auth.users set email = email_change, email_change = '', email_change_confirm_status = 0, is_anonymous = false,
			email_confirmed_at = now(), updated_at = now(),
			raw_app_meta_data = case when is_anonymous then coalesce(raw_app_meta_data, '{}') || '{"provider": "email", "providers": ["email"]}'
				else raw_app_meta_data end
		where id = @id`, pgx.StrictNamedArgs{"id": u.ID}); err != nil {
		return false, err
	}

	if err := dropTokens(ctx, tx, u.ID); err != nil {
		return false, err
	}

	return true, saveEmailIdentity(ctx, tx, u.ID, u.NewEmail, true)
}

// dropTokens deletes all one-time tokens of a user. Those mailed to a former address end with it.
func dropTokens(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	if _, err := pg.Exec(ctx, tx, `delete from auth.one_time_tokens where user_id = @id`,
		pgx.StrictNamedArgs{"id": id}); err != nil {
		return err
	}

	_, err := pg.Exec(ctx, tx, `delete from auth.sign_ups where user_id = @id`, pgx.StrictNamedArgs{"id": id})
	return err
}
