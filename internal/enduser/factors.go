package enduser

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

const (
	maxFactors      = 10 // of a user
	maxChallenges   = 20 // of a factor
	maxFriendlyName = 100
	challengeTTL    = 5 * time.Minute
)

// Factor is a second factor of a user.
type Factor struct {
	ID           uuid.UUID `json:"id"`
	FriendlyName string    `json:"friendly_name"`
	FactorType   string    `json:"factor_type"`
	Status       string    `json:"status"`
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

const factorColumns = ` f.id, coalesce(f.friendly_name, '') as friendly_name, f.factor_type, f.status, f.created_at, f.updated_at `

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

// Enrolled is a new factor with its secret, which is shown once.
type Enrolled struct {
	ID           uuid.UUID
	FriendlyName string
	Secret       string // base32
	URL          string // otpauth
	QRCode       string // of URL, as SVG
}

// EnrollFactor adds a factor of time-based codes, which counts once a code of it was verified. It
// replaces unverified ones of the same name.
func (d *Directory) EnrollFactor(ctx context.Context, who Identity, name, issuer string) (Enrolled, error) {
	if len(name) > maxFriendlyName || len(issuer) > maxFriendlyName {
		return Enrolled{}, errInvalid("friendly_name and issuer must have at most %d bytes", maxFriendlyName)
	}

	secret := token.NewTOTPSecret()
	sealed, err := token.Seal(d.secrets.factors, secret)
	if err != nil {
		return Enrolled{}, err
	}

	if issuer == "" {
		site, _ := url.Parse(d.SiteURL) // was checked
		issuer = site.Host
		issuer = issuer[:min(len(issuer), maxFriendlyName)]
	}

	enrolled := Enrolled{ID: newID(), FriendlyName: name, Secret: token.TOTPText(secret)}
	err = d.tx(ctx, "enrolling factor", func(ctx context.Context, tx pgx.Tx) error {
		u, err := d.authenticate(ctx, tx, who)
		if err != nil {
			return err
		}
		if hasVerifiedFactor(u.User) && u.AAL != "aal2" {
			return fault.New(fault.Forbidden, "AAL2 required to enroll a new factor").WithCode("insufficient_aal")
		}

		// One enrollment of a user at a time, so that the count holds.
		if _, err := pg.Exec(ctx, tx, `select from auth.users where id = @id for no key update`,
			pgx.StrictNamedArgs{"id": u.ID}); err != nil {
			return err
		}
		if _, err := pg.Exec(ctx, tx, `
			delete from auth.mfa_factors where user_id = @user and status = 'unverified' and coalesce(friendly_name, '') = @name`,
			pgx.StrictNamedArgs{"user": u.ID, "name": name}); err != nil {
			return err
		}

		n, err := pg.Exec(ctx, tx, `
			insert into auth.mfa_factors (id, user_id, friendly_name, factor_type, status, secret)
			select @id, @user, @name, 'totp', 'unverified', @secret
			where (select count(*) from auth.mfa_factors where user_id = @user) < @most::bigint`,
			pgx.StrictNamedArgs{"id": enrolled.ID, "user": u.ID, "name": name, "most": maxFactors,
				"secret": base64.StdEncoding.EncodeToString(sealed)})
		if err == nil && n == 0 {
			return fault.New(fault.Unprocessable, "Maximum number of verified factors reached, unenroll to continue").
				WithCode("too_many_enrolled_mfa_factors")
		}

		account := u.Email
		if account == "" {
			account = u.ID.String()
		}
		enrolled.URL = token.TOTPURL(secret, issuer, account)

		return err
	})
	if pg.Violates(err, "mfa_factors_user_friendly_name_unique") {
		err = fault.New(fault.Unprocessable, "A factor with the friendly name %q for this user already exists", name).
			WithCode("mfa_factor_name_conflict").WithCause(err)
	}
	if err != nil {
		return Enrolled{}, err
	}

	enrolled.QRCode, err = qrCode(enrolled.URL)
	return enrolled, err
}

// findFactor locks a factor of a user. It fails with NotFound for an unknown one.
func findFactor(ctx context.Context, tx pgx.Tx, user, id uuid.UUID) (factorRow, error) {
	f, err := pg.One[factorRow](ctx, tx, `
		select`+factorColumns+`, f.user_id, coalesce(f.secret, '') as secret, f.last_step from auth.mfa_factors f
		where f.id = @id and f.user_id = @user for update`, pgx.StrictNamedArgs{"id": id, "user": user})
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.NotFound, "Factor not found").WithCode("mfa_factor_not_found")
	}

	return f, err
}

