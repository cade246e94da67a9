package enduser

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

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
		err = errCode()
	}
	if err != nil || done.opened == nil {
		return done, err
	}

	s, err := d.signNew(ctx, *done.opened)
	done.Session = &s

	return done, err
}

// verified spends a token, confirms the address and opens the session.
func (d *Directory) verified(ctx context.Context, tx pgx.Tx, t oneTime, byLink bool, c Client) (Verified, error) {
	if err := spend(ctx, tx, t); err != nil {
		return Verified{}, err
	}

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
		if err != nil || !complete {
			return Verified{}, err
		}
	default:
		if t.RelatesTo != u.Email { // the address has changed since
			return Verified{}, errCode()
		}
		if (t.TokenType == recoveryToken || t.VerificationType == "invite") && u.EmailConfirmedAt == nil {
			// A stranger may have signed up with the address before, and know the password.
			if _, err := pg.Exec(ctx, tx, `update auth.users set encrypted_password = null where id = @id`,
				pgx.StrictNamedArgs{"id": u.ID}); err != nil {
				return Verified{}, err
			}
		}
		if err := confirmEmail(ctx, tx, u); err != nil {
			return Verified{}, err
		}
	}

	if t.FlowStateID.Valid && byLink {
		code, err := d.issueCode(ctx, tx, t.FlowStateID.UUID, u.ID)
		return Verified{AuthCode: code}, err
	}

	o, err := d.openSession(ctx, tx, u.ID, "otp", c)
	return Verified{opened: &o}, err
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
	_, err := pg.Exec(ctx, tx, `delete from auth.one_time_tokens where user_id = @id`, pgx.StrictNamedArgs{"id": id})
	return err
}
