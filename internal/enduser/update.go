package enduser

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/address"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// Update is a change that a user makes to themselves. Empty members change nothing.
type Update struct {
	Email           string
	Phone           string
	Channel         string // of the code to a new number: sms or whatsapp; "": sms
	Password        string
	CurrentPassword string
	Nonce           string
	Data            json.RawMessage
	Challenge       Challenge
	RedirectTo      string
}

// freshSession is the age up to which a session may change the password without a code.
const freshSession = 24 * time.Hour

// UpdateSelf changes the signed-in user. A new address counts once it is confirmed, see
// [Directory.Verify]. A new password ends the user's other sessions, and all links and codes under
// way.
func (d *Directory) UpdateSelf(ctx context.Context, who Identity, in Update, c Client) (User, error) {
	u, err := d.authenticate(ctx, d.q(), who)
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
	var updated User
	err = d.tx(ctx, "updating user", func(ctx context.Context, tx pgx.Tx) error {
		if err := lockUser(ctx, tx, u.ID); err != nil {
			return err
		}
		if err := d.apply(ctx, tx, u.User, who, change); err != nil {
			return err
		}

		if change.email != "" {
			if jobs, err = d.changeEmail(ctx, tx, u.User, change.email, in); err != nil {
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

		updated, err = userByID(ctx, tx, u.ID)
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

	return updated, d.enqueueAll(ctx, jobs)
}

// changes are the checked members of an [Update].
type changes struct {
	email    string // differs from the present one
	phone    string // differs from the present one
	hash     string
	metadata json.RawMessage // members to merge
}

// prepare checks an update before its transaction.
func (d *Directory) prepare(
	ctx context.Context, who Identity, u authenticated, in Update, c Client,
) (change changes, err error) {
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

	if change.phone, err = d.preparePhone(ctx, u.User, in, c); err != nil {
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

// prepareEmail counts a change of the address before the answer tells whether the new one is taken.
func (d *Directory) prepareEmail(ctx context.Context, u User, email string, c Client) error {
	if err := d.countChange(ctx, u, c); err != nil {
		return err
	}
	if d.ConfirmEmail {
		if err := d.countMail(ctx, email, c); err != nil {
			return err
		}
	}

	_, err := userByEmail(ctx, d.q(), email)
	if err == nil {
		return errEmailExists()
	}

	return fault.Ignore(err, fault.NotFound)
}

// countChange counts a request for a new address or number: of the user, and of the network, since
// anonymous users are many.
func (d *Directory) countChange(ctx context.Context, u User, c Client) error {
	if err := d.countRequest(ctx, d.signInLimit(), c); err != nil {
		return err
	}
	return asRequestLimit(d.attempts.Count(ctx, changeLimit, u.ID.String()))
}

// checkPasswordChange fails unless the user may set the new password. A wrong current password
// counts as a failed log-in.
func (d *Directory) checkPasswordChange(
	ctx context.Context, who Identity, u authenticated, in Update, c Client,
) error {
	if u.IsAnonymous && in.Email == "" && in.Phone == "" {
		return fault.New(fault.Unprocessable, "Updating password of an anonymous user without an email or phone is not allowed").
			WithCode("validation_failed")
	}
	if err := d.checkPassword(in.Password); err != nil {
		return err
	}

	if in.CurrentPassword != "" {
		if err := d.attempts.Count(ctx, guessLimit.Network, u.ID.String()); err != nil {
			return asRequestLimit(err)
		}

		ok, err := d.hasher(ctx).Verify(ctx, u.PasswordHash, in.CurrentPassword)
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
func (d *Directory) apply(ctx context.Context, tx pgx.Tx, u User, who Identity, change changes) error {
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

// mergeUserMetadata merges members into the metadata of a user, under the lock of the row: tabs of
// an application change different members at once.
func mergeUserMetadata(ctx context.Context, tx pgx.Tx, id uuid.UUID, members json.RawMessage) error {
	old, err := pg.Value[json.RawMessage](ctx, tx, `
		select coalesce(raw_user_meta_data, '{}') from auth.users where id = @id for no key update`,
		pgx.StrictNamedArgs{"id": id})
	if err != nil {
		return err
	}

	merged, err := mergeMetadata("user_metadata", old, members)
	if err != nil {
		return err
	}

	_, err = pg.Exec(ctx, tx, `update auth.users set raw_user_meta_data = @data::jsonb, updated_at = now() where id = @id`,
		pgx.StrictNamedArgs{"id": id, "data": string(merged)})
	return err
}

// checkFresh fails unless the session is recent or the code of a reauthentication is right, which
// it spends.
func (d *Directory) checkFresh(ctx context.Context, who Identity, u User, nonce string, c Client) error {
	if nonce == "" {
		begun, err := pg.Value[time.Time](ctx, d.q(), `select created_at from auth.sessions where id = @id`,
			pgx.StrictNamedArgs{"id": who.Session})
		if err == nil && time.Since(begun) > freshSession {
			err = fault.New(fault.Invalid, "Password update requires reauthentication").
				WithCode("reauthentication_needed")
		}

		return err
	}

	to := cmp.Or(u.Email, u.Phone)
	if err := d.attempts.CheckGuesses(ctx, codeGuessLimit, to, c.Network); err != nil {
		return asRequestLimit(err)
	}

	var right bool
	err := d.tx(ctx, "updating user", func(ctx context.Context, tx pgx.Tx) error {
		t, ok, err := d.findCode(ctx, tx, tokenKinds["reauthentication"], to, nonce)
		if right = ok; err != nil || !ok {
			return err
		}

		return spend(ctx, tx, t)
	})
	if err == nil && !right {
		if err := d.wrongCode(ctx, to, c); fault.Of(err).Code != errCode().Code {
			return err
		}
		err = fault.New(fault.Unprocessable, "Nonce has expired or is invalid").WithCode("reauthentication_not_valid")
	}

	return err
}

// setPassword changes the hash of a password.
func setPassword(ctx context.Context, tx pgx.Tx, id uuid.UUID, hash string) error {
	_, err := pg.Exec(ctx, tx, `update auth.users set encrypted_password = @hash, updated_at = now() where id = @id`,
		pgx.StrictNamedArgs{"id": id, "hash": hash})
	return err
}

// changeEmail changes the address, or mails a link to both addresses if they must be confirmed.
func (d *Directory) changeEmail(
	ctx context.Context, tx pgx.Tx, u User, email string, in Update,
) ([]mailArgs, error) {
	if !d.ConfirmEmail {
		if _, err := pg.Exec(ctx, tx, `
			update auth.users set email = @email, email_confirmed_at = now(), is_anonymous = false, updated_at = now(),
				raw_app_meta_data = case when is_anonymous then coalesce(raw_app_meta_data, '{}') || '{"provider": "email", "providers": ["email"]}'
					else raw_app_meta_data end
			where id = @id`, pgx.StrictNamedArgs{"id": u.ID, "email": email}); err != nil {
			return nil, err
		}

		return nil, saveEmailIdentity(ctx, tx, u.ID, email, true)
	}

	flow, err := createFlow(ctx, tx, in.Challenge, "email_change")
	if err != nil {
		return nil, err
	}

	return d.changeMails(ctx, tx, u, email, flow, in.RedirectTo)
}

// changeMails creates the tokens of a change of the address, and returns their mails.
func (d *Directory) changeMails(
	ctx context.Context, tx pgx.Tx, u User, email string, flow uuid.NullUUID, redirect string,
) ([]mailArgs, error) {
	if _, err := pg.Exec(ctx, tx, `
		update auth.users set email_change = @email, email_change_sent_at = now(), email_change_confirm_status = 0, updated_at = now()
		where id = @id`, pgx.StrictNamedArgs{"id": u.ID, "email": email}); err != nil {
		return nil, err
	}

	var jobs []mailArgs
	for kind, address := range map[string]string{emailChangeNew: email, emailChangeCurrent: u.Email} {
		if address == "" {
			continue
		}

		t, err := createToken(ctx, tx, oneTime{UserID: u.ID, TokenType: kind, RelatesTo: address, FlowStateID: flow,
			VerificationType: "email_change"})
		if err != nil {
			return nil, err
		}

		jobs = append(jobs, mailArgs{Project: d.UUID, MailKind: mailEmailChange, Email: address, Token: someUUID(t.ID),
			RedirectTo: redirect})
	}

	return jobs, nil
}
