package bus

import (
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/socle-dev/socle/internal/token"
)

// seal hides messages from the other clients of an existing NATS, and refuses theirs. A nil seal
// hides nothing: routes are encrypted.
type seal struct {
	aead       cipher.AEAD
	subjectKey []byte
}

// sealSize is the most that a seal adds to a message.
const sealSize = chacha20poly1305.NonceSizeX + chacha20poly1305.Overhead

func newSeal(secret []byte) *seal {
	aead, err := chacha20poly1305.NewX(token.Derive(secret, "messages between servers over NATS"))
	if err != nil {
		panic("bus: " + err.Error()) // the key has its size
	}

	return &seal{aead, token.Derive(secret, "subjects between servers over NATS")}
}

func (s *seal) close(data []byte) []byte {
	if s == nil {
		return data
	}

	nonce := make([]byte, chacha20poly1305.NonceSizeX, sealSize+len(data))
	_, _ = rand.Read(nonce) // never fails

	return s.aead.Seal(nonce, nonce, data, nil)
}

// open returns nil for a message without the install's seal.
func (s *seal) open(data []byte) []byte {
	if s == nil {
		return data
	}
	if len(data) < chacha20poly1305.NonceSizeX {
		return nil
	}

	nonce, sealed := data[:chacha20poly1305.NonceSizeX], data[chacha20poly1305.NonceSizeX:]
	message, err := s.aead.Open(nil, nonce, sealed, nil)
	if err != nil {
		return nil
	}

	return message
}

// subject returns the name of a subject, which may have the name of a channel.
func (s *seal) subject(name string) string {
	if s == nil {
		return name
	}

	mac := hmac.New(sha256.New, s.subjectKey)
	mac.Write([]byte(name))

	return hex.EncodeToString(mac.Sum(nil)[:16])
}
