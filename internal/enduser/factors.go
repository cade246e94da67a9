package enduser

import (
	"cmp"
	"context"
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

const (
	maxFactors      = 10 // per user
	maxChallenges   = 20 // per factor
	maxFriendlyName = 100
	challengeTTL    = 5 * time.Minute
	enrollmentTTL   = 5 * time.Minute // for an unverified factor without a challenge
)

// Factor types.
const (
	factorTOTP     = "totp"
	factorPhone    = "phone"
	factorWebAuthn = "webauthn"
)

// factorMethods are the authentication methods by factors in access tokens.
var factorMethods = map[string]string{factorTOTP: "totp", factorPhone: "mfa/phone",
	factorWebAuthn: "mfa/webauthn"}

// Factor is a user's second factor.
type Factor struct {
	ID           uuid.UUID `json:"id"`
	FriendlyName string    `json:"friendly_name"`
	FactorType   string    `json:"factor_type"`
	Status       string    `json:"status"`
	Phone        string    `json:"phone,omitempty"`
	CreatedAt    time.Time `json:"created_at"`
	UpdatedAt    time.Time `json:"updated_at"`
}

// factorRow is a factor with its secret.
type factorRow struct {
	Factor
	UserID   uuid.UUID
	Secret   string
	LastStep int64
}

const factorColumns = ` f.id, coalesce(f.friendly_name, '') as friendly_name, f.factor_type, f.status, coalesce(f.phone, '') as phone, f.created_at, f.updated_at `

// Enrolled is a new factor with its secret, which is shown once.
type Enrolled struct {
	ID           uuid.UUID
	FriendlyName string
	Secret       string // base32
	URL          string // otpauth
	QRCode       string // URL as an SVG picture
}

// EnrollFactor adds a time-based code generator as a factor, which counts once a code was verified.
func (d *Directory) EnrollFactor(ctx context.Context, who Identity, name, issuer string) (Enrolled, error) {
	if len(issuer) > maxFriendlyName {
		return Enrolled{}, errInvalid("issuer must have at most %d bytes", maxFriendlyName)
	}

	secret := token.NewTOTPSecret()
	ciphertext, err := token.Seal(d.keys.factorKey, secret)
	if err != nil {
		return Enrolled{}, err
	}

	if issuer == "" {
		site, _ := url.Parse(d.SiteURL) // was checked
		issuer = site.Host
		issuer = issuer[:min(len(issuer), maxFriendlyName)]
	}

	u, id, err := d.enroll(ctx, who, newFactor{Name: name, Type: factorTOTP,
		Secret: base64.StdEncoding.EncodeToString(ciphertext)})
	if err != nil {
		return Enrolled{}, err
	}

	result := Enrolled{ID: id, FriendlyName: name, Secret: token.TOTPText(secret),
		URL: token.TOTPURL(secret, issuer, cmp.Or(u.Email, u.Phone, u.ID.String()))}
	result.QRCode, err = qrCode(result.URL)

	return result, err
}

// EnrollPhone adds a phone as a factor, which counts once a code was verified. It replaces an
// unverified one with the same number.
func (d *Directory) EnrollPhone(ctx context.Context, who Identity, name, number string) (Factor, error) {
	if !d.SMS.Factors {
		return Factor{}, fault.New(fault.Unprocessable, "MFA enroll is disabled for Phone").
			WithCode("mfa_phone_enroll_not_enabled")
	}

	phone, err := cleanPhone(number)
	if err != nil {
		return Factor{}, err
	}

	_, id, err := d.enroll(ctx, who, newFactor{Name: name, Type: factorPhone, Phone: phone})
	return Factor{ID: id, FriendlyName: name, FactorType: factorPhone, Phone: phone}, err
}

// newFactor is a factor to insert.
type newFactor struct {
	Name   string
	Type   string
	Secret string // "" for none
	Phone  string // "" for none
}

// enroll inserts the signed-in user's unverified factor, and returns the user and its id. It
// replaces an unverified one with the same number.
func (d *Directory) enroll(ctx context.Context, who Identity, n newFactor) (User, uuid.UUID, error) {
	if len(n.Name) > maxFriendlyName {
		return User{}, uuid.Nil, errInvalid("friendly_name must have at most %d bytes", maxFriendlyName)
	}

	id := newID()
	var u caller
	err := d.Tx(ctx, "enrolling factor", func(ctx context.Context, tx pgx.Tx) error {
		// One enrollment per user at a time, so that the names differ and the count holds.
		if err := lockUser(ctx, tx, who.User); err != nil {
			return err
		}

		var err error
		if u, err = d.authenticate(ctx, tx, who); err != nil {
			return err
		}
		if err := requireFactorLevel(u, "unverified"); err != nil {
			return err
		}
		if _, err := pg.Exec(ctx, tx, `
			delete from auth.mfa_factors f where f.user_id = @user and f.status = 'unverified'
				and (f.phone = nullif(@phone, '') or f.created_at < now() - @age::interval
					and not exists (select from auth.mfa_challenges where factor_id = f.id))`,
			pgx.StrictNamedArgs{"user": u.ID, "phone": n.Phone, "age": enrollmentTTL}); err != nil {
			return err
		}
		if err := checkFactorTaken(ctx, tx, u.ID, n); err != nil {
			return err
		}

		rows, err := pg.Exec(ctx, tx, `
			insert into auth.mfa_factors (id, user_id, friendly_name, factor_type, status, secret, phone)
			select @id, @user, @name, @type, 'unverified', nullif(@secret, ''), nullif(@phone, '')
			where (select count(*) from auth.mfa_factors where user_id = @user) < @most::bigint`,
			pgx.StrictNamedArgs{"id": id, "user": u.ID, "name": n.Name, "type": n.Type, "secret": n.Secret,
				"phone": n.Phone, "most": maxFactors})
		if err == nil && rows == 0 {
			return fault.New(fault.Unprocessable, "Maximum number of verified factors reached, unenroll to continue").
				WithCode("too_many_enrolled_mfa_factors")
		}

		return err
	})

	return u.User, id, err
}

// requireFactorLevel fails with Forbidden if a user with a verified factor would add another one in
// a session that has not used it. It holds for each step: who enrolled a factor while the user had
// none may not verify it later.
func requireFactorLevel(u caller, status string) error {
	if status == "verified" || u.AAL == "aal2" || !hasVerifiedFactor(u.User) {
		return nil
	}

	return fault.New(fault.Forbidden, "AAL2 required to enroll a new factor").WithCode("insufficient_aal")
}

// checkFactorTaken fails with Unprocessable if the user has a factor with the number or the name of
// a new one. Unverified factors count, and an empty name is a name.
func checkFactorTaken(ctx context.Context, tx pgx.Tx, user uuid.UUID, n newFactor) error {
	conflict, err := pg.One[struct{ Phone, Name bool }](ctx, tx, `
		select coalesce(bool_or(phone = nullif(@phone, '')), false) as phone,
			coalesce(bool_or(coalesce(friendly_name, '') = @name), false) as name
		from auth.mfa_factors where user_id = @user`,
		pgx.StrictNamedArgs{"user": user, "phone": n.Phone, "name": n.Name})

	switch {
	case err != nil:
		return err
	case conflict.Phone:
		return fault.New(fault.Unprocessable,
			"A verified phone factor already exists, unenroll the existing factor to continue").
			WithCode("mfa_verified_factor_exists")
	case conflict.Name:
		return fault.New(fault.Unprocessable, "A factor with the friendly name %q for this user already exists", n.Name).
			WithCode("mfa_factor_name_conflict")
	}

	return nil
}

// findFactor locks a user's factor. It fails with NotFound for an unknown one.
func findFactor(ctx context.Context, tx pgx.Tx, user, id uuid.UUID) (factorRow, error) {
	f, err := pg.One[factorRow](ctx, tx, `
		select`+factorColumns+`, f.user_id, coalesce(f.secret, '') as secret, f.last_step from auth.mfa_factors f
		where f.id = @id and f.user_id = @user for update`, pgx.StrictNamedArgs{"id": id, "user": user})
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.NotFound, "Factor not found").WithCode("mfa_factor_not_found")
	}

	return f, err
}

