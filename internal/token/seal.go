package token

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
)

// ErrSealed says that what was sealed does not open: the key is another, or the bytes were changed.
var ErrSealed = errors.New("what was sealed does not open under this key")

// Seal encrypts plain under a key of 32 bytes (AES-256-GCM with a random nonce), as [Derive] makes one.
func Seal(key, plain []byte) ([]byte, error) {
	box, err := boxOf(key)
	if err != nil {
		return nil, err
	}

	return box.Seal(nil, nil, plain, nil), nil
}

// Open returns what [Seal] sealed. It fails with [ErrSealed] if it is not that, or the key is another.
func Open(key, sealed []byte) ([]byte, error) {
	box, err := boxOf(key)
	if err != nil {
		return nil, err
	}

	plain, err := box.Open(nil, nil, sealed, nil)
	if err != nil {
		return nil, ErrSealed
	}

	return plain, nil
}

func boxOf(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}

	return cipher.NewGCMWithRandomNonce(block)
}
