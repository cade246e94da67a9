package enduser

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/address"
	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Update is a change that a user makes to themselves. Empty members change nothing.
type Update struct {
	Email           string
	Phone           string
	Channel         string // channel for the code to a new number: sms or whatsapp; "": sms
	Password        string
	CurrentPassword string
	Nonce           string
	Data            json.RawMessage
	Challenge       Challenge
	RedirectTo      string
}

// UpdateSelf changes the signed-in user. A new address counts once it is confirmed, see
// [Directory.Verify]. A new password ends the user's other sessions, and all links and codes under
// way.
func (d *Directory) UpdateSelf(ctx context.Context, who Identity, in Update, c Client) (User, error) {
	u, err := d.authenticate(ctx, d.Rows(), who)
	if err != nil {
		return User{}, err
	}
	if err := in.Challenge.check(); err != nil {
		return User{}, err
	}

	change, err := d.prepare(ctx, who, u, in, c)
	if err != nil {
		return User{}, err
	}

	var jobs []mailArgs
	var sms smsArgs
	var result User
	err = d.Tx(ctx, "updating user", func(ctx context.Context, tx pgx.Tx) error {
		if err := lockUser(ctx, tx, u.ID); err != nil {
			return err
		}
		if err := d.apply(ctx, tx, u.User, who, change); err != nil {
			return err
		}

		if change.email != "" {
			if jobs, err = d.changeEmail(ctx, tx, u.User, change.email, in.Challenge, in.RedirectTo); err != nil {
				return err
			}
		}

		if change.phone != "" {
			if sms, err = d.changePhone(ctx, tx, u.User, change.phone, in.Channel); err != nil {
				return err
			}
		}

		if err := d.log(ctx, tx, "user_modified", u.User, c); err != nil {
			return err
		}

		result, err = userByID(ctx, tx, u.ID)
		return err
	})
	if err != nil {
		return User{}, err
	}

	if sms.Phone != "" {
		if err := d.enqueueSMS(ctx, sms); err != nil {
			return User{}, err
		}
	}

	return result, d.enqueueAll(ctx, jobs)
}

// selfChange has the checked members of an [Update].
type selfChange struct {
	email    string // differs from the present one
	phone    string // differs from the present one
	hash     string
	metadata json.RawMessage // members to merge
}

// prepare checks an update before its transaction.
func (d *Directory) prepare(
	ctx context.Context, who Identity, u caller, in Update, c Client,
) (change selfChange, err error) {
	if in.Email != "" {
		if change.email, err = cleanEmail(in.Email); err != nil {
			return change, err
		}
		if slices.Contains(address.Forms(change.email), u.Email) {
			change.email = ""
		}
	}

	if (change.email != "" || in.Phone != "" || in.Password != "") && u.AAL != "aal2" && hasVerifiedFactor(u.User) {
		return change, fault.New(fault.Unauthenticated,
			"AAL2 session is required to update email or password when MFA is enabled.").WithCode("insufficient_aal")
	}

	if change.email != "" {
		if err := d.prepareEmail(ctx, u.User, change.email, c); err != nil {
			return change, err
		}
	}

	if change.phone, err = d.preparePhone(ctx, u.User, in.Phone, in.Channel, c); err != nil {
		return change, err
	}

	if in.Data != nil {
		if change.metadata, err = cleanMetadata("user_metadata", in.Data); err != nil {
			return change, err
		}
	}

	if in.Password == "" {
		return change, nil
	}

	if err := d.checkPasswordChange(ctx, who, u, in, c); err != nil {
		return change, err
	}

	change.hash, err = d.hashPassword(ctx, in.Password)
	return change, err
}

// checkPasswordChange fails unless the user may set the new password. A wrong current password
// counts as a failed log-in.
func (d *Directory) checkPasswordChange(
	ctx context.Context, who Identity, u caller, in Update, c Client,
) error {
	if u.IsAnonymous && in.Email == "" && in.Phone == "" {
		return fault.New(fault.Unprocessable, "Updating password of an anonymous user without an email or phone is not allowed").
			WithCode("validation_failed")
	}
	if err := d.CheckPassword(in.Password); err != nil {
		return err
	}

	if in.CurrentPassword != "" {
		if err := d.attempts.Count(ctx, rules.PasswordLimit.Network, u.ID.String()); err != nil {
			return asRequestLimit(err)
		}

		hash, err := d.passwordHash(ctx, u.PasswordReference)
		if err != nil {
			return err
		}
		ok, err := d.verifyPassword(ctx, hash, in.CurrentPassword)
		if err != nil {
			return err
		}
		if !ok {
			return errCredentials()
		}
	}

	if err := d.samePassword(ctx, u.User, in.Password); err != nil {
		return err
	}

	return d.checkFresh(ctx, who, u.User, in.Nonce, c)
}

// apply changes the password and the metadata.
func (d *Directory) apply(ctx context.Context, tx pgx.Tx, u User, who Identity, change selfChange) error {
	if change.metadata != nil {
		if err := mergeUserMetadata(ctx, tx, u.ID, change.metadata); err != nil {
			return err
		}
	}

	if change.hash == "" {
		return nil
	}

	if err := setPassword(ctx, tx, u.ID, change.hash); err != nil {
		return err
	}

	// With an older link, a reader of the user's mails would set another password.
	if err := dropTokens(ctx, tx, u.ID); err != nil {
		return err
	}
	if _, err := pg.Exec(ctx, tx, `delete from auth.flow_state where user_id = @user`,
		pgx.StrictNamedArgs{"user": u.ID}); err != nil {
		return err
	}

	_, err := pg.Exec(ctx, tx, `delete from auth.sessions where user_id = @user and id <> @session`,
		pgx.StrictNamedArgs{"user": u.ID, "session": who.Session})
	return err
}
