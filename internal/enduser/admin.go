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

// AdminUpdate is a new user, or a user's change, by a project administrator. nil members change
// nothing.
type AdminUpdate struct {
	ID           uuid.UUID // id for a new user; zero: a random one
	Email        *string
	Phone        *string
	Password     *string
	PasswordHash *string // hash from another system, see [password.CheckImported]
	Role         *string
	EmailConfirm *bool
	PhoneConfirm *bool
	UserMetadata json.RawMessage
	AppMetadata  json.RawMessage
	BanDuration  *string // such as 24h; none lifts the ban
}

// addresses returns the address and the number after the change, in their stored form.
func (a AdminUpdate) addresses(email, phone string) (newEmail, newPhone string, err error) {
	if a.Email != nil && *a.Email != "" {
		if email, err = cleanEmail(*a.Email); err != nil {
			return "", "", err
		}
	}
	if a.Phone != nil && *a.Phone != "" {
		phone, err = cleanPhone(*a.Phone)
	}

	return email, phone, err
}

// ban returns when a ban ends. It reports false for no change.
func (a AdminUpdate) ban() (until *time.Time, given bool, err error) {
	if a.BanDuration == nil || *a.BanDuration == "" {
		return nil, false, nil
	}
	if *a.BanDuration == "none" {
		return nil, true, nil
	}

	duration, err := time.ParseDuration(*a.BanDuration)
	if err != nil || duration < 0 {
		return nil, false, errInvalid("invalid format for ban duration: %q", *a.BanDuration)
	}

	end := now().Add(duration)
	return &end, true, nil
}

// hash returns the new password's hash, "" if none is set.
func (a AdminUpdate) hash(ctx context.Context, d *Directory) (string, error) {
	switch {
	case a.PasswordHash != nil && *a.PasswordHash != "":
		if err := password.CheckImported(*a.PasswordHash); err != nil {
			return "", errInvalid("password_hash must be argon2id, bcrypt or $fbscrypt$ of a moderate cost")
		}
		return *a.PasswordHash, nil
	case a.Password != nil && *a.Password != "":
		return d.hashPassword(ctx, *a.Password)
	}

	return "", nil
}

// CreateUser creates a user without a mail.
func (d *Directory) CreateUser(ctx context.Context, in AdminUpdate, c Client) (User, error) {
	n := newUser{}
	var err error
	if n.Email, n.Phone, err = in.addresses("", ""); err != nil {
		return User{}, err
	}

	names := addressProviders(n.Email, n.Phone)
	if len(names) == 0 {
		return User{}, errInvalid("Cannot create a user without either an email or phone")
	}
	if n.PasswordHash, err = in.hash(ctx, d); err != nil {
		return User{}, err
	}
	if n.UserMetadata, err = cleanMetadata("user_metadata", in.UserMetadata); err != nil {
		return User{}, err
	}
	if n.AppMetadata, err = mergeMetadata("app_metadata", providers(names...), in.AppMetadata); err != nil {
		return User{}, err
	}
	if n.BannedUntil, _, err = in.ban(); err != nil {
		return User{}, err
	}
	if in.ID != uuid.Nil {
		n.ID = in.ID
	}
	if in.Role != nil {
		if n.Role = *in.Role; len(n.Role) > maxRole {
			return User{}, errRole()
		}
	}

	n.Confirmed = in.EmailConfirm != nil && *in.EmailConfirm
	n.PhoneConfirmed = in.PhoneConfirm != nil && *in.PhoneConfirm
	var result User
	err = d.Tx(ctx, "creating new user", func(ctx context.Context, tx pgx.Tx) error {
		if result, err = insertUser(ctx, tx, n); err != nil {
			return err
		}
		return d.log(ctx, tx, "user_signedup", result, c)
	})
	if pg.Violates(err, "users_pkey") {
		return result, fault.New(fault.Unprocessable, "A user with this id already exists").
			WithCode("user_already_exists").WithCause(err)
	}

	return result, err
}

