package realtime

import (
	"encoding/binary"

	"github.com/google/uuid"
)

// Kinds of what hubs send to each other. A hub ignores kinds that it does not know.
const (
	broadcastNote = 1 + iota // isBinary, event, ID, payload
	helloNote                // a hub has a new room, and asks for its presences
	stateNote                // a hub's presences in the room: version, entries
	diffNote                 // a change of them: former version, version, joins, leaves
	versionNote              // version
	requestNote              // asks for a state
)

// note is what a hub sends about a room to the others.
type note struct {
	kind byte
	room Address // without its share

	message *Message

	former, version uint64
	joins           []*entry // all, in a state
	leaves          []*entry // without payload
}

func (n *note) encode() []byte {
	b := append([]byte{n.kind}, n.room.Project[:]...)
	b = appendText(appendFlag(b, n.room.Private), n.room.Topic)

	switch n.kind {
	case broadcastNote:
		b = appendText(appendText(appendFlag(b, n.message.Binary), n.message.Event), n.message.ID)
		b = append(b, n.message.Payload...)
	case stateNote, diffNote, versionNote:
		b = binary.AppendUvarint(binary.AppendUvarint(b, n.former), n.version)
		b = binary.AppendUvarint(b, uint64(len(n.joins)))
		for _, e := range n.joins {
			b = appendText(appendText(appendText(b, e.ref), e.key), string(e.meta))
		}
		for _, e := range n.leaves {
			b = appendText(b, e.ref)
		}
	}

	return b
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func appendFlag(b []byte, is bool) []byte {
	if is {
		return append(b, 1)
	}
	return append(b, 0)
}

// decodeNote decodes a note. It reports false for a malformed one, and for a presence beyond the
// bounds of this release.
func decodeNote(data []byte) (*note, bool) {
	r := reader{data: data}
	n := &note{kind: r.byte(), room: Address{Project: uuid.UUID(r.take(len(uuid.UUID{})))}}
	n.room.Private = r.byte() == 1
	n.room.Topic = r.text()

	switch n.kind {
	case broadcastNote:
		n.message = &Message{Binary: r.byte() == 1, Event: r.text(), ID: r.text()}
		n.message.Payload = r.data
	case stateNote, diffNote, versionNote:
		n.former, n.version = r.number(), r.number()
		for count := r.number(); count > 0 && !r.failed; count-- {
			e := &entry{ref: r.text(), key: r.text(), meta: []byte(r.text())}
			n.joins = append(n.joins, e)
			r.failed = r.failed || len(e.key) > MaxPresenceKey || len(e.meta) > maxMeta || len(n.joins) > MaxPresences
		}
		for len(r.data) > 0 && !r.failed {
			n.leaves = append(n.leaves, &entry{ref: r.text()})
		}
	}

	return n, !r.failed
}

// reader reads the parts of a note.
type reader struct {
	data   []byte
	failed bool
}

// take returns n bytes; after a failure zeros, as many as a UUID has at most.
func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.data) {
		r.failed, r.data = true, nil
		return make([]byte, min(max(n, 0), len(uuid.UUID{})))
	}

	data := r.data[:n]
	r.data = r.data[n:]

	return data
}

func (r *reader) byte() byte { return r.take(1)[0] }

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.data)
	if size <= 0 {
		r.failed, r.data = true, nil
		return 0
	}
	r.data = r.data[size:]

	return n
}

func (r *reader) text() string { return string(r.take(int(r.number()))) }
