package realtimeapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/realtime"
)

// joinPayload is the payload of a join.
type joinPayload struct {
	Config struct {
		Broadcast struct {
			Ack, Self flag
			Replay    *replayRequest // nil: none
			Ready     flag           `json:"replication_ready"` // tell when SQL's broadcasts arrive
		}
		Presence struct {
			Key     string
			Enabled *flag // nil: yes, as for clients that do not know it
		}
		Changes []changesRequest `json:"postgres_changes"`
		Private flag
		Resume  string // cursor of changes
	}
	AccessToken *string `json:"access_token"`
}

// flag is a boolean. A client may send it as a text.
type flag bool

// UnmarshalJSON reads a boolean, or its text in any case.
func (f *flag) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil && text != "" {
		data = []byte(strings.ToLower(text))
	}

	return json.Unmarshal(data, (*bool)(f))
}

// changesRequest is a request for changes. The reply repeats its members.
type changesRequest struct {
	ID     int     `json:"id"`
	Event  *string `json:"event,omitempty"`
	Schema *string `json:"schema,omitempty"`
	Table  *string `json:"table,omitempty"`
	Filter *string `json:"filter,omitempty"`
	Select columns `json:"select,omitempty"`
}

// columns are column names, joined with commas. A client may send a list.
type columns string

// UnmarshalJSON reads a text or a list of texts.
func (c *columns) UnmarshalJSON(data []byte) error {
	var list []string
	if json.Unmarshal(data, &list) == nil {
		*c = columns(strings.Join(list, ","))
		return nil
	}

	return json.Unmarshal(data, (*string)(c))
}

func (r changesRequest) binding() event.Binding {
	value := func(text *string) string {
		if text == nil {
			return ""
		}
		return *text
	}

	return event.Binding{Event: cmp.Or(strings.ToUpper(value(r.Event)), event.Any),
		Schema: cmp.Or(value(r.Schema), "public"), Table: value(r.Table), Filter: value(r.Filter),
		Select: string(r.Select)}
}

// join joins a channel. It replaces a former channel with the topic.
func (k *socket) join(ctx context.Context, m message) {
	if !k.takeJoin(time.Now()) {
		k.refuse(m, "ClientJoinRateLimitReached: Too many joins per second")
		return
	}

	var p joinPayload
	if m.payload != nil && json.Unmarshal(m.payload, &p) != nil {
		k.refuse(m, "The payload of the join is malformed")
		return
	}

	if former := k.channel(m.topic); former != nil {
		k.drop(former)
	}

	c, err := k.newChannel(ctx, m, p)
	if err != nil {
		k.refuse(m, k.joinReason(err))
		return
	}

	follow := c.prepareChanges(p)
	c.replay.begin(p.Config.Broadcast.Replay)
	c.member, err = k.server.Hub.Join(realtime.Address{Project: k.tenant.id, Topic: c.name(), Private: c.isPrivate,
		Share: k.share, Limits: roomLimits(k.limits())}, c)
	if err != nil {
		k.refuse(m, k.joinReason(err))
		return
	}

	isReady := c.awaitServers(ctx)
	k.add(c)
	k.replyJoin(m, p)
	if p.Config.Broadcast.Ready {
		c.tellReady(isReady)
	}
	c.replayMessages(ctx, p.Config.Broadcast.Replay)

	if enabled := p.Config.Presence.Enabled; enabled == nil || *enabled {
		if c.require(ctx, grant{false, presenceEvent}) == nil {
			c.member.WatchPresence()
		}
	}
	follow()
}

// awaitServers waits until the channel misses no broadcast on other servers, for a bounded time. It
// reports whether that is so.
func (c *channel) awaitServers(ctx context.Context) bool {
	timeout := time.NewTimer(serversTimeout)
	defer timeout.Stop()

	select {
	case <-c.member.Ready():
		return true
	case <-timeout.C:
	case <-ctx.Done():
	}

	return false
}

// tellReady tells the client whether it gets all broadcasts from now on, those of SQL included.
// Clients know that as the state of Supabase's replication connection.
func (c *channel) tellReady(isReady bool) {
	if isReady {
		c.system(systemEvent, "ok", "Replication connection established", "")
	} else {
		c.system(systemEvent, "error", "Replication connection was not established in time", "")
	}
}

// joinReason words a refused join as clients know it.
func (k *socket) joinReason(err error) string {
	if fault.Is(err, fault.Unauthenticated) {
		return "InvalidJWTToken: " + tokenText(err)
	}
	return k.explain(err)
}

// newChannel returns the channel of a join that is allowed.
func (k *socket) newChannel(ctx context.Context, m message, p joinPayload) (*channel, error) {
	c := &channel{socket: k, topic: m.topic, joinRef: m.joinRef, isPrivate: bool(p.Config.Private), stop: func() {},
		ack: bool(p.Config.Broadcast.Ack), self: bool(p.Config.Broadcast.Self), key: p.Config.Presence.Key,
		grants: map[grant]bool{}}
	if c.joinRef == nil {
		c.joinRef = m.ref
	}
	if c.key == "" {
		c.key = uuid.NewString()
	}

	k.mu.Lock()
	count := len(k.channels)
	k.mu.Unlock()

	switch name := c.name(); {
	case count >= k.limits().ChannelsPerSocket:
		return nil, fault.New(fault.TooMany, "ChannelRateLimitReached: Too many channels")
	case name == "" || len(name) > maxTopic:
		return nil, fault.New(fault.Invalid, "The topic has 1 to %d bytes after %s", maxTopic, topicPrefix)
	case len(p.Config.Changes) > maxBindings:
		return nil, fault.New(fault.TooMany, "A channel has at most %d postgres_changes", maxBindings)
	case p.Config.Broadcast.Replay != nil && !c.isPrivate:
		return nil, fault.New(fault.Invalid, "UnableToReplayMessages: Only private channels replay messages")
	case len(c.key) > realtime.MaxPresenceKey:
		return nil, realtime.ErrPresenceTooLarge
	}

	token := ""
	if p.AccessToken != nil {
		token = *p.AccessToken
	}
	if err := c.authenticate(ctx, token); err != nil {
		return nil, err
	}

	return c, c.require(ctx, grant{false, broadcastEvent})
}

