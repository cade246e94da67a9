package enduser

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/password"
	"github.com/socle-dev/socle/internal/pg"
)

// UserImport is a user from another system. Dates that are nil are the import time, or absent.
type UserImport struct {
	ID               uuid.UUID
	Email            string
	Phone            string
	PasswordHash     string // see [password.CheckImported]; "": none
	Role             string // "": authenticated
	EmailConfirmedAt *time.Time
	PhoneConfirmedAt *time.Time
	InvitedAt        *time.Time
	LastSignInAt     *time.Time
	BannedUntil      *time.Time
	CreatedAt        *time.Time
	AppMetadata      json.RawMessage
	UserMetadata     json.RawMessage
	IsAnonymous      bool
	Identities       []IdentityImport // besides those for the address and the number
}

// IdentityImport is an imported user's account with a provider.
type IdentityImport struct {
	Provider   string
	ProviderID string
	Data       json.RawMessage
}

// hasOwnColumn reports whether the user has a member for what the identity says.
func (i IdentityImport) hasOwnColumn() bool { return i.Provider == "email" || i.Provider == "phone" }

// Import outcomes.
const (
	ImportCreated = "created"
	ImportExists  = "exists" // the id is known: nothing changed
	ImportFailed  = "failed"
)

// UserImported is a user's import outcome.
type UserImported struct {
	UUID    uuid.UUID `json:"uuid"`
	Outcome string    `json:"outcome" enum:"created,exists,failed"`
	Code    string    `json:"code" doc:"Code of the failure; empty otherwise."`
	Detail  string    `json:"detail" doc:"Reason of the failure; empty otherwise."`
}

// ImportUsers creates users with their ids and hashes, and leaves known ids as they are. A user
// that fails keeps no other from being created. The project's triggers run; no mail is sent.
func (d *Directory) ImportUsers(ctx context.Context, users []UserImport, c Client) ([]UserImported, error) {
	results := make([]UserImported, len(users))
	err := d.Tx(ctx, "importing users", func(ctx context.Context, tx pgx.Tx) error {
		for i, u := range users {
			results[i] = UserImported{UUID: u.ID}

			outcome, err := d.importUser(ctx, tx, u, c)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				outcome = ImportFailed
				results[i].Code, results[i].Detail = importFailure(err)
			}
			results[i].Outcome = outcome
		}

		return nil
	})

	return results, err
}

// importFailure returns a failure's code and text. PostgreSQL errors, which may quote the project's
// code, have a text of ours.
func importFailure(err error) (code, text string) {
	switch {
	case pg.Violates(err, usersEmailKey):
		err = errEmailExists()
	case pg.Violates(err, usersPhoneKey):
		err = errPhoneExists()
	case pg.Violates(err, "identities_provider_id_provider_unique"):
		err = fault.New(fault.Unprocessable, "An identity belongs to another user").WithCode("identity_already_exists")
	case pg.State(err) != "" || fault.Of(err).Kind == fault.Internal:
		err = errDatabase("saving new user")
	}

	f := fault.Of(err)
	return f.Code, f.Detail
}

// importUser creates a user in a savepoint.
func (d *Directory) importUser(ctx context.Context, outer pgx.Tx, u UserImport, c Client) (string, error) {
	if err := u.clean(); err != nil {
		return "", err
	}

	outcome := ImportExists
	err := pgx.BeginFunc(ctx, outer, func(tx pgx.Tx) error {
		n, err := pg.Exec(ctx, tx, `
			insert into auth.users (instance_id, id, aud, role, email, encrypted_password, email_confirmed_at, invited_at,
				last_sign_in_at, raw_app_meta_data, raw_user_meta_data, created_at, updated_at, is_anonymous, banned_until,
				confirmation_token, recovery_token, email_change_token_new, email_change, phone, phone_confirmed_at)
			values ('00000000-0000-0000-0000-000000000000', @id, 'authenticated', @role, nullif(@email, ''),
				auth.store_password(nullif(@hash, '')),
				@confirmed, @invited, @signed_in, @app::jsonb, @data::jsonb, coalesce(@created::timestamptz, now()), now(), @anonymous,
				@banned, '', '', '', '', nullif(@phone, ''), @phone_confirmed)
			on conflict (id) do nothing`,
			pgx.StrictNamedArgs{"id": u.ID, "role": u.Role, "email": u.Email, "hash": u.PasswordHash,
				"confirmed": u.EmailConfirmedAt, "invited": u.InvitedAt, "signed_in": u.LastSignInAt,
				"app": string(u.AppMetadata), "data": string(u.UserMetadata), "created": u.CreatedAt,
				"anonymous": u.IsAnonymous, "banned": u.BannedUntil, "phone": u.Phone,
				"phone_confirmed": u.PhoneConfirmedAt})
		if err != nil || n == 0 {
			return err
		}

		if u.Email != "" {
			if err := saveEmailIdentity(ctx, tx, u.ID, u.Email, u.EmailConfirmedAt != nil); err != nil {
				return err
			}
		}

		if u.Phone != "" {
			if err := savePhoneIdentity(ctx, tx, u.ID, u.Phone, u.PhoneConfirmedAt != nil); err != nil {
				return err
			}
		}

		for _, i := range u.Identities {
			if i.hasOwnColumn() {
				continue
			}

			if _, err := pg.Exec(ctx, tx, `
				insert into auth.identities (provider_id, user_id, identity_data, provider, created_at, updated_at)
				values (@account, @user, @data::jsonb, @provider, now(), now())`,
				pgx.StrictNamedArgs{"account": i.ProviderID, "user": u.ID, "data": string(i.Data),
					"provider": i.Provider}); err != nil {
				return err
			}
		}

		outcome = ImportCreated
		return d.log(ctx, tx, "user_signedup", User{ID: u.ID, Email: u.Email, Phone: u.Phone}, c)
	})

	return outcome, err
}

// clean checks a user and gives it its defaults.
func (u *UserImport) clean() error {
	var err error
	if u.Email != "" {
		if u.Email, err = cleanEmail(u.Email); err != nil {
			return err
		}
	}

	if u.Phone != "" {
		if u.Phone, err = cleanPhone(u.Phone); err != nil {
			return err
		}
	}

	if u.ID == uuid.Nil {
		return errInvalid("an id is required")
	}
	if u.PasswordHash != "" {
		if err := password.CheckImported(u.PasswordHash); err != nil {
			return errInvalid("password_hash must be argon2id, bcrypt or $fbscrypt$ of a moderate cost")
		}
	}
	if u.Role == "" {
		u.Role = "authenticated"
	}
	if len(u.Role) > maxRole {
		return errRole()
	}

	names := addressProviders(u.Email, u.Phone)
	for i := range u.Identities {
		if u.Identities[i].Data, err = cleanMetadata("identity_data", u.Identities[i].Data); err != nil {
			return err
		}
		if !u.Identities[i].hasOwnColumn() {
			names = append(names, u.Identities[i].Provider)
		}
	}

	if u.UserMetadata, err = cleanMetadata("user_metadata", u.UserMetadata); err != nil {
		return err
	}
	u.AppMetadata, err = mergeMetadata("app_metadata", providers(names...), u.AppMetadata)

	return err
}
