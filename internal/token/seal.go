package token

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
)

// ErrSealed means that another key sealed the bytes, or that they were changed.
var ErrSealed = errors.New("cannot open the sealed bytes: wrong key or changed bytes")

// Seal encrypts plain with AES-256-GCM and a random nonce, under a 32-byte key from [Derive].
func Seal(key, plain []byte) ([]byte, error) {
	box, err := newAEAD(key)
	if err != nil {
		return nil, err
	}

	return box.Seal(nil, nil, plain, nil), nil
}

// Open decrypts the output of [Seal]. It fails with [ErrSealed] for another key or changed bytes.
func Open(key, ciphertext []byte) ([]byte, error) {
	box, err := newAEAD(key)
	if err != nil {
		return nil, err
	}

	plain, err := box.Open(nil, nil, ciphertext, nil)
	if err != nil {
		return nil, ErrSealed
	}

	return plain, nil
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}

	return cipher.NewGCMWithRandomNonce(block)
}
