package realtimeapi

import (
	"context"
	"sync"
	"time"

	"github.com/socle-dev/socle/internal/realtime"
)

const (
	defaultReplay = 25 // messages; more than that are not replayed either
	replayTimeout = 5 * time.Second
)

// replayRequest asks for the messages that a private channel has had before the join.
type replayRequest struct {
	Since float64 // Unix time in milliseconds
	Limit *int    // nil: as many as possible
}

// replay keeps a channel from getting a message twice, live and replayed. The zero value is that of
// a channel that replays nothing.
type replay struct {
	requested bool

	mu    sync.Mutex
	begun bool            // the messages to replay are being read: live ones are noted
	seen  map[string]bool // ids
}

// begin notes live messages until [replay.finish], if a replay is requested.
func (r *replay) begin(request *replayRequest) {
	if request != nil {
		r.requested, r.begun, r.seen = true, true, map[string]bool{}
	}
}

// admits reports whether a live message is new to the client.
func (r *replay) admits(id string) bool {
	if !r.requested || id == "" {
		return true
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	if r.seen[id] {
		return false
	}
	if r.begun {
		r.seen[id] = true
	}

	return true
}

// finish returns the messages that the client has not got live. They are not admitted later.
func (r *replay) finish(messages []*realtime.Message) []*realtime.Message {
	r.mu.Lock()
	defer r.mu.Unlock()

	live := r.seen
	r.seen, r.begun = make(map[string]bool, len(messages)), false

	var missed []*realtime.Message
	for _, m := range messages {
		r.seen[m.ID] = true
		if !live[m.ID] {
			missed = append(missed, m)
		}
	}

	return missed
}

// replayMessages sends the client what the channel has had since the time that its join names.
func (c *channel) replayMessages(ctx context.Context, request *replayRequest) {
	if request == nil {
		return
	}

	n := defaultReplay
	if request.Limit != nil {
		n = max(0, min(n, *request.Limit))
	}

	ctx, cancel := context.WithTimeout(ctx, replayTimeout)
	defer cancel()

	var messages []*realtime.Message
	if archive := c.socket.tenant.now().archive(); archive != nil {
		var err error
		messages, err = archive.Replay(ctx, c.name(), time.UnixMilli(int64(request.Since)), n)
		if err != nil {
			c.system(broadcastEvent, "error", c.socket.explain(err), "")
		}
	}

	s := c.socket.serializer
	for _, m := range c.replay.finish(messages) {
		if !m.Binary || s == lists {
			c.socket.out.push(frame{isBinary: s == lists, data: s.encodeBroadcast(c.topic, m, true)})
		}
	}
}
