package enduser

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
	"github.com/socle-dev/socle/internal/webauthn"
)

// AuthenticatorChallenge is the request to a browser: for an unverified factor's new credential, or
// an assertion.
type AuthenticatorChallenge struct {
	Type    string `json:"type"` // create or request
	Options struct {
		PublicKey any `json:"publicKey"`
	} `json:"credential_options"`
}

// CheckRelyingParty fails with Invalid for a client's relying party that is not the project's.
// Empty ones stand for the project's.
func (d *Directory) CheckRelyingParty(id string, origins []string) error {
	rp := d.RelyingParty()
	if id != "" && id != rp.ID {
		return errInvalid("rpId must be %s", rp.ID)
	}

	for _, origin := range origins {
		if !slices.Contains(rp.Origins, origin) {
			return errInvalid("rpOrigins must be origins of the project's settings")
		}
	}

	return nil
}

// authenticatorChallenge returns the bytes that an authenticator signs for a challenge.
func (k keys) authenticatorChallenge(id uuid.UUID) []byte {
	return token.MAC(k.linkKey, []byte("challenge of an authenticator"), id[:])
}

// expected returns the requirements on the response to a challenge.
func (d *Directory) expected(challenge uuid.UUID, verification bool) webauthn.Expected {
	return webauthn.Expected{RelyingParty: d.RelyingParty(), Challenge: d.keys.authenticatorChallenge(challenge),
		Verification: verification}
}

// creationOptions returns the options for a new credential. exclude are the credentials that the
// user's authenticators have registered already.
func (d *Directory) creationOptions(
	u User, challenge uuid.UUID, exclude []credentialRow, selection webauthn.Selection,
) webauthn.CreationOptions {
	name := cmp.Or(u.Email, u.Phone, u.ID.String())
	return webauthn.CreationOptions{
		RP:        webauthn.RPEntity{ID: d.RelyingParty().ID, Name: cmp.Or(d.WebAuthn.RPName, d.RelyingParty().ID)},
		User:      webauthn.UserEntity{ID: u.ID[:], Name: name, DisplayName: name},
		Challenge: d.keys.authenticatorChallenge(challenge), PubKeyCredParams: webauthn.AllParameters(),
		Timeout: challengeTTL.Milliseconds(), ExcludeCredentials: descriptors(exclude), Selection: selection,
		Attestation: "none",
	}
}

// requestOptions returns the options for an assertion by one of the credentials, or by any for
// none.
func (d *Directory) requestOptions(
	challenge uuid.UUID, rows []credentialRow, verification string,
) webauthn.RequestOptions {
	return webauthn.RequestOptions{RPID: d.RelyingParty().ID, Challenge: d.keys.authenticatorChallenge(challenge),
		Timeout: challengeTTL.Milliseconds(), AllowCredentials: descriptors(rows), UserVerification: verification}
}

func descriptors(rows []credentialRow) []webauthn.Descriptor {
	all := make([]webauthn.Descriptor, len(rows))
	for i, r := range rows {
		all[i] = webauthn.Descriptor{Type: "public-key", ID: r.CredentialID, Transports: r.Transports}
	}

	return all
}

// authenticatorChallenge returns the request to a browser for a factor's challenge.
func (d *Directory) authenticatorChallenge(
	ctx context.Context, tx pgx.Tx, u User, f factorRow, challenge uuid.UUID,
) (*AuthenticatorChallenge, error) {
	if !d.WebAuthn.Factors {
		return nil, fault.New(fault.Unprocessable, "MFA verification is disabled for WebAuthn").
			WithCode("mfa_webauthn_verify_not_enabled")
	}

	rows, err := pg.All[credentialRow](ctx, tx, `
		select`+credentialColumns+`from auth.webauthn_credentials c
		where c.user_id = @user and c.factor_id is not null and (@verified = false or c.factor_id = @factor)`,
		pgx.StrictNamedArgs{"user": u.ID, "factor": f.ID, "verified": f.Status == "verified"})
	if err != nil {
		return nil, err
	}

	a := &AuthenticatorChallenge{Type: "create"}
	a.Options.PublicKey = d.creationOptions(u, challenge, rows,
		webauthn.Selection{ResidentKey: "discouraged", UserVerification: "preferred"})
	if f.Status == "verified" {
		a.Type, a.Options.PublicKey = "request", d.requestOptions(challenge, rows, "preferred")
	}

	return a, nil
}

// credentialRow is an auth.webauthn_credentials row.
type credentialRow struct {
	ID             uuid.UUID
	UserID         uuid.UUID
	CredentialID   []byte
	PublicKey      []byte
	SignCount      int64
	Transports     []string
	BackupEligible bool
	BackedUp       bool
	FriendlyName   string
	CreatedAt      time.Time
	LastUsedAt     *time.Time
}

const credentialColumns = ` c.id, c.user_id, c.credential_id, c.public_key, c.sign_count, c.transports, c.backup_eligible,
	c.backed_up, c.friendly_name, c.created_at, c.last_used_at `

func (r credentialRow) credential() webauthn.Credential {
	return webauthn.Credential{ID: r.CredentialID, PublicKey: r.PublicKey, SignCount: uint32(r.SignCount),
		BackupEligible: r.BackupEligible, BackedUp: r.BackedUp}
}

// transports are the ways to an authenticator that its descriptors repeat.
var transports = []string{"usb", "nfc", "ble", "smart-card", "hybrid", "internal"}

// insertCredential inserts a factor's credential, or a passkey, and returns its id.
func insertCredential(
	ctx context.Context, tx pgx.Tx, user uuid.UUID, factor uuid.NullUUID, c webauthn.Credential, ways []string,
) (uuid.UUID, error) {
	names := []string{}
	for _, way := range transports {
		if slices.Contains(ways, way) {
			names = append(names, way)
		}
	}

	id := newID()
	_, err := pg.Exec(ctx, tx, `
		insert into auth.webauthn_credentials (id, user_id, factor_id, credential_id, public_key, aaguid, sign_count, transports,
			backup_eligible, backed_up)
		values (@id, @user, @factor, @credential, @key, @aaguid, @count, @transports, @eligible, @backed_up)`,
		pgx.StrictNamedArgs{"id": id, "user": user, "factor": factor, "credential": c.ID, "key": c.PublicKey,
			"aaguid": uuid.UUID(c.AAGUID), "count": int64(c.SignCount), "transports": names,
			"eligible": c.BackupEligible, "backed_up": c.BackedUp})
	return id, err
}

// asKnownAuthenticator returns the failure to insert a known credential as Unprocessable.
func asKnownAuthenticator(err error) error {
	if !pg.Violates(err, "webauthn_credentials_credential_id_key") {
		return err
	}

	return fault.New(fault.Unprocessable, "The authenticator is registered already").
		WithCode("webauthn_credential_exists").WithCause(err)
}

// assert verifies an assertion by a credential whose row is locked, and records its use.
func (d *Directory) assert(
	ctx context.Context, tx pgx.Tx, row credentialRow, r webauthn.Response, want webauthn.Expected,
) error {
	c, err := webauthn.Authenticate(r, row.credential(), want)
	if err != nil {
		return err
	}

	_, err = pg.Exec(ctx, tx, `
		update auth.webauthn_credentials set sign_count = @count, backed_up = @backed_up, last_used_at = now(), updated_at = now()
		where id = @id`, pgx.StrictNamedArgs{"id": row.ID, "count": int64(c.SignCount), "backed_up": c.BackedUp})
	return err
}
