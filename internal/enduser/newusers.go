package enduser

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// newUser is a user to insert.
type newUser struct {
	ID             uuid.UUID
	Email          string // "" for none
	Phone          string // "" for none
	PasswordHash   string
	Role           string
	AppMetadata    json.RawMessage
	UserMetadata   json.RawMessage
	Confirmed      bool // whether the address is
	PhoneConfirmed bool
	Invited        bool
	Anonymous      bool
	BannedUntil    *time.Time
	Provider       string // provider whose identity the caller inserts; "": email
}

func (n newUser) role() string { return cmp.Or(n.Role, "authenticated") }

// preview returns the user before it is inserted.
func (n newUser) preview() User {
	return User{ID: n.ID, Aud: "authenticated", Role: n.role(), Email: n.Email, Phone: n.Phone,
		AppMetadata: n.AppMetadata, UserMetadata: n.UserMetadata, Identities: json.RawMessage("[]"),
		IsAnonymous: n.Anonymous}
}

// insertUser inserts a user with identities for address and number. The project's triggers run.
func insertUser(ctx context.Context, tx pgx.Tx, n newUser) (User, error) {
	if n.ID == uuid.Nil {
		n.ID = uuid.New() // random, since applications' pages show it
	}

	if _, err := pg.Exec(ctx, tx, `
		insert into auth.users (instance_id, id, aud, role, email, encrypted_password, email_confirmed_at, invited_at,
			raw_app_meta_data, raw_user_meta_data, created_at, updated_at, is_anonymous, banned_until, confirmation_token,
			recovery_token, email_change_token_new, email_change, phone, phone_confirmed_at)
		values ('00000000-0000-0000-0000-000000000000', @id, 'authenticated', @role, nullif(@email, ''),
			auth.store_password(nullif(@hash, '')),
			case when @confirmed then now() end, case when @invited then now() end, @app::jsonb, @data::jsonb, now(), now(),
			@anonymous, @banned, '', '', '', '', nullif(@phone, ''), case when @phone_confirmed then now() end)`,
		pgx.StrictNamedArgs{"id": n.ID, "role": n.role(), "email": n.Email, "hash": n.PasswordHash,
			"confirmed": n.Confirmed, "invited": n.Invited, "app": string(n.AppMetadata),
			"data":      string(n.UserMetadata),
			"anonymous": n.Anonymous, "banned": n.BannedUntil, "phone": n.Phone,
			"phone_confirmed": n.PhoneConfirmed}); err != nil {
		return User{}, err
	}

	if n.Email != "" && n.Provider == "" {
		if err := saveEmailIdentity(ctx, tx, n.ID, n.Email, n.Confirmed); err != nil {
			return User{}, err
		}
	}

	if n.Phone != "" {
		if err := savePhoneIdentity(ctx, tx, n.ID, n.Phone, n.PhoneConfirmed); err != nil {
			return User{}, err
		}
	}

	return userByID(ctx, tx, n.ID)
}
