// Package token creates and verifies credentials: signed access tokens, stateless signed tokens,
// API keys, one-time codes, and opaque secrets that are stored as a hash.
//
// An access token names a user and a session. It carries no rights, which the database decides for
// each request. Session lookup, hash storage and key rotation belong to package platform and the
// callers.
package token

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// NewSecret returns 256 random bits in base64url.
func NewSecret() string {
	secret := make([]byte, 32)
	rand.Read(secret) // never fails

	return base64.RawURLEncoding.EncodeToString(secret)
}

// Hash returns a high-entropy token's SHA-256, for storage. It is not suitable for passwords.
func Hash(token string) []byte {
	sum := Sum(token)
	return sum[:]
}

// Sum is [Hash] without an allocation.
func Sum(token string) [sha256.Size]byte {
	var buffer [128]byte // longer than any token
	return sha256.Sum256(append(buffer[:0], token...))
}

// Derive derives the 32-byte subkey for a purpose from secret (HKDF-SHA256). A subkey reveals
// nothing about the secret or other subkeys.
func Derive(secret []byte, purpose string) []byte {
	key, err := hkdf.Key(sha256.New, secret, nil, "socle "+purpose, 32)
	if err != nil { // only in FIPS 140 mode, for a secret that package config rejects
		panic("token: derive " + purpose + ": " + err.Error())
	}

	return key
}
