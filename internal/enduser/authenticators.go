package enduser

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
	"github.com/socle-dev/socle/internal/webauthn"
	"github.com/socle-dev/socle/internal/weburl"
)

// WebAuthn are the rules for passkeys and for authenticators as second factors. The zero WebAuthn
// has both off.
type WebAuthn struct {
	Passkeys bool     `json:"passkeys,omitempty" doc:"Users may register passkeys and sign in with them."`
	Factors  bool     `json:"factors,omitempty" doc:"Users may have authenticators as second factors."`
	RPID     string   `json:"rp_id,omitempty" maxLength:"253" doc:"Domain that credentials are for, with its subdomains. Default: the host of the site. A change makes former credentials useless."`
	RPName   string   `json:"rp_name,omitempty" maxLength:"100" doc:"Name that authenticators show. Default: the domain."`
	Origins  []string `json:"origins,omitempty" maxItems:"20" doc:"Origins of the application's pages, such as https://app.example.com, and of its apps. Default: the origin of the site."`
}

const maxOrigins = 20

// domain matches the domain of a relying party, which is no address.
var domain = regexp.MustCompile(`^(localhost|([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9])$`)

// rpID returns the domain of credentials.
func (s *Settings) rpID() string {
	site, _ := weburl.ParseSite(s.SiteURL) // was checked
	return cmp.Or(s.WebAuthn.RPID, site.Host)
}

// relyingParty returns the application that credentials are for.
func (s *Settings) relyingParty() webauthn.RelyingParty {
	rp := webauthn.RelyingParty{ID: s.rpID(), Origins: s.WebAuthn.Origins}
	if len(rp.Origins) == 0 {
		site, _ := weburl.ParseSite(s.SiteURL) // was checked
		rp.Origins = []string{site.Origin()}
	}

	return rp
}

// checkWebAuthn fails for invalid rules. The site has been checked.
func (s *Settings) checkWebAuthn() error {
	w := s.WebAuthn
	if !w.Passkeys && !w.Factors && w.RPID == "" && len(w.Origins) == 0 {
		return nil
	}

	rp := s.relyingParty()
	if !domain.MatchString(rp.ID) {
		return errors.New("rp_id, by default the host of site_url, must be a domain")
	}
	if len(w.RPName) > maxFriendlyName {
		return errors.New("rp_name must have at most 100 bytes")
	}
	if len(w.Origins) > maxOrigins {
		return errors.New("origins must have at most 20 items")
	}

	for _, origin := range rp.Origins {
		u, err := weburl.Parse(origin)
		switch {
		case err != nil || len(origin) > maxURL:
			return errors.New("origins must be origins such as https://app.example.com")
		case !u.IsWeb():
			continue // registered by a mobile app
		case u.Origin() != origin:
			return errors.New("origins must be origins such as https://app.example.com")
		case u.Host != rp.ID && !strings.HasSuffix(u.Host, "."+rp.ID):
			return errors.New("origins must be of the domain rp_id or of its subdomains")
		}
	}

	return nil
}

// authenticatorChallenge returns the bytes that an authenticator signs for a challenge.
func (k keys) authenticatorChallenge(id uuid.UUID) []byte {
	return token.MAC(k.links, []byte("challenge of an authenticator"), id[:])
}

// expected returns the requirements of the response to a challenge.
func (d *Directory) expected(challenge uuid.UUID, verification bool) webauthn.Expected {
	return webauthn.Expected{RelyingParty: d.relyingParty(), Challenge: d.keys.authenticatorChallenge(challenge),
		Verification: verification}
}

// creationOptions returns the options of a new credential. known are the credentials of
// authenticators that the user has registered already.
func (d *Directory) creationOptions(
	u User, challenge uuid.UUID, known []credentialRow, selection webauthn.Selection,
) webauthn.CreationOptions {
	name := cmp.Or(u.Email, u.Phone, u.ID.String())
	return webauthn.CreationOptions{
		RP:        webauthn.RPEntity{ID: d.rpID(), Name: cmp.Or(d.WebAuthn.RPName, d.rpID())},
		User:      webauthn.UserEntity{ID: u.ID[:], Name: name, DisplayName: name},
		Challenge: d.keys.authenticatorChallenge(challenge), PubKeyCredParams: webauthn.AllParameters(),
		Timeout: challengeTTL.Milliseconds(), ExcludeCredentials: descriptors(known), Selection: selection,
		Attestation: "none",
	}
}

// requestOptions returns the options of an assertion by one of the credentials, or by any for none.
func (d *Directory) requestOptions(
	challenge uuid.UUID, allowed []credentialRow, verification string,
) webauthn.RequestOptions {
	return webauthn.RequestOptions{RPID: d.rpID(), Challenge: d.keys.authenticatorChallenge(challenge),
		Timeout: challengeTTL.Milliseconds(), AllowCredentials: descriptors(allowed), UserVerification: verification}
}

func descriptors(rows []credentialRow) []webauthn.Descriptor {
	all := make([]webauthn.Descriptor, len(rows))
	for i, r := range rows {
		all[i] = webauthn.Descriptor{Type: "public-key", ID: r.CredentialID, Transports: r.Transports}
	}

	return all
}

// credentialRow is a row of auth.webauthn_credentials.
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

// insertCredential inserts the credential of a factor, or a passkey, and returns its id.
func insertCredential(
	ctx context.Context, tx pgx.Tx, user uuid.UUID, factor uuid.NullUUID, c webauthn.Credential, ways []string,
) (uuid.UUID, error) {
	known := []string{}
	for _, way := range transports {
		if slices.Contains(ways, way) {
			known = append(known, way)
		}
	}

	id := newID()
	_, err := pg.Exec(ctx, tx, `
		insert into auth.webauthn_credentials (id, user_id, factor_id, credential_id, public_key, aaguid, sign_count, transports,
			backup_eligible, backed_up)
		values (@id, @user, @factor, @credential, @key, @aaguid, @count, @transports, @eligible, @backed_up)`,
		pgx.StrictNamedArgs{"id": id, "user": user, "factor": factor, "credential": c.ID, "key": c.PublicKey,
			"aaguid": uuid.UUID(c.AAGUID), "count": int64(c.SignCount), "transports": known,
			"eligible": c.BackupEligible, "backed_up": c.BackedUp})
	return id, err
}

// asKnownAuthenticator returns the failure of a transaction that inserts a known credential as
// Unprocessable.
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
