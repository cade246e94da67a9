package pg

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// SCRAMVerifier returns the SCRAM-SHA-256 verifier (RFC 5803) that PostgreSQL stores instead of a
// password. key must be a random ASCII key of at least 128 bits.
//
// It hashes once. PostgreSQL's default of 4096 iterations slows down dictionary attacks on a stolen
// verifier. A random key cannot be guessed, and the client would pay for the iterations at each new
// connection.
func SCRAMVerifier(key string) string {
	salt := make([]byte, 16)
	rand.Read(salt) // never fails

	salted, err := pbkdf2.Key(sha256.New, key, salt, 1, sha256.Size)
	if err != nil {
		panic("pg: verifier: " + err.Error()) // only sizes that FIPS 140 forbids
	}

	stored := sha256.Sum256(hmacSHA256(salted, "Client Key"))
	encode := base64.StdEncoding.EncodeToString

	return "SCRAM-SHA-256$1:" + encode(salt) + "$" + encode(stored[:]) + ":" + encode(hmacSHA256(salted, "Server Key"))
}

func hmacSHA256(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))

	return h.Sum(nil)
}
