package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
)

// MAC returns the HMAC-SHA256 of fields. The length of each stands before it, so that no other fields have the same text.
func MAC(key []byte, fields ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, f := range fields {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(f))))
		h.Write(f)
	}

	return h.Sum(nil)
}
