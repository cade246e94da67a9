package realtimeapi

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/realtime"
)

// topicPrefix begins the topics of channels; a channel's name follows.
const topicPrefix = "realtime:"

// Events of the protocol.
const (
	broadcastEvent  = "broadcast"
	presenceEvent   = "presence"
	changesEvent    = "postgres_changes"
	systemEvent     = "system"
	replyEvent      = "phx_reply"
	closeEvent      = "phx_close"
	heartbeatTopic  = "phoenix"
	unmatchedReason = "unmatched topic"
)

// channel is a channel that a socket has joined.
type channel struct {
	socket    *socket
	topic     string
	joinRef   ref
	isPrivate bool
	ack, self bool // for broadcasts: see the join
	key       string
	replay    replay
	member    *realtime.Member
	stop      context.CancelFunc // ends the follower of changes

	grants map[grant]bool // decisions of policies; the reader's

	// Under the socket's lock.
	token    string // "": the socket's key
	caller   caller
	expiry   *time.Timer // nil: never
	follower Follower    // nil: none yet
}

// grant is a question to the policies of private channels.
type grant struct {
	sends     bool
	extension string
}

// name returns the channel's name, which policies see as its topic.
func (c *channel) name() string { return strings.TrimPrefix(c.topic, topicPrefix) }

// handle serves a message.
func (k *socket) handle(ctx context.Context, m message) {
	ctx = httpx.WithShare(ctx, k.share) // now
	if m.topic == heartbeatTopic && m.event == "heartbeat" {
		k.reply(m, nil)
		return
	}
	if m.event == "phx_join" && strings.HasPrefix(m.topic, topicPrefix) {
		k.join(ctx, m)
		return
	}

	c := k.channel(m.topic)
	if c == nil || (m.joinRef != nil && string(m.joinRef) != string(c.joinRef)) {
		if m.event == "phx_leave" { // a late one
			k.reply(m, nil)
		} else {
			k.refuse(m, unmatchedReason)
		}
		return
	}

	switch m.event {
	case "phx_leave":
		k.drop(c)
		k.reply(m, nil)
		k.send(c.joinRef, c.joinRef, c.topic, closeEvent, emptyObject)
	case broadcastEvent:
		c.broadcast(ctx, m)
	case presenceEvent:
		c.present(ctx, m)
	case "access_token":
		c.replaceToken(ctx, m)
	default:
		k.refuse(m, unmatchedReason)
	}
}

var emptyObject = []byte("{}")

// reply answers a message with a response, a JSON object; nil: an empty one.
func (k *socket) reply(m message, response []byte) {
	if response == nil {
		response = emptyObject
	}
	payload := append(append([]byte(`{"status":"ok","response":`), response...), '}')
	k.send(m.joinRef, m.ref, m.topic, replyEvent, payload)
}

// refuse answers a message with a failure.
func (k *socket) refuse(m message, reason string) {
	payload := append(append([]byte(`{"status":"error","response":{"reason":`), quote(reason)...), "}}"...)
	k.send(m.joinRef, m.ref, m.topic, replyEvent, payload)
}

// explain returns what the client may read about a failure. The log has those of our own.
func (k *socket) explain(err error) string {
	if e := fault.Of(err); e.Kind == fault.Internal || e.Kind == fault.Unavailable {
		k.server.Log.Error("could not serve a channel", "project", k.tenant.id, "error", err)
	}

	return failureText(err)
}

// channel returns a joined channel, or nil.
func (k *socket) channel(topic string) *channel {
	k.mu.Lock()
	defer k.mu.Unlock()

	return k.channels[topic]
}

// drop leaves a channel, and reports whether it was joined.
func (k *socket) drop(c *channel) bool {
	k.mu.Lock()
	isJoined := k.channels[c.topic] == c
	if isJoined {
		delete(k.channels, c.topic)
	}
	if c.expiry != nil {
		c.expiry.Stop()
	}
	k.mu.Unlock()

	if isJoined {
		c.member.Leave()
		c.stop()
	}

	return isJoined
}

// leaveAll leaves all channels.
func (k *socket) leaveAll() {
	for _, c := range k.list() {
		k.drop(c)
	}
}

func (k *socket) list() []*channel {
	k.mu.Lock()
	defer k.mu.Unlock()

	channels := make([]*channel, 0, len(k.channels))
	for _, c := range k.channels {
		channels = append(channels, c)
	}

	return channels
}

