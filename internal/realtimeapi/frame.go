package realtimeapi

import (
	"encoding/json"
	"unicode/utf8"
)

// A binary frame is its kind, a byte for the length of each of its words, a byte for the encoding
// of its payload, the words, and the payload.
const (
	pushKind      = 3 // client: join_ref, ref, topic, event, metadata
	broadcastKind = 4 // server: topic, event, metadata

	bytesEncoding = 0
	jsonEncoding  = 1
)

// maxWord is the maximum length of a word in bytes: topics and events are no longer in any frame,
// since those of clients with another serializer get into binary ones.
const maxWord = 255

// decodePush decodes a client's binary frame. It fails with errMalformed.
func decodePush(data []byte) (message, error) {
	const words, head = 5, 7
	if len(data) < head || data[0] != pushKind {
		return message{}, errMalformed
	}

	var word [words][]byte
	rest := data[head:]
	for i := range word {
		size := int(data[1+i])
		if size > len(rest) {
			return message{}, errMalformed
		}
		word[i], rest = rest[:size], rest[size:]
	}

	b := &broadcast{event: text(word[3]), payload: rest}
	switch data[head-1] {
	case bytesEncoding:
		b.isBinary = true
	case jsonEncoding:
		if !utf8.Valid(rest) || !json.Valid(rest) {
			return message{}, errMalformed
		}
	default:
		return message{}, errMalformed
	}

	m := message{topic: text(word[2]), event: broadcastEvent, broadcast: b}
	if len(word[0]) > 0 {
		m.joinRef = quote(text(word[0]))
	}
	if len(word[1]) > 0 {
		m.ref = quote(text(word[1]))
	}

	return m, nil
}

// text returns a word as text. realtime-js sends the low byte of each UTF-16 unit, so that letters
// such as é arrive as Latin-1.
func text(word []byte) string {
	if utf8.Valid(word) {
		return string(word)
	}

	runes := make([]rune, len(word))
	for i, b := range word {
		runes[i] = rune(b)
	}

	return string(runes)
}

// encodeFrame returns the binary frame of a broadcast. Topic, event and metadata have at most
// maxWord bytes.
func encodeFrame(topic string, b broadcast, metadata []byte) []byte {
	encoding := byte(jsonEncoding)
	if b.isBinary {
		encoding = bytesEncoding
	}

	frame := make([]byte, 0, 5+len(topic)+len(b.event)+len(metadata)+len(b.payload))
	frame = append(frame, broadcastKind, byte(len(topic)), byte(len(b.event)), byte(len(metadata)), encoding)
	frame = append(frame, topic...)
	frame = append(frame, b.event...)
	frame = append(frame, metadata...)

	return append(frame, b.payload...)
}
