// Package jwt verifies JSON Web Tokens and finds the role that they claim.
//
// The texts of its errors follow PostgREST's contract. Other contracts choose status and code by
// the error's code.
package jwt

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"

	"github.com/socle-dev/socle/internal/cache"
	"github.com/socle-dev/socle/internal/fault"
)

// minSecretBytes is a secret's minimum length. Shorter ones can be guessed from a token.
const minSecretBytes = 32

// clockSkew is the tolerated clock difference between signer and verifier.
const clockSkew = 30 * time.Second

// Config configures a Verifier.
type Config struct {
	Secret   []byte // key for HS256, at least 32 bytes; nil means none
	Keys     []byte // a JSON Web Key or key set; nil means none
	Audience string // "" means any
	// ForeignAudience is the audience of another verifier's tokens. They are refused, even if one
	// of the keys signed them. "" means none.
	ForeignAudience string
	// RoleClaim is the role's path in the claims, such as .role, the default, .app.roles[0] or
	// .roles[?(@ == "editor")].
	RoleClaim string
	Anonymous string        // role for tokens that claim none; "" means that Verify returns none
	CacheSize int           // verified tokens to cache; 0 means 1000, negative none
	CacheTTL  time.Duration // lifetime in the cache; 0 means no limit
}

// Verifier verifies JSON Web Tokens. It is safe for concurrent use.
type Verifier struct {
	keys      []verifyingKey
	audience  string
	foreign   string
	role      []roleStep
	anonymous string
	cache     *cache.Cache[string, claims] // verified tokens; nil means no cache
}

type verifyingKey struct {
	id         string
	key        any
	algorithms []string
}

// Token is a verified token.
type Token struct {
	Role    string // Config.Anonymous if it claims none
	Claims  []byte // JSON object, whose member role is Role
	Subject string // claim sub, "" unless it is a string
	Session string // claim session_id, "" unless it is a string
}

type claims struct {
	Token
	expires, notBefore, issuedAt *float64
	audienceError                error // reported after the time checks
}

// New returns a verifier. It fails for an invalid key or role path.
func New(c Config) (*Verifier, error) {
	v := &Verifier{audience: c.Audience, foreign: c.ForeignAudience, anonymous: c.Anonymous}
	if c.CacheSize >= 0 {
		v.cache = cache.New[string, claims](cache.Limits{Entries: cmp.Or(c.CacheSize, 1000), TTL: c.CacheTTL})
	}

	var err error
	if v.role, err = rolePath(c.RoleClaim); err != nil {
		return nil, err
	}

	if c.Secret != nil {
		if len(c.Secret) < minSecretBytes {
			return nil, fmt.Errorf("the JWT secret must be at least %d characters long", minSecretBytes)
		}
		v.keys = append(v.keys, verifyingKey{key: c.Secret, algorithms: []string{"HS256"}})
	}

	if c.Keys != nil {
		set, err := jwk.Parse(c.Keys)
		if err != nil {
			return nil, fmt.Errorf("read the JSON Web Keys: %w", err)
		}

		for i := range set.Len() {
			key, _ := set.Key(i)
			k, err := newVerifyingKey(key)
			if err != nil {
				return nil, fmt.Errorf("read the JSON Web Key %d: %w", i, err)
			}

			v.keys = append(v.keys, k)
		}
	}

	return v, nil
}

