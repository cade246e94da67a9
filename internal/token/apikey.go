package token

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"hash/crc32"
	"strings"
)

// API key prefixes, recognizable for people and secret scanners.
const (
	PublishablePrefix = "socle_publishable_"
	SecretPrefix      = "socle_secret_"
	PersonalPrefix    = "socle_pat_" // personal access tokens
)

var keyEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

const (
	keyRandomSize   = 20 // bytes; 32 characters
	keyChecksumSize = 4  // bytes; 7 characters
	hintSize        = 4  // random characters that the hint shows
)

// NewAPIKey returns a new key: the prefix, 160 random bits and a checksum.
func NewAPIKey(prefix string) string {
	random := make([]byte, keyRandomSize)
	_, _ = rand.Read(random) // never fails

	return prefix + keyEncoding.EncodeToString(random) + checksum(prefix, random)
}

// Hint returns a key's first characters, by which the owner recognizes it.
func Hint(prefix, key string) string { return key[:len(prefix)+hintSize] }

// IsAPIKey reports whether text is formed like a publishable or secret key, with a valid checksum.
// Mistyped keys fail without a database query.
func IsAPIKey(text string) bool {
	return wellFormed(text, PublishablePrefix) || wellFormed(text, SecretPrefix)
}

// IsPersonalToken is [IsAPIKey] for personal access tokens.
func IsPersonalToken(text string) bool { return wellFormed(text, PersonalPrefix) }

func wellFormed(text, prefix string) bool {
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok || len(rest) != keyEncoding.EncodedLen(keyRandomSize)+keyEncoding.EncodedLen(keyChecksumSize) {
		return false
	}

	body, sum := rest[:keyEncoding.EncodedLen(keyRandomSize)], rest[keyEncoding.EncodedLen(keyRandomSize):]
	random, err := keyEncoding.DecodeString(body)
	return err == nil && checksum(prefix, random) == sum
}

func checksum(prefix string, random []byte) string {
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(append([]byte(prefix), random...)))
	return keyEncoding.EncodeToString(sum)
}
