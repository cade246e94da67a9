package enduser

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/address"
	"github.com/socle-dev/socle/internal/enduser/rules"
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

	PasswordReference string `json:"-"` // reference to auth.passwords, see [Directory.passwordHash]
	NewStatus         int    `json:"-"` // confirmed halves of a change of the address
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
	coalesce(u.encrypted_password, '') as password_reference,
	coalesce(u.email_change_confirm_status, 0)::int as new_status `

// IsBanned reports whether the user may not sign in now.
func (u User) IsBanned() bool { return u.BannedUntil != nil && time.Now().Before(*u.BannedUntil) }

// isConfirmed reports whether the user has a confirmed address.
func (u User) isConfirmed() bool { return u.EmailConfirmedAt != nil || u.PhoneConfirmedAt != nil }

// hasVerifiedFactor reports whether a user has a factor that counts.
func hasVerifiedFactor(u User) bool {
	var factors []struct {
		Status string `json:"status"`
	}

	_ = json.Unmarshal(u.Factors, &factors) // null without factors
	for _, f := range factors {
		if f.Status == "verified" {
			return true
		}
	}

	return false
}

// language returns the member language of the user's metadata, "" if it is absent or no text.
func (u User) language() string {
	var metadata struct {
		Language any `json:"language"`
	}
	_ = json.Unmarshal(u.UserMetadata, &metadata) // an object

	language, _ := metadata.Language.(string)
	return language
}

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

// userByPhone returns a user that is not deleted. It fails with NotFound for an unknown number.
func userByPhone(ctx context.Context, q pg.Querier, phone string) (User, error) {
	return pg.One[User](ctx, q, `
		select`+userColumns+`from auth.users u where u.phone = @phone and not u.is_sso_user and u.deleted_at is null`,
		pgx.StrictNamedArgs{"phone": phone})
}

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

// cleanPhone returns a number in its stored form: digits without plus and spaces. It fails with
// Invalid.
func cleanPhone(s string) (string, error) {
	phone := strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(s), "+"), " ", "")
	if !rules.IsPhone(phone) {
		return "", errInvalid("Invalid phone number format (E.164 required)")
	}

	return phone, nil
}

// isPhone reports whether the address of a token is a number.
func isPhone(address string) bool { return !strings.Contains(address, "@") }

const maxRole = 63 // bytes; PostgreSQL's limit for names

func errRole() *fault.Error { return errInvalid("role must have at most %d bytes", maxRole) }
