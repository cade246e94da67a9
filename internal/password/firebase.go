package password

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/crypto/scrypt"
)

// firebasePrefix begins a Firebase Authentication hash, in Supabase Auth's form:
// $fbscrypt$v=1,n=MEMORY,r=ROUNDS,p=1,ss=SEPARATOR,sk=SIGNER_KEY$SALT$HASH, in base64.
const firebasePrefix = "$fbscrypt$"

// Parameter bounds for imported hashes: 32 MiB, and some 0.2 s.
const (
	maxFirebaseMemory = 15 // binary logarithm
	maxFirebaseRounds = 8
	firebaseKeySize   = 32
	maxFirebaseSize   = 1024
)

// firebase is a Firebase hash, a variant of scrypt: the derived key encrypts the Firebase project's
// signer key, and the ciphertext is the hash.
type firebase struct {
	memory, rounds                  int
	separator, signerKey, salt, key []byte
}

var errFirebase = fmt.Errorf("%w: no valid hash of Firebase", ErrMalformed)

func isFirebase(hash string) bool { return strings.HasPrefix(hash, firebasePrefix) }

// parseFirebase parses a hash. Its errors do not repeat the text.
func parseFirebase(text string) (firebase, error) {
	parts := strings.Split(strings.TrimPrefix(text, firebasePrefix), "$")
	if len(parts) != 3 || len(text) > maxFirebaseSize {
		return firebase{}, errFirebase
	}

	var f firebase
	parameters, signerKey, _ := strings.Cut(parts[0], ",sk=")
	parameters, separator, _ := strings.Cut(parameters, ",ss=")
	var lanes int
	if _, err := fmt.Sscanf(parameters, "v=1,n=%d,r=%d,p=%d", &f.memory, &f.rounds, &lanes); err != nil {
		return firebase{}, errFirebase
	}

	for text, to := range map[string]*[]byte{
		separator: &f.separator, signerKey: &f.signerKey, parts[1]: &f.salt, parts[2]: &f.key,
	} {
		var err error
		if *to, err = base64.StdEncoding.DecodeString(text); err != nil || len(*to) == 0 {
			return firebase{}, errFirebase
		}
	}

	inBounds := f.memory >= 1 && f.memory <= maxFirebaseMemory && f.rounds >= 1 && f.rounds <= maxFirebaseRounds
	if !inBounds || lanes != 1 || len(f.key) != len(f.signerKey) {
		return firebase{}, errFirebase
	}

	return f, nil
}

func (h *Hasher) verifyFirebase(ctx context.Context, hash, password string) (bool, error) {
	f, err := parseFirebase(hash)
	if err != nil {
		return false, fmt.Errorf("verify a password: %w", err)
	}

	release, err := h.enter(ctx)
	if err != nil {
		return false, err
	}
	defer release()

	salt := append(append([]byte{}, f.salt...), f.separator...)
	key, err := scrypt.Key([]byte(password), salt, 1<<f.memory, f.rounds, 1, firebaseKeySize)
	if err != nil {
		return false, fmt.Errorf("verify a password: %w", err)
	}

	block, err := aes.NewCipher(key)
	if err != nil {
		return false, fmt.Errorf("verify a password: %w", err)
	}

	got := make([]byte, len(f.signerKey))
	cipher.NewCTR(block, make([]byte, aes.BlockSize)).XORKeyStream(got, f.signerKey)

	return subtle.ConstantTimeCompare(got, f.key) == 1, nil
}