// UnenrollFactor removes the signed-in user's factor. A verified one needs the second level.
// Sessions fall back to the first level.
func (d *Directory) UnenrollFactor(ctx context.Context, who Identity, factor uuid.UUID, c Client) error {
	return d.Tx(ctx, "unenrolling factor", func(ctx context.Context, tx pgx.Tx) error {
		u, err := d.authenticate(ctx, tx, who)
		if err != nil {
			return err
		}

		f, err := findFactor(ctx, tx, u.ID, factor)
		if err != nil {
			return err
		}
		if f.Status == "verified" && u.AAL != "aal2" {
			return fault.New(fault.Unprocessable, "AAL2 required to unenroll verified factor").
				WithCode("insufficient_aal")
		}

		return d.deleteFactor(ctx, tx, u.User, f.ID, c)
	})
}

func (d *Directory) deleteFactor(ctx context.Context, tx pgx.Tx, u User, factor uuid.UUID, c Client) error {
	if _, err := pg.Exec(ctx, tx, `delete from auth.mfa_factors where id = @id`,
		pgx.StrictNamedArgs{"id": factor}); err != nil {
		return err
	}

	if _, err := pg.Exec(ctx, tx, `
		with lowered as (
			update auth.sessions set aal = 'aal1', factor_id = null, updated_at = now() where user_id = @user and factor_id = @factor
			returning id)
		delete from auth.mfa_amr_claims where authentication_method = any(@methods) and session_id in (select id from lowered)`,
		pgx.StrictNamedArgs{"user": u.ID, "factor": factor,
			"methods": slices.Collect(maps.Values(factorMethods))}); err != nil {
		return err
	}

	if _, err := pg.Exec(ctx, tx, `
		delete from auth.mfa_recovery_codes where user_id = @user
			and not exists (select from auth.mfa_factors where user_id = @user and status = 'verified')`,
		pgx.StrictNamedArgs{"user": u.ID}); err != nil {
		return err
	}

	return d.log(ctx, tx, "factor_deleted", u, c)
}

// ListFactors returns a user's factors.
func (d *Directory) ListFactors(ctx context.Context, user uuid.UUID) ([]Factor, error) {
	if _, err := userByID(ctx, d.Rows(), user); err != nil {
		return nil, err
	}

	return pg.All[Factor](ctx, d.Rows(), `select`+factorColumns+`from auth.mfa_factors f where f.user_id = @user order by f.created_at`,
		pgx.StrictNamedArgs{"user": user})
}

// DeleteFactor removes a user's factor for a project administrator.
func (d *Directory) DeleteFactor(ctx context.Context, user, factor uuid.UUID, c Client) (Factor, error) {
	var result Factor
	err := d.Tx(ctx, "deleting factor", func(ctx context.Context, tx pgx.Tx) error {
		u, err := userByID(ctx, tx, user)
		if err != nil {
			return err
		}

		f, err := findFactor(ctx, tx, user, factor)
		if err != nil {
			return err
		}

		result = f.Factor
		return d.deleteFactor(ctx, tx, u, factor, c)
	})

	return result, err
}