// GetUser returns a user. It fails with NotFound for an unknown one.
func (d *Directory) GetUser(ctx context.Context, id uuid.UUID) (User, error) {
	return userByID(ctx, d.Rows(), id)
}

// Filter selects users.
type Filter struct {
	Search string // part of the address or the number, or the id; "": all
}

// ListUsers returns a page of users and the total count.
func (d *Directory) ListUsers(ctx context.Context, f Filter, page pg.Page) ([]User, int64, error) {
	return pg.List[User](ctx, d.Rows(), pg.Listing{
		Columns: userColumns,
		From:    `auth.users u where @search::text = '' or u.id::text = @search or strpos(u.email, lower(@search)) > 0 or strpos(u.phone, @search) > 0`,
		Sorts:   map[string]string{"createdAt": "u.created_at", "email": "u.email", "lastSignInAt": "u.last_sign_in_at"},
		Tie:     "u.id",
	}, page, pgx.StrictNamedArgs{"search": f.Search})
}

// UpdateUser changes a user. A ban ends the user's sessions at their next refresh; a new password
// ends them at once.
func (d *Directory) UpdateUser(ctx context.Context, id uuid.UUID, in AdminUpdate, c Client) (User, error) {
	old, err := userByID(ctx, d.Rows(), id)
	if err != nil {
		return User{}, err
	}

	change, err := d.prepareAdminChange(ctx, old, in)
	if err != nil {
		return User{}, err
	}

	var result User
	err = d.Tx(ctx, "updating user", func(ctx context.Context, tx pgx.Tx) error {
		u, err := pg.One[User](ctx, tx, `select`+userColumns+`from auth.users u where u.id = @id for update of u`,
			pgx.StrictNamedArgs{"id": id})
		if fault.Is(err, fault.NotFound) {
			return errUserNotFound()
		}
		if err != nil {
			return err
		}

		if err := change.save(ctx, tx, u); err != nil {
			return err
		}
		if err := change.saveIdentities(ctx, tx, u); err != nil {
			return err
		}
		if err := change.endFormer(ctx, tx, u); err != nil {
			return err
		}
		if err := d.log(ctx, tx, "user_modified", u, c); err != nil {
			return err
		}

		result, err = userByID(ctx, tx, id)
		return err
	})

	return result, err
}

// adminChange is an [AdminUpdate] with its checked members.
type adminChange struct {
	AdminUpdate
	email, phone string // after the change
	hash         string // "": the present one
	confirm      bool   // confirms the address
	confirmPhone bool
	bannedUntil  *time.Time
	changesBan   bool
}

func (d *Directory) prepareAdminChange(ctx context.Context, old User, in AdminUpdate) (adminChange, error) {
	change := adminChange{AdminUpdate: in, confirm: in.EmailConfirm != nil && *in.EmailConfirm,
		confirmPhone: in.PhoneConfirm != nil && *in.PhoneConfirm}

	var err error
	if change.email, change.phone, err = in.addresses(old.Email, old.Phone); err != nil {
		return change, err
	}
	if change.hash, err = in.hash(ctx, d); err != nil {
		return change, err
	}
	if change.bannedUntil, change.changesBan, err = in.ban(); err != nil {
		return change, err
	}
	if in.Role != nil && len(*in.Role) > maxRole {
		return change, errRole()
	}

	return change, nil
}

