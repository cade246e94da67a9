package enduser

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/address"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// User is an end user, as clients see it.
type User struct {
	ID                 uuid.UUID       `json:"id"`
	Aud                string          `json:"aud"`
	Role               string          `json:"role"`
	Email              string          `json:"email"`
	EmailConfirmedAt   *time.Time      `json:"email_confirmed_at,omitempty"`
	InvitedAt          *time.Time      `json:"invited_at,omitempty"`
	Phone              string          `json:"phone"`
	PhoneConfirmedAt   *time.Time      `json:"phone_confirmed_at,omitempty"`
	ConfirmationSentAt *time.Time      `json:"confirmation_sent_at,omitempty"`
	ConfirmedAt        *time.Time      `json:"confirmed_at,omitempty"`
	RecoverySentAt     *time.Time      `json:"recovery_sent_at,omitempty"`
	NewEmail           string          `json:"new_email,omitempty"`
	EmailChangeSentAt  *time.Time      `json:"email_change_sent_at,omitempty"`
	NewPhone           string          `json:"new_phone,omitempty"`
	PhoneChangeSentAt  *time.Time      `json:"phone_change_sent_at,omitempty"`
	LastSignInAt       *time.Time      `json:"last_sign_in_at,omitempty"`
	AppMetadata        json.RawMessage `json:"app_metadata"`
	UserMetadata       json.RawMessage `json:"user_metadata"`
	Identities         json.RawMessage `json:"identities"`
	Factors            json.RawMessage `json:"factors,omitempty"`
	CreatedAt          time.Time       `json:"created_at"`
	UpdatedAt          time.Time       `json:"updated_at"`
	BannedUntil        *time.Time      `json:"banned_until,omitempty"`
	DeletedAt          *time.Time      `json:"deleted_at,omitempty"`
	IsAnonymous        bool            `json:"is_anonymous"`

	PasswordHash string `json:"-"`
	NewStatus    int    `json:"-"` // confirmed halves of a change of the address
}

const userColumns = `
	u.id, coalesce(u.aud, '') as aud, coalesce(u.role, '') as role, coalesce(u.email, '') as email, u.email_confirmed_at,
	u.invited_at, coalesce(u.phone, '') as phone, u.phone_confirmed_at, u.confirmation_sent_at, u.confirmed_at, u.recovery_sent_at,
	coalesce(u.email_change, '') as new_email, u.email_change_sent_at,
	coalesce(u.phone_change, '') as new_phone, u.phone_change_sent_at, u.last_sign_in_at,
	coalesce(u.raw_app_meta_data, '{}') as app_metadata, coalesce(u.raw_user_meta_data, '{}') as user_metadata,
	(select coalesce(json_agg(json_build_object('identity_id', i.id, 'id', i.provider_id, 'user_id', i.user_id,
		'identity_data', i.identity_data, 'provider', i.provider, 'last_sign_in_at', i.last_sign_in_at, 'created_at', i.created_at,
		'updated_at', i.updated_at, 'email', i.email) order by i.created_at), '[]') from auth.identities i where i.user_id = u.id) as identities,
	(select json_agg(json_build_object('id', f.id, 'friendly_name', f.friendly_name, 'factor_type', f.factor_type, 'status', f.status, 'phone', f.phone,
		'created_at', f.created_at, 'updated_at', f.updated_at) order by f.created_at) from auth.mfa_factors f where f.user_id = u.id) as factors,
	coalesce(u.created_at, now()) as created_at, coalesce(u.updated_at, now()) as updated_at, u.banned_until, u.deleted_at, u.is_anonymous,
	coalesce(u.encrypted_password, '') as password_hash, coalesce(u.email_change_confirm_status, 0)::int as new_status `

// IsBanned reports whether the user may not sign in now.
func (u User) IsBanned() bool { return u.BannedUntil != nil && time.Now().Before(*u.BannedUntil) }

// isConfirmed reports whether the user has a confirmed address.
func (u User) isConfirmed() bool { return u.EmailConfirmedAt != nil || u.PhoneConfirmedAt != nil }

// userByID returns a user. It fails with NotFound for an unknown or deleted one.
func userByID(ctx context.Context, q pg.Querier, id uuid.UUID) (User, error) {
	u, err := pg.One[User](ctx, q, `select`+userColumns+`from auth.users u where u.id = @id`,
		pgx.StrictNamedArgs{"id": id})
	if fault.Is(err, fault.NotFound) {
		return u, errUserNotFound()
	}

	return u, err
}

// userByEmail returns a user that is not deleted by a canonical address. It fails with NotFound for
// an unknown one. Former releases have stored other forms of it; the canonical one is preferred.
func userByEmail(ctx context.Context, q pg.Querier, email string) (User, error) {
	return pg.One[User](ctx, q, `
		select`+userColumns+`from auth.users u
		where (u.email = any(@forms) or not (u.email is nfkc normalized) and normalize(u.email, nfkc) = any(@forms))
			and not u.is_sso_user and u.deleted_at is null
		order by array_position(@forms::text[], u.email::text), u.created_at limit 1`,
		pgx.StrictNamedArgs{"forms": address.Forms(email)})
}

