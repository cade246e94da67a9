// Package token makes and checks what callers show to say who they are: signed
// access tokens, and opaque secrets of which only a hash is kept.
//
// An access token says which session of which user it was made for, and nothing
// about rights: those are judged by the database at every request. Whether the
// session still exists, where hashes are stored and when keys change is left to the callers.
package token

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// NewSecret returns a random token of 256 bits in base64url, such as a refresh token.
func NewSecret() string {
	secret := make([]byte, 32)
	rand.Read(secret) // never fails

	return base64.RawURLEncoding.EncodeToString(secret)
}

// Hash returns the SHA-256 of a token from [NewSecret], which is what is stored of it.
// It is no hash for passwords.
func Hash(token string) []byte {
	sum := Sum(token)
	return sum[:]
}

// Sum is Hash for who wants no memory for it.
func Sum(token string) [sha256.Size]byte {
	var room [128]byte // longer than any
	return sha256.Sum256(append(room[:0], token...))
}

// Derive returns the 32 bytes that belong to a purpose under the secret (HKDF with SHA-256).
// Who knows those of one purpose learns nothing about the secret or another purpose's.
func Derive(secret []byte, purpose string) []byte {
	key, err := hkdf.Key(sha256.New, secret, nil, "socle "+purpose, 32)
	if err != nil { // only in FIPS 140 mode, for a secret that package config refuses
		panic("token: derive " + purpose + ": " + err.Error())
	}

	return key
}
