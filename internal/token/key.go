package token

import (
	"crypto"
	"crypto/cipher"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
)

// Key is a private key that signs access tokens (ES256).
type Key struct {
	ID      string // in token headers and the key set: the public key's thumbprint (RFC 7638)
	private *ecdsa.PrivateKey
}

// NewKey returns a new random key.
func NewKey() (Key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Key{}, fmt.Errorf("create a signing key: %w", err)
	}

	public, err := jwk.Import(&private.PublicKey)
	if err != nil {
		return Key{}, fmt.Errorf("create a signing key: %w", err)
	}

	thumbprint, err := public.Thumbprint(crypto.SHA256)
	if err != nil {
		return Key{}, fmt.Errorf("create a signing key: %w", err)
	}

	return Key{base64.RawURLEncoding.EncodeToString(thumbprint), private}, nil
}

// Seal returns the key encrypted under the server's secret key (AES-256-GCM), bound to its ID.
func (k Key) Seal(secret []byte) ([]byte, error) {
	plain, err := k.private.Bytes()
	if err != nil {
		return nil, fmt.Errorf("seal signing key %s: %w", k.ID, err)
	}

	box, err := signingKeyAEAD(secret)
	if err != nil {
		return nil, fmt.Errorf("seal signing key %s: %w", k.ID, err)
	}

	return box.Seal(nil, nil, plain, []byte(k.ID)), nil
}

// ErrSecret means that another secret key sealed a signing key, or that the sealed bytes or the ID
// were changed.
var ErrSecret = errors.New("it was sealed under another secret key")

// OpenKey returns the key that [Key.Seal] sealed. It fails with [ErrSecret] for another secret.
func OpenKey(id string, ciphertext, secret []byte) (Key, error) {
	box, err := signingKeyAEAD(secret)
	if err != nil {
		return Key{}, fmt.Errorf("open signing key %s: %w", id, err)
	}

	plain, err := box.Open(nil, nil, ciphertext, []byte(id))
	if err != nil {
		return Key{}, fmt.Errorf("open signing key %s: %w", id, ErrSecret)
	}

	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), plain)
	if err != nil {
		return Key{}, fmt.Errorf("open signing key %s: %w", id, err)
	}

	return Key{id, private}, nil
}

func signingKeyAEAD(secret []byte) (cipher.AEAD, error) {
	return newAEAD(Derive(secret, "signing keys"))
}

// public returns the public key with its id, algorithm and use.
func (k Key) public() (jwk.Key, error) {
	public, err := jwk.Import(&k.private.PublicKey)
	if err != nil {
		return nil, err
	}

	return public, errors.Join(
		public.Set(jwk.KeyIDKey, k.ID),
		public.Set(jwk.AlgorithmKey, jwa.ES256()),
		public.Set(jwk.KeyUsageKey, "sig"))
}
