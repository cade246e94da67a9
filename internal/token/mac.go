package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
)

// MAC returns the HMAC-SHA256 of fields. Each field is prefixed with its length, so that different
// splits have different MACs.
func MAC(key []byte, fields ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, f := range fields {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(f))))
		h.Write(f)
	}

	return h.Sum(nil)
}
