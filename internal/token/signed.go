package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/google/uuid"
)

// Prefixes for stateless signed tokens.
const (
	LinkPrefix    = "socle_link_"
	RefreshPrefix = "socle_refresh_"
)

// Link returns the token for a single-use link with a purpose. key is derived from the server's
// secret key. The token is deterministic and therefore not stored.
func Link(key []byte, purpose string, id uuid.UUID) string {
	return sign(key, LinkPrefix, purpose, id[:])
}

// ParseLink returns the id in a link's token. It reports false unless the token was made with key
// for this purpose. The caller checks that the link is unused and not expired.
func ParseLink(key []byte, purpose, token string) (uuid.UUID, bool) {
	body, ok := verifySigned(key, LinkPrefix, purpose, token, 16)
	if !ok {
		return uuid.Nil, false
	}

	return uuid.UUID(body), true
}

// Refresh returns the refresh token for a session's generation. It is deterministic.
func Refresh(key []byte, session uuid.UUID, generation uint32) string {
	return sign(key, RefreshPrefix, "", binary.BigEndian.AppendUint32(session[:], generation))
}

// ParseRefresh returns the session and the generation in a refresh token. It reports false unless
// the token was made with key.
func ParseRefresh(key []byte, token string) (session uuid.UUID, generation uint32, ok bool) {
	body, ok := verifySigned(key, RefreshPrefix, "", token, 20)
	if !ok {
		return uuid.Nil, 0, false
	}

	return uuid.UUID(body[:16]), binary.BigEndian.Uint32(body[16:]), true
}

// sign returns the prefix, then body and its HMAC in base64url.
func sign(key []byte, prefix, purpose string, body []byte) string {
	mac := computeMAC(key, prefix, purpose, body)
	return prefix + base64.RawURLEncoding.EncodeToString(append(body[:len(body):len(body)], mac...))
}

// verifySigned returns the body that [sign] signed with the same key, prefix and purpose. size is
// the body's length in bytes.
func verifySigned(key []byte, prefix, purpose, text string, size int) ([]byte, bool) {
	payload, ok := strings.CutPrefix(text, prefix)
	if !ok || len(payload) != base64.RawURLEncoding.EncodedLen(size+sha256.Size) {
		return nil, false
	}

	all, err := base64.RawURLEncoding.Strict().DecodeString(payload)
	if err != nil || len(all) != size+sha256.Size { // decoders ignore line breaks
		return nil, false
	}

	return all[:size], hmac.Equal(all[size:], computeMAC(key, prefix, purpose, all[:size]))
}

func computeMAC(key []byte, prefix, purpose string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(prefix + purpose + "\x00"))
	mac.Write(body)

	return mac.Sum(nil)
}
