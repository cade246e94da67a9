package realtime

import "sync"

// Kind is a kind of message.
type Kind int

// The kinds of messages.
const (
	Broadcast     Kind = iota
	PresenceState      // all presences in the room, as the next diff expects them
	PresenceDiff
)

// Message is a message to the members of a room. It is immutable.
type Message struct {
	Kind    Kind
	ID      string // identifies a broadcast that is kept; "": it is not
	Event   string // name of a broadcast
	Payload []byte // JSON, unless Binary
	Binary  bool   // the payload of a broadcast is bytes

	frames [Formats]struct {
		once sync.Once
		data []byte
	}
}

// Formats is the number of formats in which members receive messages.
const Formats = 2

// Frame returns the message in a format, from 0 to [Formats]. encode makes it once for all members
// of the room.
func (m *Message) Frame(format int, encode func() []byte) []byte {
	f := &m.frames[format]
	f.once.Do(func() { f.data = encode() })

	return f.data
}
