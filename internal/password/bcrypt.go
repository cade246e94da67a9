package password

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/bcrypt"

	"github.com/socle-dev/socle/internal/fault"
)

// maxBcryptCost bounds the time to verify an imported hash, to some 0.3 s.
const maxBcryptCost = 12

// isBcrypt reports whether a hash is bcrypt's, from an imported account.
func isBcrypt(hash string) bool { return strings.HasPrefix(hash, "$2") }

// IsCurrent reports whether [Hasher.Hash] makes this kind of hash. Others are replaced at the next
// log-in.
func IsCurrent(hash string) bool {
	p, err := parse(hash)
	return err == nil && p.memory == memory && p.passes == passes && p.lanes == lanes
}

// CheckImported fails with Unprocessable unless [Hasher.Verify] accepts another system's hash:
// argon2id at most four times as costly as our own, bcrypt, or Firebase's scrypt.
func CheckImported(hash string) error {
	if isFirebase(hash) {
		if _, err := parseFirebase(hash); err == nil {
			return nil
		}
	} else if isBcrypt(hash) {
		cost, err := bcrypt.Cost([]byte(hash))
		if err == nil && cost <= maxBcryptCost && len(hash) == bcryptSize {
			return nil
		}
	} else if _, err := parse(hash); err == nil {
		return nil
	}

	return fault.OnField(fault.Unprocessable, "password_hash", "invalid_hash",
		"must be argon2id with 32 bytes, bcrypt of cost %d at most, or $fbscrypt$ of Firebase", maxBcryptCost)
}

// bcryptSize is a bcrypt hash's length.
const bcryptSize = 60

func (h *Hasher) verifyBcrypt(ctx context.Context, hash, password string) (bool, error) {
	release, err := h.enter(ctx)
	if err != nil {
		return false, err
	}
	defer release()

	if cost, err := bcrypt.Cost([]byte(hash)); err != nil || cost > maxBcryptCost {
		return false, fmt.Errorf("verify a password: %w", ErrMalformed)
	}

	switch err := bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)); {
	case errors.Is(err, bcrypt.ErrMismatchedHashAndPassword):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("verify a password: %w", ErrMalformed)
	}

	return true, nil
}
