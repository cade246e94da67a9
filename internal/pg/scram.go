package pg

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// Verifier returns what PostgreSQL keeps of a login's password instead of the password (SCRAM-SHA-256, RFC 5803), for a password
// that is a random key of 128 bits or more, in ASCII.
//
// It hashes once. PostgreSQL's own 4096 rounds slow down whoever guesses words from a stolen verifier; nobody
// guesses a random key, and the rounds would be paid for with each new connection, by the client.
func Verifier(key string) string {
	salt := make([]byte, 16)
	rand.Read(salt) // never fails

	salted, err := pbkdf2.Key(sha256.New, key, salt, 1, sha256.Size)
	if err != nil {
		panic("pg: verifier: " + err.Error()) // only sizes that FIPS 140 forbids
	}

	stored := sha256.Sum256(keyed(salted, "Client Key"))
	encode := base64.StdEncoding.EncodeToString

	return "SCRAM-SHA-256$1:" + encode(salt) + "$" + encode(stored[:]) + ":" + encode(keyed(salted, "Server Key"))
}

func keyed(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))

	return h.Sum(nil)
}
