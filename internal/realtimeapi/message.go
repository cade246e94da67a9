package realtimeapi

import (
	"encoding/json"
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/socle-dev/socle/internal/realtime"
)

// serializer is a version of the protocol. It is also the index of the format of a
// [realtime.Message].
type serializer int

const (
	objects serializer = iota // 1.0.0: JSON objects
	lists                     // 2.0.0: JSON lists, and binary frames for broadcasts
)

// parseSerializer parses the parameter vsn. Phoenix takes 1.0.0 for a client that says nothing.
func parseSerializer(text string) (serializer, bool) {
	switch text {
	case "", "1.0.0":
		return objects, true
	case "2.0.0":
		return lists, true
	}

	return 0, false
}

// ref is a reference as the client has sent it, a JSON string or number; nil: null. An answer
// repeats it.
type ref = json.RawMessage

// message is a message by a client.
type message struct {
	joinRef, ref ref
	topic, event string
	payload      json.RawMessage // nil if broadcast is set
	broadcast    *broadcast      // from a binary frame
}

// broadcast is the payload of a broadcast.
type broadcast struct {
	event    string
	payload  []byte // JSON, unless isBinary
	isBinary bool
}

// errMalformed ends a socket whose client does not speak the protocol.
var errMalformed = errors.New("realtime: malformed message")

// decodeText decodes a text frame. It fails with errMalformed.
func (s serializer) decodeText(data []byte) (message, error) {
	if !utf8.Valid(data) { // which would end the sockets that it is sent to
		return message{}, errMalformed
	}

	var m struct {
		Topic, Event *string
		Payload      json.RawMessage
		Ref          ref
		JoinRef      ref `json:"join_ref"`
	}
	if s == objects {
		if json.Unmarshal(data, &m) != nil {
			return message{}, errMalformed
		}
	} else {
		list := []any{&m.JoinRef, &m.Ref, &m.Topic, &m.Event, &m.Payload}
		if json.Unmarshal(data, &list) != nil || len(list) != 5 {
			return message{}, errMalformed
		}
	}

	if m.Topic == nil || m.Event == nil || !isRef(&m.Ref) || !isRef(&m.JoinRef) {
		return message{}, errMalformed
	}

	return message{joinRef: m.JoinRef, ref: m.Ref, topic: *m.Topic, event: *m.Event, payload: m.Payload}, nil
}

// isRef reports whether a reference is a short string, a number or null, which becomes nil.
func isRef(r *ref) bool {
	switch {
	case len(*r) == 0, string(*r) == "null":
		*r = nil
		return true
	case len(*r) > 2*maxWord:
		return false
	}

	first := (*r)[0]
	return first == '"' || first == '-' || (first >= '0' && first <= '9')
}

// encodeText returns a text frame. payload is JSON.
func (s serializer) encodeText(joinRef, ref ref, topic, event string, payload []byte) []byte {
	b := make([]byte, 0, len(payload)+len(topic)+len(event)+80)
	if s == lists {
		b = append(b, '[')
		b = append(append(b, orNull(joinRef)...), ',')
		b = append(append(b, orNull(ref)...), ',')
		b = append(append(b, quote(topic)...), ',')
		b = append(append(b, quote(event)...), ',')
		b = append(b, payload...)

		return append(b, ']')
	}

	b = append(append(b, `{"topic":`...), quote(topic)...)
	b = append(append(b, `,"event":`...), quote(event)...)
	b = append(append(b, `,"payload":`...), payload...)
	b = append(append(b, `,"ref":`...), orNull(ref)...)
	b = append(append(b, `,"join_ref":`...), orNull(joinRef)...)

	return append(b, '}')
}

func orNull(r ref) []byte {
	if r == nil {
		return []byte("null")
	}
	return r
}

// quote returns a text as JSON.
func quote(text string) []byte {
	b, _ := json.Marshal(text) // a text has no error
	return b
}

// encodeBroadcast returns the payload of a broadcast in a text frame.
func encodeBroadcast(event string, payload, metadata []byte) []byte {
	b := slices.Concat([]byte(`{"type":"broadcast","event":`), quote(event), []byte(`,"payload":`), payload)
	if len(metadata) > 0 {
		b = append(append(b, `,"meta":`...), metadata...)
	}

	return append(b, '}')
}

// encodeBroadcast returns the frame of a broadcast to a channel.
func (s serializer) encodeBroadcast(topic string, m *realtime.Message, isReplayed bool) []byte {
	metadata := metadataOf(m.ID, isReplayed)
	if s == lists {
		return encodeFrame(topic, broadcast{m.Event, m.Payload, m.Binary}, metadata)
	}

	return s.encodeText(nil, nil, topic, broadcastEvent, encodeBroadcast(m.Event, m.Payload, metadata))
}

// metadataOf returns the metadata of a broadcast that is kept: a JSON object, or nil for others.
func metadataOf(id string, isReplayed bool) []byte {
	switch {
	case id == "":
		return nil
	case isReplayed:
		return slices.Concat([]byte(`{"id":`), quote(id), []byte(`,"replayed":true}`))
	}

	return slices.Concat([]byte(`{"id":`), quote(id), []byte{'}'})
}