// ChallengeFactor prepares the check of a code of a factor, and returns the id and the end of the
// challenge.
func (d *Directory) ChallengeFactor(
	ctx context.Context, who Identity, factor uuid.UUID, c Client,
) (uuid.UUID, time.Time, error) {
	id := newID()
	err := d.tx(ctx, "creating challenge", func(ctx context.Context, tx pgx.Tx) error {
		u, err := d.authenticate(ctx, tx, who)
		if err != nil {
			return err
		}
		if _, err := findFactor(ctx, tx, u.ID, factor); err != nil {
			return err
		}

		address := "::"
		if c.Address.IsValid() {
			address = c.Address.String()
		}

		// Expired ones make room.
		if _, err := pg.Exec(ctx, tx, `delete from auth.mfa_challenges where factor_id = @factor and created_at < now() - @age::interval`,
			pgx.StrictNamedArgs{"factor": factor, "age": challengeTTL}); err != nil {
			return err
		}

		n, err := pg.Exec(ctx, tx, `
			insert into auth.mfa_challenges (id, factor_id, ip_address)
			select @id, @factor, @address::text::inet where (select count(*) from auth.mfa_challenges where factor_id = @factor) < @most::bigint`,
			pgx.StrictNamedArgs{"id": id, "factor": factor, "address": address, "most": maxChallenges})
		if err == nil && n == 0 {
			err = &fault.Error{Kind: fault.TooMany, Code: "over_request_rate_limit",
				Detail:     "Request rate limit reached",
				RetryAfter: challengeTTL}
		}

		return err
	})

	return id, now().Add(challengeTTL), err
}

// VerifyFactor checks a code of a factor. The session reaches the second level, and other sessions
// without it end when the factor is verified first.
func (d *Directory) VerifyFactor(
	ctx context.Context, who Identity, factor, challenge uuid.UUID, code string, c Client,
) (Session, error) {
	// Right codes count too: wrong ones are counted before concurrent requests compare theirs.
	if err := d.attempts.Count(ctx, factorLimit, who.User.String()); err != nil {
		return Session{}, asRequestLimit(err)
	}

	var opened Session
	err := d.tx(ctx, "verifying factor", func(ctx context.Context, tx pgx.Tx) error {
		u, err := d.authenticate(ctx, tx, who)
		if err != nil {
			return err
		}

		f, err := findFactor(ctx, tx, u.ID, factor)
		if err != nil {
			return err
		}

		n, err := pg.Exec(ctx, tx, `
			update auth.mfa_challenges set verified_at = now() where id = @id and factor_id = @factor and verified_at is null
				and created_at > now() - @age::interval`,
			pgx.StrictNamedArgs{"id": challenge, "factor": factor, "age": challengeTTL})
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.New(fault.Unprocessable, "MFA challenge has expired, verify against another challenge or create a new challenge.").
				WithCode("mfa_challenge_expired")
		}

		step, ok, err := d.matchCode(f, code)
		if err != nil {
			return err
		}
		if !ok || step <= f.LastStep {
			// The challenge stays open.
			return fault.New(fault.Unprocessable, "Invalid TOTP code entered").WithCode("mfa_verification_failed")
		}

		opened, err = d.raiseLevel(ctx, tx, u.User, who, f, step, c)
		return err
	})

	return opened, err
}