// cleanEmail returns an address in its stored form, which is canonical. It fails with Invalid.
func cleanEmail(s string) (string, error) {
	if s == "" {
		return "", errInvalid("An email address is required")
	}

	email, ok := address.Clean(s)
	if !ok {
		return "", errInvalid("Unable to validate email address: invalid format")
	}

	return email, nil
}

const (
	maxMetadata = 16 << 10 // bytes of a user's metadata of either kind
	maxRole     = 63       // bytes; PostgreSQL's limit for names
)

// lockUser makes changes of a user wait for each other. It fails with Forbidden if the user was
// deleted.
func lockUser(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	n, err := pg.Exec(ctx, tx, `select from auth.users where id = @id for no key update`,
		pgx.StrictNamedArgs{"id": id})
	if err == nil && n == 0 {
		return errUserGone()
	}

	return err
}

// cleanMetadata returns a JSON object, {} for none. It fails with Invalid if that is no object or
// too large.
func cleanMetadata(name string, text json.RawMessage) (json.RawMessage, error) {
	if len(text) == 0 || string(text) == "null" {
		return json.RawMessage("{}"), nil
	}

	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return nil, errInvalid("%s must be an object", name)
	}
	if len(text) > maxMetadata {
		return nil, errInvalid("%s must have at most %d bytes", name, maxMetadata)
	}
	if !pg.StorableJSON(text) {
		return nil, errInvalid("%s must not contain null characters, lone surrogates and numbers out of range", name)
	}

	return text, nil
}

// mergeMetadata returns the members of old, replaced by those of changed. null removes a member.
func mergeMetadata(name string, old, changed json.RawMessage) (json.RawMessage, error) {
	changed, err := cleanMetadata(name, changed)
	if err != nil {
		return nil, err
	}

	var all, more map[string]json.RawMessage
	if json.Unmarshal(old, &all) != nil || all == nil {
		all = map[string]json.RawMessage{}
	}
	if err := json.Unmarshal(changed, &more); err != nil {
		return nil, err
	}

	for key, value := range more {
		if string(value) == "null" {
			delete(all, key)
			continue
		}
		all[key] = value
	}

	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}

	return cleanMetadata(name, text)
}

// newUser is a user to insert.
type newUser struct {
	ID             uuid.UUID
	Email          string // "" for none
	Phone          string // "" for none
	PasswordHash   string
	Role           string
	AppMetadata    json.RawMessage
	UserMetadata   json.RawMessage
	Confirmed      bool // the address
	PhoneConfirmed bool
	Invited        bool
	Anonymous      bool
	BannedUntil    *time.Time
	Provider       string // that has the identity, which the caller inserts; "": the address
}

func (n newUser) role() string { return cmp.Or(n.Role, "authenticated") }

// insertUser inserts a user with the identities of their address and number. Triggers of the
// project run.
func insertUser(ctx context.Context, tx pgx.Tx, n newUser) (User, error) {
	if n.ID == uuid.Nil {
		n.ID = uuid.New() // of no order, since pages of applications show it
	}

	if _, err := pg.Exec(ctx, tx, `
		insert into auth.users (instance_id, id, aud, role, email, encrypted_password, email_confirmed_at, invited_at,
			raw_app_meta_data, raw_user_meta_data, created_at, updated_at, is_anonymous, banned_until, confirmation_token,
			recovery_token, email_change_token_new, email_change, phone, phone_confirmed_at)
		values ('00000000-0000-0000-0000-000000000000', @id, 'authenticated', @role, nullif(@email, ''), nullif(@hash, ''),
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

// saveEmailIdentity inserts the identity of a user's address, or updates it.
func saveEmailIdentity(ctx context.Context, tx pgx.Tx, id uuid.UUID, email string, verified bool) error {
	_, err := pg.Exec(ctx, tx, `
		insert into auth.identities as i (provider_id, user_id, identity_data, provider, last_sign_in_at, created_at, updated_at)
		values (@id::text, @id::uuid, jsonb_build_object('sub', @id::text, 'email', @email::text, 'email_verified', @verified::boolean,
			'phone_verified', false), 'email', now(), now(), now())
		on conflict (provider_id, provider) do update
		set identity_data = i.identity_data || excluded.identity_data, updated_at = now()`,
		pgx.StrictNamedArgs{"id": id.String(), "email": email, "verified": verified})
	return err
}

// providers returns the metadata of an application that name the ways to sign in.
func providers(names ...string) json.RawMessage {
	if len(names) == 0 {
		return json.RawMessage("{}")
	}

	text, _ := json.Marshal(map[string]any{"provider": names[0], "providers": names}) // strings have no error
	return text
}

// addressProviders returns the providers of an address and a number, either of which may be absent.
func addressProviders(email, phone string) []string {
	names := []string{}
	if email != "" {
		names = append(names, "email")
	}
	if phone != "" {
		names = append(names, "phone")
	}

	return names
}