// keyAlgorithms are the algorithms by key type, for keys that specify none.
var keyAlgorithms = map[string][]string{
	"oct": {"HS256", "HS384", "HS512"},
	"RSA": {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"},
	"EC":  {"ES256", "ES384", "ES512"},
	"OKP": {"EdDSA"},
}

func newVerifyingKey(key jwk.Key) (verifyingKey, error) {
	k := verifyingKey{algorithms: keyAlgorithms[key.KeyType().String()]}
	if a, ok := key.Algorithm(); ok {
		if !slices.Contains(k.algorithms, a.String()) {
			return k, fmt.Errorf("unsupported algorithm %s", a)
		}
		k.algorithms = []string{a.String()}
	}

	k.id, _ = key.KeyID()
	if key.KeyType().String() != "oct" {
		public, err := key.PublicKey()
		if err != nil {
			return k, err
		}

		key = public
	}

	if err := jwk.Export(key, &k.key); err != nil {
		return k, err
	}

	if secret, ok := k.key.([]byte); ok && len(secret) < minSecretBytes {
		return k, fmt.Errorf("secret of %d bytes, want at least %d", len(secret), minSecretBytes)
	}

	return k, nil
}

// Verify verifies a token. It fails with Unauthenticated and the code [InvalidToken] or
// [InvalidClaims]. The error's extra member details, if present, explains it.
func (v *Verifier) Verify(token string) (Token, error) {
	c, isCached := v.cache.Get(token)
	if !isCached {
		payload, err := v.verifySignature(token)
		if err != nil {
			return Token{}, err
		}
		if c, err = v.parseClaims(payload); err != nil {
			return Token{}, err
		}
	}

	if err := c.checkTimes(float64(time.Now().UnixMilli()) / 1000); err != nil {
		return Token{}, err
	}
	if c.audienceError != nil {
		return Token{}, c.audienceError
	}

	if !isCached {
		v.cache.Put(strings.Clone(token), c)
	}

	return c.Token, nil
}

// Claimed returns the token that has these claims, a JSON object, as if one of the keys had signed
// it. It checks neither times nor audience.
func (v *Verifier) Claimed(payload []byte) (Token, error) {
	c, err := v.parseClaims(payload)
	return c.Token, err
}

// Error codes.
const (
	InvalidToken  = "invalid_token"  // malformed, or not signed by a key of the verifier
	InvalidClaims = "invalid_claims" // signed, but expired or not for this verifier
)

func decodeError(message string) *fault.Error {
	return fault.New(fault.Unauthenticated, "%s", message).WithCode(InvalidToken)
}

func decodeErrorWith(message, details string) *fault.Error {
	e := decodeError(message)
	e.Extra = map[string]any{"details": details}

	return e
}

func claimsError(message string) error {
	return fault.New(fault.Unauthenticated, "%s", message).WithCode(InvalidClaims)
}

// verifySignature returns the payload if one of the keys signed the token.
func (v *Verifier) verifySignature(token string) ([]byte, error) {
	parts := strings.Count(token, ".") + 1
	if parts != 3 {
		return nil, decodeError("Expected 3 parts in JWT; got " + strconv.Itoa(parts))
	}

	head, _, _ := strings.Cut(token, ".")

	var header struct {
		Algorithm string   `json:"alg"`
		KeyID     string   `json:"kid"`
		Critical  []string `json:"crit"`
	}

	plain, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil || json.Unmarshal(plain, &header) != nil || header.Critical != nil {
		return nil, decodeError("JWT cryptographic operation failed")
	}

	if header.Algorithm == "none" {
		return nil, decodeErrorWith("Wrong or unsupported encoding algorithm",
			"JWT is unsecured but expected 'alg' was not 'none'")
	}

	algorithm, ok := jwa.LookupSignatureAlgorithm(header.Algorithm)
	if !ok {
		return nil, decodeError("JWT cryptographic operation failed")
	}

	anyKeyFits := false
	for _, k := range v.keys {
		if (header.KeyID != "" && k.id != "" && header.KeyID != k.id) ||
			!slices.Contains(k.algorithms, header.Algorithm) {
			continue
		}

		anyKeyFits = true

		if payload, err := jws.Verify([]byte(token), jws.WithKey(algorithm, k.key), jws.WithCompact()); err == nil {
			return payload, nil
		}
	}

	details := "None of the keys was able to decode the JWT"
	if !anyKeyFits {
		details = "No suitable key was found to decode the JWT"
	}

	return nil, decodeErrorWith("No suitable key or wrong key type", details)
}

// parseClaims parses a payload and runs the checks that do not depend on time.
func (v *Verifier) parseClaims(payload []byte) (claims, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(payload, &members) != nil || members == nil {
		return claims{}, claimsError("Parsing claims failed")
	}

	var c claims
	for _, t := range []struct {
		name string
		to   **float64
	}{{"exp", &c.expires}, {"nbf", &c.notBefore}, {"iat", &c.issuedAt}} {
		if raw := members[t.name]; raw != nil && json.Unmarshal(raw, t.to) != nil {
			return claims{}, claimsError("The JWT '" + t.name + "' claim must be a number")
		}
	}

	c.audienceError = v.checkAudience(members["aud"])
	var all any
	if json.Unmarshal(payload, &all) != nil {
		return claims{}, claimsError("Parsing claims failed")
	}

	_ = json.Unmarshal(members["sub"], &c.Subject) // another type identifies no user
	_ = json.Unmarshal(members["session_id"], &c.Session)

	c.Role, c.Claims = cmp.Or(roleAt(all, v.role), v.anonymous), payload
	if c.Role != "" {
		c.Claims = withRole(payload, members, c.Role)
	}

	return c, nil
}

// withRole returns the payload with its member role set to role.
func withRole(payload []byte, members map[string]json.RawMessage, role string) []byte {
	var previous string
	if json.Unmarshal(members["role"], &previous) == nil && previous == role {
		return payload
	}

	text, _ := json.Marshal(role) // a string has no error
	members["role"] = text
	text, err := json.Marshal(members)
	if err != nil {
		return payload
	}

	return text
}

func (v *Verifier) checkAudience(raw json.RawMessage) error {
	var audience any
	if raw != nil && json.Unmarshal(raw, &audience) != nil {
		return claimsError("Parsing claims failed")
	}

	var audiences []string
	switch a := audience.(type) {
	case nil:
	case string:
		audiences = []string{a}
	case []any:
		for _, one := range a {
			text, ok := one.(string)
			if !ok {
				return claimsError("The JWT 'aud' claim must be a string or an array of strings")
			}

			audiences = append(audiences, text)
		}
	default:
		return claimsError("The JWT 'aud' claim must be a string or an array of strings")
	}

	switch {
	case v.audience != "" && len(audiences) > 0 && !slices.Contains(audiences, v.audience),
		v.foreign != "" && slices.Contains(audiences, v.foreign):
		return claimsError("JWT not in audience")
	}

	return nil
}

// checkTimes checks exp, nbf and iat. now is in seconds since 1970.
func (c *claims) checkTimes(now float64) error {
	slack := clockSkew.Seconds()
	switch {
	case c.expires != nil && now-slack > *c.expires:
		return claimsError("JWT expired")
	case c.notBefore != nil && now+slack < *c.notBefore:
		return claimsError("JWT not yet valid")
	case c.issuedAt != nil && now+slack < *c.issuedAt:
		return claimsError("JWT issued at future")
	}

	return nil
}
