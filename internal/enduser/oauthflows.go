package enduser

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/idp"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

const maxState = 4096 // bytes in the parameter state

// FlowTTL is the time between the redirect to a provider and the browser's return.
const FlowTTL = 10 * time.Minute

// linkTTL is the time in which a browser opens the link to add an identity. Whoever opens it adds
// an identity to the account, so it is short.
const linkTTL = 2 * time.Minute

// OAuthFlow is a sign-in with an identity provider that is under way. It has no row: anyone can
// begin flows without end. Sealed, it is the provider protocol's parameter state.
type OAuthFlow struct {
	ID         uuid.UUID `json:"i"`
	Provider   string    `json:"p"`
	RedirectTo string    `json:"r"`
	Challenge  Challenge `json:"c"`
	Linking    *Identity `json:"l,omitempty"` // signed-in user who adds an identity
	Opened     bool      `json:"o"`           // a browser was sent to the provider
	Ends       time.Time `json:"e"`
}

// NewFlow returns a sign-in with a provider that ends at an application's address. It fails with
// Invalid unless the provider is ready.
func (d *Directory) NewFlow(provider, redirect string, challenge Challenge) (OAuthFlow, error) {
	if err := challenge.check(); err != nil {
		return OAuthFlow{}, err
	}
	if _, err := d.oauthProvider(provider); err != nil {
		return OAuthFlow{}, err
	}

	return OAuthFlow{ID: newID(), Provider: provider, RedirectTo: d.Redirect(redirect), Challenge: challenge,
		Ends: now().Add(FlowTTL)}, nil
}

// AuthorizeURL returns the address where a browser begins a sign-in with these parameters.
func (d *Directory) AuthorizeURL(parameters url.Values) string {
	return d.Issuer() + "/authorize?" + parameters.Encode()
}

// IsSecure reports whether browsers reach the server by HTTPS.
func (d *Directory) IsSecure() bool { return strings.HasPrefix(d.Issuer(), "https://") }

// BindingName names the cookie that binds an opened flow to its browser.
func (f OAuthFlow) BindingName() string { return BindingPrefix + f.ID.String()[28:] }

// BindingPrefix begins the names of flow cookies.
const BindingPrefix = "socle-oauth-"

// protocol returns what the provider's protocol needs. Nonce and verifier are stored nowhere.
func (d *Directory) protocol(f OAuthFlow, state string) idp.Flow {
	secret := func(purpose string) string {
		return base64.RawURLEncoding.EncodeToString(token.MAC(d.keys.flowKey, []byte(purpose), f.ID[:]))
	}

	return idp.Flow{State: state, Nonce: secret("nonce"), Verifier: secret("verifier"),
		RedirectURI: d.Issuer() + "/callback"}
}

// seal returns a flow as a text that only this project opens.
func (d *Directory) seal(f OAuthFlow) (string, error) {
	text, err := json.Marshal(f)
	if err != nil {
		return "", err
	}

	ciphertext, err := token.Seal(d.keys.flowKey, text)
	return base64.RawURLEncoding.EncodeToString(ciphertext), err
}

// OpenFlow returns the flow in a sealed text: an opened flow's state, or the link to open one. It
// fails with Invalid.
func (d *Directory) OpenFlow(text string, opened bool) (f OAuthFlow, err error) {
	if text == "" {
		return f, fault.New(fault.Invalid, "OAuth state parameter missing").WithCode("bad_oauth_callback")
	}

	ciphertext, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(text) > maxState {
		return f, errState("OAuth callback with invalid state")
	}

	plain, err := token.Open(d.keys.flowKey, ciphertext)
	if err != nil || json.Unmarshal(plain, &f) != nil || f.Opened != opened {
		return OAuthFlow{}, errState("OAuth callback with invalid state")
	}

	f.RedirectTo = d.Redirect(f.RedirectTo) // the settings may have changed
	return f, nil
}

// LinkURL returns the address where a signed-in user's browser begins to add a provider's identity.
// It is valid once: a request from another origin can't set the cookie that would bind it.
func (d *Directory) LinkURL(ctx context.Context, who Identity, f OAuthFlow, parameters url.Values) (string, error) {
	u, err := d.authenticate(ctx, d.Rows(), who)
	if err != nil {
		return "", err
	}
	if err := requireLevel(u); err != nil {
		return "", err
	}

	f.Linking, f.Ends = &who, now().Add(linkTTL)
	link, err := d.seal(f)
	if err != nil {
		return "", err
	}

	q := url.Values{}
	for name := range parameters {
		q.Set(name, parameters.Get(name))
	}
	q.Set("link", link)

	return d.AuthorizeURL(q), nil
}

// openLink turns a link's flow into a separate one, and spends the link.
func (d *Directory) openLink(ctx context.Context, f *OAuthFlow) error {
	if time.Now().After(f.Ends) {
		return errState("The link to add an identity has expired")
	}
	if err := spendFlow(ctx, d.Rows(), f.ID); err != nil {
		return err
	}

	f.ID, f.Ends = newID(), now().Add(FlowTTL)
	return nil
}

// spendFlow records that a flow has succeeded. It fails with Invalid if it had before.
func spendFlow(ctx context.Context, q pg.Querier, id uuid.UUID) error {
	n, err := pg.Exec(ctx, q, `insert into auth.spent_flows (id) values (@id) on conflict do nothing`,
		pgx.StrictNamedArgs{"id": id})
	if err == nil && n == 0 {
		return errState("OAuth state was used")
	}

	return err
}