// system tells the client about the state of an extension. extra has further members, JSON.
func (c *channel) system(extension, status, message, extra string) {
	b := append([]byte(`{"extension":`), quote(extension)...)
	b = append(append(b, `,"status":`...), quote(status)...)
	b = append(append(b, `,"message":`...), quote(message)...)
	b = append(append(b, `,"channel":`...), quote(c.name())...)
	b = append(append(b, extra...), '}')
	c.socket.send(c.joinRef, nil, c.topic, systemEvent, b)
}

// end closes a channel with a reason.
func (c *channel) end(reason string) {
	if c.socket.drop(c) {
		c.system(systemEvent, "error", reason, "")
		c.socket.send(c.joinRef, c.joinRef, c.topic, closeEvent, emptyObject)
	}
}

// Deliver sends a message of the room to the client.
func (c *channel) Deliver(m *realtime.Message) {
	s := c.socket.serializer
	switch {
	case m.Kind == realtime.PresenceState:
		c.socket.send(c.joinRef, nil, c.topic, "presence_state", m.Payload)
	case m.Kind == realtime.PresenceDiff:
		c.socket.out.push(frame{data: m.Frame(int(s), func() []byte {
			return s.encodeText(nil, nil, c.topic, "presence_diff", m.Payload)
		})})
	case !c.replay.admits(m.ID):
	case !m.Binary || s == lists: // the serializer 1.0.0 has no bytes
		c.socket.out.push(frame{isBinary: s == lists, data: m.Frame(int(s), func() []byte {
			return s.encodeBroadcast(c.topic, m, false)
		})})
	}
}

// broadcast sends a client's broadcast to the room.
func (c *channel) broadcast(ctx context.Context, m message) {
	b, err := parseBroadcast(m, c.socket.limits().PayloadBytes)
	if err == nil {
		err = c.require(ctx, grant{true, broadcastEvent})
	}
	if err == nil {
		err = c.member.Send(&realtime.Message{Event: b.event, Payload: b.payload, Binary: b.isBinary}, c.self)
	}

	switch {
	case err != nil:
		c.socket.refuse(m, c.socket.explain(err))
	case c.ack:
		c.socket.reply(m, nil)
	}
}

// parseBroadcast returns a client's broadcast within the bounds.
func parseBroadcast(m message, maxPayload int) (broadcast, error) {
	if m.broadcast != nil {
		return *m.broadcast, checkBroadcast(*m.broadcast, maxPayload)
	}

	var payload struct {
		Event   string
		Payload json.RawMessage
	}
	if json.Unmarshal(m.payload, &payload) != nil {
		return broadcast{}, fault.New(fault.Invalid, "A broadcast is a JSON object with event and payload")
	}
	if payload.Payload == nil {
		payload.Payload = emptyObject
	}

	b := broadcast{event: payload.Event, payload: payload.Payload}
	return b, checkBroadcast(b, maxPayload)
}

func checkBroadcast(b broadcast, maxPayload int) error {
	switch {
	case len(b.event) > maxWord:
		return fault.New(fault.TooLarge, "The event is longer than %d bytes", maxWord)
	case len(b.payload) > maxPayload:
		return fault.New(fault.TooLarge, "The payload is larger than %d bytes", maxPayload)
	}

	return nil
}

// present sets or removes the client's presence.
func (c *channel) present(ctx context.Context, m message) {
	var payload struct {
		Event   string
		Payload json.RawMessage
	}
	if json.Unmarshal(m.payload, &payload) != nil {
		c.socket.refuse(m, "A presence is a JSON object with event and payload")
		return
	}
	if len(payload.Payload) == 0 {
		payload.Payload = emptyObject
	}

	err := c.require(ctx, grant{true, presenceEvent})
	switch strings.ToLower(payload.Event) {
	case "track":
		if err == nil {
			err = c.member.Track(c.key, payload.Payload)
		}
		if err == nil && c.require(ctx, grant{false, presenceEvent}) == nil {
			c.member.WatchPresence()
		}
	case "untrack":
		c.member.Untrack()
		err = nil
	default:
		err = fault.New(fault.Invalid, "The event of a presence is track or untrack")
	}

	if err != nil {
		c.socket.refuse(m, c.socket.explain(err))
		return
	}

	c.socket.reply(m, nil)
}
