package rest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"

	"socle/internal/rest/query"
)

// secretLeast is how many bytes a secret has at least: fewer can be guessed from one token.
const secretLeast = 32

// leeway is by how much the clocks of who signs and who verifies may differ.
const leeway = 30 * time.Second

// JWTConfig says which JSON Web Tokens are believed, and where they name the role.
type JWTConfig struct {
	Secret    []byte        // of HS256, at least 32 bytes; nil for none
	Keys      []byte        // a JSON Web Key or a set of them; nil for none
	Audience  string        // "" for any
	RoleClaim string        // a path such as .role, the default, .app.roles[0] or .roles[?(@ == "editor")]
	Cached    int           // tokens whose signature is not verified again; 0 is 1000, negative none
	CachedFor time.Duration // after which it is; 0: never
}

// JWT verifies JSON Web Tokens. It is safe for concurrent use.
type JWT struct {
	keys     []verifyingKey
	audience string
	role     []roleStep
	cached   int
	lifetime time.Duration

	mu   sync.RWMutex
	seen map[string]claims
}

type verifyingKey struct {
	id         string
	key        any
	algorithms []string
}

// claims are those of a token whose signature is good.
type claims struct {
	Caller
	expires, notBefore, issued *float64
	stranger                   error // not for us; told after what time has to say
	verified                   time.Time
}