// add adds a joined channel, which ends with its token.
func (k *socket) add(c *channel) {
	k.mu.Lock()
	defer k.mu.Unlock()

	if k.channels == nil {
		k.channels = map[string]*channel{}
	}
	k.channels[c.topic] = c
	c.schedule()
}

// schedule ends the channel when its token expires. The socket is locked.
func (c *channel) schedule() {
	if c.expiry != nil {
		c.expiry.Stop()
		c.expiry = nil
	}
	if at := c.caller.expiresAt; !at.IsZero() {
		c.expiry = time.AfterFunc(time.Until(at), func() { c.expire(at) })
	}
}

// expire ends the channel unless it has another token by now.
func (c *channel) expire(at time.Time) {
	c.socket.mu.Lock()
	isReplaced := !c.caller.expiresAt.Equal(at)
	c.socket.mu.Unlock()

	if !isReplaced {
		c.end(failureText(errExpired(time.Since(at))))
	}
}

// authenticate sets the channel's caller. A key of the handshake, also one of another platform,
// means that of the socket.
func (c *channel) authenticate(ctx context.Context, token string) error {
	text := token
	if token == "" || token == c.socket.key || strings.HasPrefix(token, foreignKeyPrefix) {
		token, text = "", c.socket.key
	}

	v, err := verify(ctx, c.socket.tenant.now(), text)
	if err != nil {
		return err
	}

	c.socket.mu.Lock()
	defer c.socket.mu.Unlock()

	c.token, c.caller = strings.Clone(token), v
	return nil
}

// replaceToken sets another token. A refused one ends the channel.
func (c *channel) replaceToken(ctx context.Context, m message) {
	var p struct {
		AccessToken *string `json:"access_token"`
	}
	if json.Unmarshal(m.payload, &p) != nil {
		c.end("The payload of access_token is malformed")
		return
	}
	if p.AccessToken == nil {
		p.AccessToken = new(string)
	}

	c.socket.mu.Lock()
	isSame := c.token == *p.AccessToken
	c.socket.mu.Unlock()
	if isSame {
		return
	}

	if err := c.authenticate(ctx, *p.AccessToken); err != nil {
		c.end(tokenText(err))
		return
	}

	c.socket.mu.Lock()
	c.schedule()
	follower, v := c.follower, c.caller
	c.socket.mu.Unlock()

	clear(c.grants)
	if err := c.require(ctx, grant{false, broadcastEvent}); err != nil {
		c.end(c.socket.explain(err))
		return
	}
	if follower != nil {
		follower.SetCaller(v.Actor)
	}
}

// recheck ends the channels whose token is no longer valid under the project's new settings.
func (k *socket) recheck(ctx context.Context, p project) {
	for _, c := range k.list() {
		k.mu.Lock()
		token := c.token
		k.mu.Unlock()
		if token == "" {
			continue
		}

		if _, err := verify(ctx, p, token); fault.Is(err, fault.Unauthenticated) {
			c.end(tokenText(err))
		}
	}
}

// require fails with Forbidden unless the channel is public or the project's policies allow an
// action. Decisions hold until the token changes.
func (c *channel) require(ctx context.Context, g grant) error {
	if !c.isPrivate {
		return nil
	}

	allowed, isDecided := c.grants[g]
	if !isDecided {
		c.socket.mu.Lock()
		v := c.caller
		c.socket.mu.Unlock()

		var err error
		if allowed, err = decide(ctx, c.socket.tenant.now(), v, c.name(), g); err != nil {
			return err
		}
		c.grants[g] = allowed
	}

	if !allowed {
		return errUnauthorized(g, c.name())
	}

	return nil
}

func errUnauthorized(g grant, topic string) error {
	action := "read from"
	if g.sends {
		action = "write to"
	}

	return fault.New(fault.Forbidden, "Unauthorized: You do not have permissions to %s this Channel topic: %s", action, topic).
		WithCode("unauthorized")
}

// decide asks the project's policies.
func decide(ctx context.Context, p project, v caller, topic string, g grant) (bool, error) {
	if v.BypassesPolicies() {
		return true, nil
	}

	a := p.authorizer()
	if a == nil {
		return false, nil
	}

	ctx, cancel := context.WithTimeout(ctx, policyTimeout)
	defer cancel()

	ask := a.MayReceive
	if g.sends {
		ask = a.MaySend
	}

	allowed, err := ask(ctx, v.Actor, topic, g.extension)
	if errors.Is(err, context.DeadlineExceeded) {
		return false, fault.New(fault.Unavailable, "The policies of this channel take too long").WithCause(err)
	}

	return allowed, err
}
