package token

import (
	"crypto/ecdsa"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"

	"github.com/socle-dev/socle/internal/fault"
)

const (
	tokenTTL     = time.Hour
	leeway       = 30 * time.Second // tolerated clock skew between servers
	maxTokenSize = 8 << 10          // bytes; typical tokens have 500
	tokenType    = "at+jwt"         // type header (RFC 9068); other tokens have another type
	issuer       = "socle"
)

// Audience is the audience of access tokens. No other token may have it.
const Audience = "socle-platform"

// IsPlatformJWT reports whether a JWT claims to be a platform access token. It verifies nothing.
func IsPlatformJWT(text string) bool {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return false
	}

	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return false
	}

	var claims struct {
		Audience string `json:"aud"`
	}

	return json.Unmarshal(payload, &claims) == nil && claims.Audience == Audience
}

// Keyring signs access tokens with one key and verifies those from several. It is immutable and
// safe for concurrent use.
type Keyring struct {
	active Key
	keys   map[string]*ecdsa.PublicKey
	jwks   []byte
	cache  tokenCache
}

// Claims holds an access token's claims.
type Claims struct {
	User, Session       uuid.UUID
	IssuedAt, ExpiresAt time.Time // UTC, whole seconds
}

// NewKeyring returns a keyring that signs with active and verifies tokens from active and older. It
// panics on a zero or duplicate key.
func NewKeyring(active Key, older ...Key) *Keyring {
	r := &Keyring{active: active, keys: map[string]*ecdsa.PublicKey{}}
	set := jwk.NewSet()
	for _, k := range append([]Key{active}, older...) {
		public, err := k.public()
		if err == nil {
			err = set.AddKey(public)
		}
		if err != nil { // a zero or duplicate Key
			panic("token: keyring: " + err.Error())
		}

		r.keys[k.ID] = &k.private.PublicKey
	}

	jwks, err := json.Marshal(set)
	if err != nil {
		panic("token: keyring: " + err.Error())
	}

	r.jwks = jwks
	return r
}

// JWKS returns the public keys as a JSON Web Key Set. The caller must not modify it.
func (r *Keyring) JWKS() []byte { return r.jwks }

// payload is an access token's body. Pointers distinguish absent times from zero.
type payload struct {
	Issuer    string `json:"iss"`
	Audience  string `json:"aud"`
	Subject   string `json:"sub"`
	Session   string `json:"sid"`
	ID        string `json:"jti"`
	IssuedAt  *int64 `json:"iat"`
	NotBefore *int64 `json:"nbf"`
	ExpiresAt *int64 `json:"exp"`
}

// Sign returns a token for a user's session, valid for one hour from now, and its claims.
func (r *Keyring) Sign(user, session uuid.UUID, now time.Time) (string, Claims, error) {
	issuedAt, expiresAt := now.Unix(), now.Add(tokenTTL).Unix()
	body, err := json.Marshal(payload{
		Issuer: issuer, Audience: Audience, Subject: user.String(), Session: session.String(), ID: rand.Text(),
		IssuedAt: &issuedAt, NotBefore: &issuedAt, ExpiresAt: &expiresAt,
	})
	if err != nil {
		return "", Claims{}, fmt.Errorf("sign an access token: %w", err)
	}

	header := jws.NewHeaders()
	if err := errors.Join(header.Set(jws.KeyIDKey, r.active.ID), header.Set(jws.TypeKey, tokenType)); err != nil {
		return "", Claims{}, fmt.Errorf("sign an access token: %w", err)
	}

	token, err := jws.Sign(body, jws.WithKey(jwa.ES256(), r.active.private, jws.WithProtectedHeaders(header)))
	if err != nil {
		return "", Claims{}, fmt.Errorf("sign an access token: %w", err)
	}

	return string(token), Claims{user, session, time.Unix(issuedAt, 0).UTC(), time.Unix(expiresAt, 0).UTC()}, nil
}

