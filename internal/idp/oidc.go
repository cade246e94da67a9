package idp

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/jwt"
)

const (
	documentTTL = 10 * time.Minute // lifetime of cached discovery documents and keys
	renewAfter  = time.Minute      // keys that don't verify a token are read again then
	maxEntries  = 256              // documents in the cache
	maxDocument = 64 << 10         // bytes; large providers' documents have 30 KiB
	maxToken    = 16 << 10         // bytes
)

// document returns a provider's document, from the cache if that has it younger than age.
func (c *Client) document(ctx context.Context, tenant fair.Key, address string, age time.Duration) ([]byte, error) {
	if text, ok := c.documents.GetYounger(address, age); ok {
		return text, nil
	}

	text, err := c.get(ctx, tenant, address, "")
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxDocument, !json.Valid(text):
		return nil, errors.Join(ErrProvider, fmt.Errorf("%s is no JSON of at most %d bytes", address, maxDocument))
	}

	c.documents.Put(address, text)
	return text, nil
}

// discovery is an OpenID Connect provider's metadata.
type discovery struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	UserInfoEndpoint      string   `json:"userinfo_endpoint"`
	KeysURL               string   `json:"jwks_uri"`
	ChallengeMethods      []string `json:"code_challenge_methods_supported"`
	TokenAuthMethods      []string `json:"token_endpoint_auth_methods_supported"`
}

// discover reads an issuer's metadata. With anyTenant, the document is for all the provider's
// tenants and names another issuer.
func (c *Client) discover(ctx context.Context, tenant fair.Key, issuer string, anyTenant bool) (discovery, error) {
	text, err := c.document(ctx, tenant, issuer+"/.well-known/openid-configuration", documentTTL)
	if err != nil {
		return discovery{}, err
	}

	var d discovery
	if err := json.Unmarshal(text, &d); err != nil {
		return d, errors.Join(ErrProvider, err)
	}
	if strings.TrimSuffix(d.Issuer, "/") != issuer && !anyTenant {
		return d, errors.Join(ErrProvider, fmt.Errorf("metadata of %s is of the issuer %s", issuer, d.Issuer))
	}

	for _, endpoint := range []string{d.AuthorizationEndpoint, d.TokenEndpoint, d.KeysURL} {
		u, err := url.Parse(endpoint)
		if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
			return d, errors.Join(ErrProvider, fmt.Errorf("metadata has the address %q", endpoint))
		}
	}

	return d, nil
}

// claims holds an ID token's claims, or a profile's members.
type claims map[string]any

// verify returns an ID token's claims, if its signature, issuer, audience and times are right.
func (c *Client) verify(ctx context.Context, tenant fair.Key, config Config, p provider, text string) (claims, error) {
	if err := checkToken(text); err != nil {
		return nil, err
	}

	payload, err := c.verifySignature(ctx, tenant, p.keysURL, text)
	if err != nil {
		return nil, err
	}

	var idToken claims
	if err := json.Unmarshal(payload, &idToken); err != nil {
		return nil, errors.Join(ErrIDToken, err)
	}

	_, hasExpiry := idToken["exp"].(float64)
	switch audience := idToken.list("aud"); {
	case idToken["events"] != nil:
		return nil, errors.Join(ErrIDToken, errors.New("a logout token, or another one about events"))
	case !hasExpiry:
		return nil, errors.Join(ErrIDToken, errors.New("no expiry"))
	case !isIssuer(p.issuer, idToken, config.Name):
		return nil, errors.Join(ErrIDToken, fmt.Errorf("issuer %s", idToken.text("iss")))
	case !slices.ContainsFunc(audience, config.accepts):
		return nil, errors.Join(ErrIDToken, errors.New("audience"))
	case len(audience) > 1 && !config.accepts(idToken.text("azp")):
		return nil, errors.Join(ErrIDToken, errors.New("authorized party"))
	}

	return idToken, nil
}

// checkToken fails with ErrIDToken unless a text has the form of a signed JWT: header with a known
// algorithm, claims and signature. The signature is not verified.
func checkToken(text string) error {
	if text == "" || len(text) > maxToken {
		return errors.Join(ErrIDToken, errors.New("no token, or a large one"))
	}

	segments := strings.Split(text, ".")
	if len(segments) != 3 || segments[2] == "" {
		return errors.Join(ErrIDToken, errors.New("not three segments"))
	}

	var header struct {
		Algorithm string `json:"alg"`
	}
	for i, to := range []any{&header, &claims{}} {
		part, err := base64.RawURLEncoding.DecodeString(segments[i])
		if err == nil {
			err = json.Unmarshal(part, to)
		}
		if err != nil {
			return errors.Join(ErrIDToken, err)
		}
	}

	if !slices.Contains(signingAlgorithms, header.Algorithm) {
		return errors.Join(ErrIDToken, fmt.Errorf("algorithm %q", header.Algorithm))
	}

	return nil
}

// accepts reports whether an audience is one of the project's clients.
func (c Config) accepts(audience string) bool {
	return audience != "" && (audience == c.ClientID || slices.Contains(c.OtherClientIDs, audience))
}

