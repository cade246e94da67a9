package enduser

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/address"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/idp"
	"github.com/socle-dev/socle/internal/pg"
)

// requireLevel fails if a user with a second factor has not used it in the session.
func requireLevel(u caller) error {
	if hasVerifiedFactor(u.User) && u.AAL != "aal2" {
		return fault.New(fault.Forbidden, "AAL2 required to link or unlink an identity").WithCode("insufficient_aal")
	}

	return nil
}

// link adds a person's identity to a signed-in user. A user without an address gets the person's,
// if the provider has verified it. An anonymous user becomes a permanent one.
func (d *Directory) link(
	ctx context.Context, tx pgx.Tx, signedIn Identity, provider string, who idp.Identity, c Client,
) (uuid.UUID, error) {
	u, err := d.authenticate(ctx, tx, signedIn)
	if err != nil {
		return uuid.Nil, err
	}
	if err := requireLevel(u); err != nil {
		return uuid.Nil, err
	}

	data, err := json.Marshal(who.Data)
	if err != nil {
		return uuid.Nil, err
	}

	n, err := pg.Exec(ctx, tx, `
		insert into auth.identities (provider_id, user_id, identity_data, provider, last_sign_in_at, created_at, updated_at)
		values (@subject, @user, @data::jsonb, @provider, now(), now(), now())
		on conflict (provider_id, provider) do nothing`,
		pgx.StrictNamedArgs{"subject": who.Subject, "user": u.ID, "data": string(data), "provider": provider})
	if err != nil {
		return uuid.Nil, err
	}
	if n == 0 {
		return uuid.Nil, errLinked(ctx, tx, u.ID, provider, who.Subject)
	}

	email := ""
	if u.Email == "" && who.EmailVerified {
		if email, err = cleanEmail(who.Email); err != nil {
			return uuid.Nil, err
		}
	}

	if _, err := pg.Exec(ctx, tx, `
		update auth.users set is_anonymous = false, email = coalesce(nullif(@email, ''), email), updated_at = now(),
			email_confirmed_at = case when @email = '' then email_confirmed_at else now() end
		where id = @id`, pgx.StrictNamedArgs{"id": u.ID, "email": email}); err != nil {
		return uuid.Nil, err
	}
	if err := listProviders(ctx, tx, u.ID); err != nil {
		return uuid.Nil, err
	}

	return u.ID, d.log(ctx, tx, "identity_linked", u.User, c)
}

// errLinked reports that a user has the identity already, or that another user has it.
func errLinked(ctx context.Context, tx pgx.Tx, user uuid.UUID, provider, subject string) error {
	owner, err := pg.Value[uuid.UUID](ctx, tx, `
		select user_id from auth.identities where provider = @provider and provider_id = @subject`,
		pgx.StrictNamedArgs{"provider": provider, "subject": subject})
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}

	text := "Identity is already linked to another user"
	if owner == user {
		text = "Identity is already linked"
	}

	return fault.New(fault.Unprocessable, "%s", text).WithCode("identity_already_exists")
}

// removedIdentity is an identity that was removed.
type removedIdentity struct {
	Provider string
	Email    string
}

// UnlinkIdentity removes a signed-in user's identity, but not the last one. The password goes with
// the address identity. If the identity provided the user's address, one that another identity has
// verified replaces it.
func (d *Directory) UnlinkIdentity(ctx context.Context, who Identity, id uuid.UUID, c Client) error {
	err := d.Tx(ctx, "unlinking identity", func(ctx context.Context, tx pgx.Tx) error {
		u, err := d.authenticate(ctx, tx, who)
		if err != nil {
			return err
		}
		if err := requireLevel(u); err != nil {
			return err
		}

		// One change per user at a time, so that one identity stays.
		if err := lockUser(ctx, tx, u.ID); err != nil {
			return err
		}

		others, err := pg.Value[int64](ctx, tx, `
			select count(*) from auth.identities where user_id = @user and id <> @id`,
			pgx.StrictNamedArgs{"user": u.ID, "id": id})
		if err != nil {
			return err
		}
		if others == 0 {
			return fault.New(fault.Unprocessable, "User must have at least 1 identity after unlinking").
				WithCode("single_identity_not_deletable")
		}

		identity, err := pg.One[removedIdentity](ctx, tx, `
			delete from auth.identities where id = @id and user_id = @user returning provider, coalesce(email, '') as email`,
			pgx.StrictNamedArgs{"user": u.ID, "id": id})
		if fault.Is(err, fault.NotFound) {
			return fault.New(fault.Unprocessable, "Identity doesn't exist").WithCode("identity_not_found")
		}
		if err != nil {
			return err
		}

		return d.afterUnlink(ctx, tx, u.User, identity, c)
	})
	if err != nil && fault.Of(err).Code == "email_exists" {
		return fault.New(fault.Unprocessable, "Unable to unlink identity due to email conflict").
			WithCode("email_conflict_identity_not_deletable").WithCause(err)
	}

	return err
}

// afterUnlink removes a user's password, number or address with their identity.
func (d *Directory) afterUnlink(ctx context.Context, tx pgx.Tx, u User, identity removedIdentity, c Client) error {
	if identity.Provider == "email" {
		if _, err := pg.Exec(ctx, tx, `update auth.users set encrypted_password = null, updated_at = now() where id = @id`,
			pgx.StrictNamedArgs{"id": u.ID}); err != nil {
			return err
		}
	}
	if identity.Provider == "phone" {
		if _, err := pg.Exec(ctx, tx, `
			update auth.users set phone = null, phone_confirmed_at = null, updated_at = now() where id = @id`,
			pgx.StrictNamedArgs{"id": u.ID}); err != nil {
			return err
		}
	}

	if identity.Email != "" && address.Canonical(identity.Email) == address.Canonical(u.Email) {
		if err := replaceEmail(ctx, tx, u); err != nil {
			return err
		}
	}
	if err := listProviders(ctx, tx, u.ID); err != nil {
		return err
	}

	return d.log(ctx, tx, "identity_unlinked", u, c)
}

// replaceEmail sets a user's address to one that an identity has verified, the present one if
// possible, or to none. Links that were mailed to the former address end.
func replaceEmail(ctx context.Context, tx pgx.Tx, u User) error {
	emails, err := pg.Values[string](ctx, tx, `
		select i.identity_data ->> 'email' from auth.identities i
		where i.user_id = @user and i.identity_data ->> 'email_verified' = 'true' and i.email <> ''
		order by i.created_at, i.id`, pgx.StrictNamedArgs{"user": u.ID})
	if err != nil {
		return err
	}

	email := ""
	for _, one := range emails {
		clean, ok := address.Clean(one)
		if slices.Contains(address.Forms(clean), u.Email) {
			return nil
		}
		if ok && email == "" {
			email = clean
		}
	}

	if _, err := pg.Exec(ctx, tx, `
		update auth.users set email = nullif(@email, ''), email_confirmed_at = case when @email = '' then null else now() end,
			email_change = '', updated_at = now()
		where id = @id`, pgx.StrictNamedArgs{"id": u.ID, "email": email}); err != nil {
		return err
	}

	return dropTokens(ctx, tx, u.ID)
}
