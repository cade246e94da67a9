package token

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"hash/crc32"
	"strings"
)

// Prefixes of API keys, recognizable for people and secret scanners.
const (
	PublishablePrefix = "socle_publishable_"
	SecretPrefix      = "socle_secret_"
	PersonalPrefix    = "socle_pat_" // of personal access tokens
)

var keyText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

const (
	keyRandom = 20 // bytes; 32 characters
	keySum    = 4  // bytes; 7 characters
)

// NewAPIKey returns a new key: the prefix, 160 random bits and a checksum.
func NewAPIKey(prefix string) string {
	random := make([]byte, keyRandom)
	_, _ = rand.Read(random) // never fails

	return prefix + keyText.EncodeToString(random) + checksum(prefix, random)
}

// IsAPIKey reports whether text has the form of a publishable or secret key with a valid checksum.
// Mistyped keys fail without a database query.
func IsAPIKey(text string) bool {
	return formed(text, PublishablePrefix) || formed(text, SecretPrefix)
}

// IsPersonal is [IsAPIKey] for personal access tokens.
func IsPersonal(text string) bool { return formed(text, PersonalPrefix) }

func formed(text, prefix string) bool {
	rest, ok := strings.CutPrefix(text, prefix)
	if !ok || len(rest) != keyText.EncodedLen(keyRandom)+keyText.EncodedLen(keySum) {
		return false
	}

	body, sum := rest[:keyText.EncodedLen(keyRandom)], rest[keyText.EncodedLen(keyRandom):]
	random, err := keyText.DecodeString(body)
	return err == nil && checksum(prefix, random) == sum
}

func checksum(prefix string, random []byte) string {
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(append([]byte(prefix), random...)))
	return keyText.EncodeToString(sum)
}