// isIssuer reports whether a token is from the issuer. Microsoft's has the tenant in place of a
// variable, and Google's had no scheme.
func isIssuer(issuer string, idToken claims, name string) bool {
	got := idToken.text("iss")
	switch name {
	case "azure":
		return idToken.text("tid") != "" && got == strings.ReplaceAll(issuer, "{tenantid}", idToken.text("tid"))
	case "google":
		return got == issuer || "https://"+got == issuer
	}

	return got == issuer
}

// verifySignature returns a token's payload. It reads the keys again if no cached one fits, since
// providers rotate them.
func (c *Client) verifySignature(ctx context.Context, tenant fair.Key, keysURL, text string) ([]byte, error) {
	var failure error
	for _, age := range []time.Duration{documentTTL, renewAfter} {
		keys, err := c.document(ctx, tenant, keysURL, age)
		if err != nil {
			return nil, err
		}

		verifier, err := jwt.New(jwt.Config{Keys: publicKeys(keys), CacheSize: -1})
		if err != nil {
			return nil, errors.Join(ErrProvider, err)
		}

		token, err := verifier.Verify(text)
		if err == nil {
			return token.Claims, nil
		}

		failure = fmt.Errorf("%w: %v", ErrIDToken, err) // not its kind, which is for a caller's credentials
	}

	return nil, failure
}

// publicKeys returns the RSA and elliptic curve keys by which providers sign. A key with another
// kind or algorithm must not make the others useless.
func publicKeys(set []byte) []byte {
	var all struct {
		Keys []map[string]any `json:"keys"`
	}
	_ = json.Unmarshal(set, &all) // is valid JSON; another type has no keys

	all.Keys = slices.DeleteFunc(all.Keys, func(k map[string]any) bool {
		kind, _ := k["kty"].(string)
		algorithm, _ := k["alg"].(string)
		use, _ := k["use"].(string)

		return (kind != "RSA" && kind != "EC") || use == "enc" ||
			(algorithm != "" && !slices.Contains(signingAlgorithms, algorithm))
	})

	text, _ := json.Marshal(all) // was JSON
	return text
}

var signingAlgorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512"}

// text returns a claim that is a string, bounded in size. Numbers are written out.
func (c claims) text(name string) string {
	switch value := c[name].(type) {
	case string:
		if len(value) <= maxParameter && !strings.ContainsRune(value, 0) {
			return value
		}
	case json.Number:
		return value.String()
	case float64:
		return fmt.Sprintf("%.0f", value)
	}

	return ""
}

// list returns a claim that is a string or a list of strings.
func (c claims) list(name string) []string {
	if many, ok := c[name].([]any); ok {
		var all []string
		for _, one := range many {
			text, _ := one.(string)
			all = append(all, text)
		}

		return all
	}

	return []string{c.text(name)}
}

// isTrue reports whether a claim is true. Apple writes it as a string.
func (c claims) isTrue(name string) bool {
	return c[name] == true || c[name] == "true" || c[name] == "1"
}

// matchesNonce reports whether the token has the nonce that the application has sent to the
// provider, by custom in hashed form.
func (c claims) matchesNonce(nonce string) bool {
	sum := sha256.Sum256([]byte(nonce))
	got := c.text("nonce")
	if nonce == "" || got == "" {
		return nonce == got
	}

	return equal(got, hex.EncodeToString(sum[:]))
}

// matchesAccessToken reports whether the access token is the one that the ID token was issued with,
// if that names one.
func (c claims) matchesAccessToken(token string) bool {
	got := c.text("at_hash")
	if got == "" || token == "" {
		return true
	}

	short, middle, long := sha256.Sum256([]byte(token)), sha512.Sum384([]byte(token)), sha512.Sum512([]byte(token))
	for _, half := range [][]byte{short[:16], middle[:24], long[:32]} { // by the signature algorithm
		if equal(strings.TrimRight(got, "="), base64.RawURLEncoding.EncodeToString(half)) {
			return true
		}
	}

	return false
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// addName adds the name in a JSON text if there is none. Its other members do not count: the text
// comes from the browser.
func (c claims) addName(text string) {
	var person struct {
		Name struct{ FirstName, LastName string }
	}
	if len(text) > maxParameter || json.Unmarshal([]byte(text), &person) != nil {
		return
	}

	for name, value := range map[string]string{"given_name": person.Name.FirstName,
		"family_name": person.Name.LastName} {
		if c.text("name") == "" && c.text(name) == "" {
			c[name] = value
		}
	}
}

// identity returns the person in an ID token.
func (c claims) identity(name string) Identity {
	p := profile{Issuer: c.text("iss"), Subject: c.text("sub"), Email: c.text("email"), Name: c.text("name"),
		Verified: c.isTrue("email_verified"), UserName: c.text("preferred_username"), Picture: c.text("picture")}
	if p.Name == "" {
		p.Name = strings.TrimSpace(c.text("given_name") + " " + c.text("family_name"))
	}

	// In Microsoft's tokens the address is any that an administrator of any tenant has typed. Only
	// this claim says that the tenant owns its domain.
	if name == "azure" {
		p.Verified = c.isTrue("xms_edov")
	}

	return p.identity()
}