// matchCode returns the time step of a code.
func (d *Directory) matchCode(f factorRow, code string) (step int64, ok bool, err error) {
	sealed, err := base64.StdEncoding.DecodeString(f.Secret)
	if err != nil {
		return 0, false, err
	}

	secret, err := token.Open(d.secrets.factors, sealed)
	if err != nil {
		return 0, false, err
	}

	step, ok = token.MatchTOTP(secret, code, time.Now())
	return step, ok, nil
}

// raiseLevel spends the code of a step and raises the session to the second level.
func (d *Directory) raiseLevel(
	ctx context.Context, tx pgx.Tx, u User, who Identity, f factorRow, step int64, c Client,
) (Session, error) {
	if _, err := pg.Exec(ctx, tx, `
		update auth.mfa_factors set status = 'verified', last_step = @step, last_challenged_at = now(), updated_at = now() where id = @id`,
		pgx.StrictNamedArgs{"id": f.ID, "step": step}); err != nil {
		return Session{}, err
	}

	if f.Status != "verified" {
		if _, err := pg.Exec(ctx, tx, `delete from auth.sessions where user_id = @user and id <> @session and aal = 'aal1'`,
			pgx.StrictNamedArgs{"user": u.ID, "session": who.Session}); err != nil {
			return Session{}, err
		}
	}

	s, err := pg.One[sessionRow](ctx, tx, `
		update auth.sessions s set aal = 'aal2', factor_id = @factor, refresh_token_counter = refresh_token_counter + 1,
			refreshed_at = now(), updated_at = now()
		where s.id = @id returning`+sessionColumns, pgx.StrictNamedArgs{"id": who.Session, "factor": f.ID})
	if err != nil {
		return Session{}, err
	}

	if err := addMethod(ctx, tx, s.ID, "totp"); err != nil {
		return Session{}, err
	}
	if err := d.log(ctx, tx, "verify_factor", u, c); err != nil {
		return Session{}, err
	}

	u, err = userByID(ctx, tx, u.ID)
	if err != nil {
		return Session{}, err
	}

	return d.tokens(ctx, tx, s, u)
}

// UnenrollFactor removes a factor of the signed-in user. A verified one needs the second level.
// Sessions fall back to the first level.
func (d *Directory) UnenrollFactor(ctx context.Context, who Identity, factor uuid.UUID, c Client) error {
	return d.tx(ctx, "unenrolling factor", func(ctx context.Context, tx pgx.Tx) error {
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
		delete from auth.mfa_amr_claims where authentication_method = 'totp' and session_id in (select id from lowered)`,
		pgx.StrictNamedArgs{"user": u.ID, "factor": factor}); err != nil {
		return err
	}

	return d.log(ctx, tx, "factor_deleted", u, c)
}

// ListFactors returns the factors of a user.
func (d *Directory) ListFactors(ctx context.Context, user uuid.UUID) ([]Factor, error) {
	if _, err := userByID(ctx, d.q(), user); err != nil {
		return nil, err
	}

	return pg.All[Factor](ctx, d.q(), `select`+factorColumns+`from auth.mfa_factors f where f.user_id = @user order by f.created_at`,
		pgx.StrictNamedArgs{"user": user})
}

// DeleteFactor removes a factor of a user for an administrator of the project.
func (d *Directory) DeleteFactor(ctx context.Context, user, factor uuid.UUID, c Client) (Factor, error) {
	var deleted Factor
	err := d.tx(ctx, "deleting factor", func(ctx context.Context, tx pgx.Tx) error {
		u, err := userByID(ctx, tx, user)
		if err != nil {
			return err
		}

		f, err := findFactor(ctx, tx, user, factor)
		if err != nil {
			return err
		}

		deleted = f.Factor
		return d.deleteFactor(ctx, tx, u, factor, c)
	})

	return deleted, err
}