// save updates a user's row.
func (a adminChange) save(ctx context.Context, tx pgx.Tx, u User) error {
	appData, err := mergeMetadata("app_metadata", u.AppMetadata, a.AppMetadata)
	if err != nil {
		return err
	}

	userData, err := mergeMetadata("user_metadata", u.UserMetadata, a.UserMetadata)
	if err != nil {
		return err
	}

	_, err = pg.Exec(ctx, tx, `
		update auth.users set email = nullif(@email, ''), role = coalesce(nullif(@role, ''), role),
			encrypted_password = coalesce(auth.store_password(nullif(@hash, '')), encrypted_password),
			email_confirmed_at = case when @confirm then coalesce(email_confirmed_at, now()) else email_confirmed_at end,
			phone = nullif(@phone, ''),
			phone_confirmed_at = case when @confirm_phone then coalesce(phone_confirmed_at, now()) else phone_confirmed_at end,
			is_anonymous = is_anonymous and @email = '' and @phone = '',
			raw_app_meta_data = @app::jsonb, raw_user_meta_data = @data::jsonb,
			banned_until = case when @changes_ban then @banned::timestamptz else banned_until end, updated_at = now()
		where id = @id`,
		pgx.StrictNamedArgs{"id": u.ID, "email": a.email, "phone": a.phone, "role": a.Role, "hash": a.hash,
			"confirm": a.confirm, "confirm_phone": a.confirmPhone, "app": string(appData), "data": string(userData),
			"changes_ban": a.changesBan, "banned": a.bannedUntil})
	return err
}

// saveIdentities updates the identities for a new or confirmed address and number.
func (a adminChange) saveIdentities(ctx context.Context, tx pgx.Tx, u User) error {
	if a.email != u.Email || (a.confirm && a.email != "") {
		if err := saveEmailIdentity(ctx, tx, u.ID, a.email, a.confirm || u.EmailConfirmedAt != nil); err != nil {
			return err
		}
	}

	if a.phone == u.Phone && (!a.confirmPhone || a.phone == "") {
		return nil
	}

	if err := savePhoneIdentity(ctx, tx, u.ID, a.phone, a.confirmPhone || u.PhoneConfirmedAt != nil); err != nil {
		return err
	}

	return listProviders(ctx, tx, u.ID)
}

// endFormer ends the tokens for former addresses, and the sessions opened with a former password.
func (a adminChange) endFormer(ctx context.Context, tx pgx.Tx, u User) error {
	if a.hash != "" || a.email != u.Email || a.phone != u.Phone {
		if err := dropTokens(ctx, tx, u.ID); err != nil {
			return err
		}
	}

	if a.hash == "" {
		return nil
	}

	_, err := endSessions(ctx, tx, u.ID)
	return err
}

// DeleteUser deletes a user with everything that refers to them. soft keeps the row without the
// address, the password and the metadata, for references that must stay.
func (d *Directory) DeleteUser(ctx context.Context, id uuid.UUID, soft bool, c Client) (User, error) {
	var result User
	err := d.Tx(ctx, "deleting user", func(ctx context.Context, tx pgx.Tx) error {
		var err error
		if result, err = userByID(ctx, tx, id); err != nil {
			return err
		}
		if err := d.log(ctx, tx, "user_deleted", result, c); err != nil {
			return err
		}

		if !soft {
			_, err := pg.Exec(ctx, tx, `delete from auth.users where id = @id`, pgx.StrictNamedArgs{"id": id})
			return err
		}

		if _, err := endSessions(ctx, tx, id); err != nil {
			return err
		}
		if err := dropTokens(ctx, tx, id); err != nil {
			return err
		}

		for _, sql := range []string{
			`delete from auth.identities where user_id = @id`,
			`delete from auth.mfa_factors where user_id = @id`,
			`delete from auth.mfa_recovery_codes where user_id = @id`,
			`delete from auth.webauthn_credentials where user_id = @id`,
			`delete from auth.oauth_consents where user_id = @id`,
		} {
			if _, err := pg.Exec(ctx, tx, sql, pgx.StrictNamedArgs{"id": id}); err != nil {
				return err
			}
		}

		_, err = pg.Exec(ctx, tx, `
			update auth.users set email = id::text || '@deleted.invalid', phone = null, encrypted_password = null, email_change = '', phone_change = '',
				raw_user_meta_data = '{}', deleted_at = now(), updated_at = now() where id = @id`, pgx.StrictNamedArgs{"id": id})
		return err
	})

	return result, err
}
