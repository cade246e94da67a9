package pg

import "github.com/socle-dev/socle/internal/pgwire"

// SCRAMVerifier returns the SCRAM-SHA-256 verifier (RFC 5803) that PostgreSQL stores instead of a
// password. key must be a random ASCII key with at least 128 bits.
//
// It hashes once. PostgreSQL's default, 4096 iterations, slows down dictionary attacks on a stolen
// verifier. A random key cannot be guessed, and the client would pay for the iterations at each new
// connection.
func SCRAMVerifier(key string) string { return pgwire.NewVerifier(key, 1).String() }