// NewJWT returns a verifier. It fails if a key or the path can't be read.
func NewJWT(c JWTConfig) (*JWT, error) {
	v := &JWT{audience: c.Audience, cached: c.Cached, lifetime: c.CachedFor, seen: map[string]claims{}}
	if v.cached == 0 {
		v.cached = 1000
	}

	var err error
	if v.role, err = rolePath(c.RoleClaim); err != nil {
		return nil, err
	}

	if c.Secret != nil {
		if len(c.Secret) < secretLeast {
			return nil, fmt.Errorf("the JWT secret must be at least %d characters long", secretLeast)
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

// families are the algorithms of a kind of key, for one that names none itself.
var families = map[string][]string{
	"oct": {"HS256", "HS384", "HS512"},
	"RSA": {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"},
	"EC":  {"ES256", "ES384", "ES512"},
	"OKP": {"EdDSA"},
}

func newVerifyingKey(key jwk.Key) (verifyingKey, error) {
	k := verifyingKey{algorithms: families[key.KeyType().String()]}
	if a, ok := key.Algorithm(); ok {
		if !slices.Contains(k.algorithms, a.String()) {
			return k, fmt.Errorf("algorithm %s", a)
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

	if secret, ok := k.key.([]byte); ok && len(secret) < secretLeast {
		return k, fmt.Errorf("a secret of %d bytes, fewer than %d", len(secret), secretLeast)
	}

	return k, nil
}

// Verify returns who a token is for. It fails with the contract's errors.
func (v *JWT) Verify(_ context.Context, token string) (Caller, error) {
	v.mu.RLock()
	c, ok := v.seen[token]
	v.mu.RUnlock()

	now := time.Now()
	if ok && v.lifetime > 0 && now.Sub(c.verified) >= v.lifetime {
		ok = false
	}

	if !ok {
		payload, err := v.signed(token)
		if err != nil {
			return Caller{}, err
		}

		if c, err = v.claims(payload); err != nil {
			return Caller{}, err
		}
	}

	if err := c.timely(float64(now.UnixMilli()) / 1000); err != nil {
		return Caller{}, err
	}

	if c.stranger != nil {
		return Caller{}, c.stranger
	}

	if !ok && v.cached > 0 {
		c.verified = now
		v.mu.Lock()

		if _, again := v.seen[token]; !again && len(v.seen) >= v.cached {
			for old := range v.seen { // any one
				delete(v.seen, old)
				break
			}
		}

		v.seen[strings.Clone(token)] = c
		v.mu.Unlock()
	}

	return c.Caller, nil
}

func decoding(message string) *query.Error {
	return fail(http.StatusUnauthorized, "PGRST301", message)
}

func claiming(message string) error {
	return fail(http.StatusUnauthorized, "PGRST303", message)
}

// signed returns the payload of a token that one of the keys has signed.
func (v *JWT) signed(token string) ([]byte, error) {
	parts := strings.Count(token, ".") + 1
	if parts != 3 {
		return nil, decoding("Expected 3 parts in JWT; got " + strconv.Itoa(parts))
	}

	head, _, _ := strings.Cut(token, ".")

	var header struct {
		Algorithm string   `json:"alg"`
		KeyID     string   `json:"kid"`
		Critical  []string `json:"crit"`
	}

	plain, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil || json.Unmarshal(plain, &header) != nil || header.Critical != nil {
		return nil, decoding("JWT cryptographic operation failed")
	}

	if header.Algorithm == "none" {
		e := decoding("Wrong or unsupported encoding algorithm")
		e.Details = "JWT is unsecured but expected 'alg' was not 'none'"

		return nil, e
	}

	algorithm, ok := jwa.LookupSignatureAlgorithm(header.Algorithm)
	if !ok {
		return nil, decoding("JWT cryptographic operation failed")
	}

	tried := false
	for _, k := range v.keys {
		if header.KeyID != "" && k.id != "" && header.KeyID != k.id ||
			!slices.Contains(k.algorithms, header.Algorithm) {
			continue
		}

		tried = true

		if payload, err := jws.Verify([]byte(token), jws.WithKey(algorithm, k.key), jws.WithCompact()); err == nil {
			return payload, nil
		}
	}

	e := decoding("No suitable key or wrong key type")
	e.Details = "None of the keys was able to decode the JWT"
	if !tried {
		e.Details = "No suitable key was found to decode the JWT"
	}

	return nil, e
}

// claims reads a payload, and checks what does not change with time.
func (v *JWT) claims(payload []byte) (claims, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(payload, &members) != nil || members == nil {
		return claims{}, claiming("Parsing claims failed")
	}

	var c claims
	for _, t := range []struct {
		name string
		to   **float64
	}{{"exp", &c.expires}, {"nbf", &c.notBefore}, {"iat", &c.issued}} {
		if raw := members[t.name]; raw != nil && json.Unmarshal(raw, t.to) != nil {
			return claims{}, claiming("The JWT '" + t.name + "' claim must be a number")
		}
	}

	c.stranger = v.forUs(members["aud"])
	var all any
	if json.Unmarshal(payload, &all) != nil {
		return claims{}, claiming("Parsing claims failed")
	}

	c.Role = roleAt(all, v.role)
	c.Claims = payload
	if c.Role != "" {
		c.Claims = withRole(payload, c.Role)
	}

	return c, nil
}

func (v *JWT) forUs(raw json.RawMessage) error {
	var audience any
	if raw != nil && json.Unmarshal(raw, &audience) != nil {
		return claiming("Parsing claims failed")
	}

	var named []string
	switch a := audience.(type) {
	case nil:
	case string:
		named = []string{a}
	case []any:
		for _, one := range a {
			text, ok := one.(string)
			if !ok {
				return claiming("The JWT 'aud' claim must be a string or an array of strings")
			}

			named = append(named, text)
		}
	default:
		return claiming("The JWT 'aud' claim must be a string or an array of strings")
	}

	if v.audience != "" && len(named) > 0 && !slices.Contains(named, v.audience) {
		return claiming("JWT not in audience")
	}

	return nil
}

// timely checks what changes with time, in seconds since 1970.
func (c *claims) timely(now float64) error {
	slack := leeway.Seconds()
	switch {
	case c.expires != nil && now-slack > *c.expires:
		return claiming("JWT expired")
	case c.notBefore != nil && now+slack < *c.notBefore:
		return claiming("JWT not yet valid")
	case c.issued != nil && now+slack < *c.issued:
		return claiming("JWT issued at future")
	}

	return nil
}
