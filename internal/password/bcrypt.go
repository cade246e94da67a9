package password

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/crypto/bcrypt"

	"github.com/socle-dev/socle/internal/fault"
)

// maxBcryptCost bounds the time to verify an imported hash, to some 0.3 s.
const maxBcryptCost = 12

// bcryptForm matches bcrypt hashes of a cost up to [maxBcryptCost]: 22 characters of the salt, 31
// of the hash, whose last has four bits. The SQL function auth.check_hash has the same expression.
var bcryptForm = regexp.MustCompile(`^\$2[aby]\$(0[4-9]|1[0-2])\$[./A-Za-z0-9]{52}[.CGKOSWaeimquy26]$`)

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
		if bcryptForm.MatchString(hash) {
			return nil
		}
	} else if _, err := parse(hash); err == nil {
		return nil
	}

	return fault.OnField(fault.Unprocessable, "password_hash", "invalid_hash",
		"must be argon2id with 32 bytes, bcrypt of cost %d at most, or $fbscrypt$ of Firebase", maxBcryptCost)
}

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
