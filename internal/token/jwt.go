package token

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/lestrrat-go/jwx/v3/jwk"

	"crypto"
)

// DeriveSigningKey derives the signing key for a purpose from a secret. It is deterministic.
func DeriveSigningKey(secret []byte, purpose string) (Key, error) {
	for attempt := range 8 { // nearly every 32-byte number is a private key
		private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), Derive(secret, fmt.Sprint(purpose, " ", attempt)))
		if err != nil {
			continue
		}

		public, err := jwk.Import(&private.PublicKey)
		if err != nil {
			return Key{}, fmt.Errorf("derive a signing key: %w", err)
		}

		thumbprint, err := public.Thumbprint(crypto.SHA256)
		if err != nil {
			return Key{}, fmt.Errorf("derive a signing key: %w", err)
		}

		return Key{base64.RawURLEncoding.EncodeToString(thumbprint), private}, nil
	}

	return Key{}, fmt.Errorf("derive a signing key: no valid number")
}

// PublicJWK returns the public key as a JSON Web Key.
func (k Key) PublicJWK() ([]byte, error) {
	public, err := k.public()
	if err != nil {
		return nil, err
	}

	return json.Marshal(public)
}

// SignJWT returns a JSON Web Token (ES256) with the claims, a JSON object.
func (k Key) SignJWT(claims []byte) (string, error) {
	header, err := json.Marshal(map[string]string{"alg": "ES256", "typ": "JWT", "kid": k.ID})
	if err != nil {
		return "", err
	}

	text := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))

	r, s, err := ecdsa.Sign(rand.Reader, k.private, sum[:])
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}

	signature := make([]byte, 2*coordinateSize)
	r.FillBytes(signature[:coordinateSize])
	s.FillBytes(signature[coordinateSize:])

	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}