// Verify returns an access token's claims if one of the keys signed it and it is valid at now.
// Otherwise it fails with Unauthenticated and the code token_expired or invalid_token.
func (r *Keyring) Verify(token string, now time.Time) (Claims, error) {
	claims, err := r.verify(token, now)
	if err != nil {
		return Claims{}, fault.New(fault.Unauthenticated, "the access token is not valid").
			WithCode("invalid_token").WithCause(err)
	}

	// No leeway: early expiry on a fast clock costs a client one refresh.
	if !now.Before(claims.ExpiresAt) {
		return Claims{}, fault.New(fault.Unauthenticated, "the access token has expired").WithCode("token_expired")
	}

	return claims, nil
}

// verify checks everything except the expiry.
func (r *Keyring) verify(token string, now time.Time) (Claims, error) {
	if len(token) > maxTokenSize {
		return Claims{}, fmt.Errorf("token of %d bytes", len(token))
	}
	if p, ok := r.cache.get(token); ok {
		return p.claims(now)
	}

	key, err := r.signer(token)
	if err != nil {
		return Claims{}, err
	}

	body, err := jws.Verify([]byte(token), jws.WithKey(jwa.ES256(), key), jws.WithCompact())
	if err != nil {
		return Claims{}, err
	}

	var p payload
	if err := json.Unmarshal(body, &p); err != nil {
		return Claims{}, err
	}

	r.cache.add(token, p)
	return p.claims(now)
}

// signer returns the key that the token header's kid names. It ignores all other key references.
func (r *Keyring) signer(token string) (*ecdsa.PublicKey, error) {
	if strings.Count(token, ".") != 2 {
		return nil, errors.New("not three segments")
	}

	segments := strings.Split(token, ".")
	for _, s := range segments {
		// Decoders ignore line breaks and spare bits, so one signature would have many encodings.
		if plain, err := base64.RawURLEncoding.DecodeString(s); err != nil ||
			base64.RawURLEncoding.EncodeToString(plain) != s {
			return nil, errors.New("a segment is not base64url")
		}
	}

	var header struct {
		Algorithm string   `json:"alg"`
		Type      string   `json:"typ"`
		KeyID     string   `json:"kid"`
		Critical  []string `json:"crit"`
	}

	plain, err := base64.RawURLEncoding.DecodeString(segments[0])
	if err == nil {
		err = json.Unmarshal(plain, &header)
	}
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}

	key := r.keys[header.KeyID]
	if header.Algorithm != jwa.ES256().String() || header.Type != tokenType || header.Critical != nil || key == nil {
		return nil, errors.New("header names another algorithm, type, extension or key")
	}

	return key, nil
}

func (p payload) claims(now time.Time) (Claims, error) {
	if p.Issuer != issuer || p.Audience != Audience || p.ID == "" {
		return Claims{}, errors.New("issuer, audience or id is missing or wrong")
	}
	if p.IssuedAt == nil || p.NotBefore == nil || p.ExpiresAt == nil {
		return Claims{}, errors.New("a time is missing")
	}

	user, err := parseCanonicalUUID(p.Subject)
	if err != nil {
		return Claims{}, fmt.Errorf("sub: %w", err)
	}

	session, err := parseCanonicalUUID(p.Session)
	if err != nil {
		return Claims{}, fmt.Errorf("sid: %w", err)
	}

	if latest := now.Add(leeway).Unix(); *p.NotBefore > latest || *p.IssuedAt > latest {
		return Claims{}, errors.New("issued in the future")
	}
	if *p.ExpiresAt > now.Add(tokenTTL+leeway).Unix() {
		return Claims{}, errors.New("expires too late")
	}

	return Claims{user, session, time.Unix(*p.IssuedAt, 0).UTC(), time.Unix(*p.ExpiresAt, 0).UTC()}, nil
}

// parseCanonicalUUID parses a UUID in its canonical spelling only.
func parseCanonicalUUID(s string) (uuid.UUID, error) {
	id, err := uuid.Parse(s)
	if err == nil && (id.String() != s || id == uuid.Nil) {
		err = errors.New("not in canonical form")
	}

	return id, err
}
