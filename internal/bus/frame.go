package bus

import (
	"encoding/binary"

	"github.com/google/uuid"
)

// Kinds of frames. A server ignores kinds that it does not know.
const (
	dataFrame = 1 + iota // data
	pingFrame            // number
	pongFrame            // number of the ping
	byeFrame             // the server stops
)

// frameHead is the length of a frame before its body: the kind and the sender.
const frameHead = 1 + len(uuid.UUID{})

func encode(kind byte, sender uuid.UUID, body []byte) []byte {
	b := make([]byte, 0, frameHead+len(body))
	return append(append(append(b, kind), sender[:]...), body...)
}

func encodeNumber(kind byte, sender uuid.UUID, n uint64) []byte {
	return encode(kind, sender, binary.BigEndian.AppendUint64(nil, n))
}

// decode returns the parts of a frame. It reports false if it is malformed.
func decode(frame []byte) (kind byte, sender uuid.UUID, body []byte, ok bool) {
	if len(frame) < frameHead {
		return 0, uuid.Nil, nil, false
	}

	copy(sender[:], frame[1:])
	kind, body = frame[0], frame[frameHead:]
	isNumber := kind == pingFrame || kind == pongFrame

	return kind, sender, body, !isNumber || len(body) == 8
}
