package realtimeapi

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/tick"
)

// replyJoin answers a join with its requests for changes, in their order and with ids. Clients
// leave if they differ.
func (k *socket) replyJoin(m message, p joinPayload) {
	list := p.Config.Changes
	if list == nil {
		list = []changesRequest{}
	}
	for i := range list {
		list[i].ID = i + 1
	}

	response, _ := json.Marshal(map[string]any{changesEvent: list}) // texts and numbers have no error
	k.reply(m, response)
}

// prepareChanges returns a function that follows the changes of a join, until the channel ends.
func (c *channel) prepareChanges(p joinPayload) func() {
	if len(p.Config.Changes) == 0 {
		return func() {}
	}

	bindings := make([]event.Binding, 0, len(p.Config.Changes))
	for _, r := range p.Config.Changes {
		bindings = append(bindings, r.binding())
	}

	// A channel ends when it is dropped, and no channel outlives its socket.
	following, stop := context.WithCancel(context.Background())
	c.stop = stop

	return func() {
		go c.follow(httpx.WithShare(following, c.socket.share), bindings, p.Config.Resume)
	}
}

var errNoChanges = fault.New(fault.Unavailable, "Changes of rows are not available")

// follow sends changes until ctx ends or the bindings turn out to be invalid. It tries again after
// other failures.
func (c *channel) follow(ctx context.Context, bindings []event.Binding, cursor string) {
	for retry := firstRetry; ; retry = min(2*retry, lastRetry) {
		begin := time.Now()
		next, err := c.followOnce(ctx, bindings, cursor)
		if ctx.Err() != nil {
			return
		}
		if time.Since(begin) > lastRetry {
			retry = firstRetry
		}

		switch e := fault.Of(err); {
		case errors.Is(err, event.ErrResync):
			c.system(changesEvent, "error", e.Detail, `,"reason":"resync"`)
			isNew := cursor == "" && time.Since(begin) < firstRetry
			if cursor = ""; !isNew {
				continue
			}
		case err == errNoChanges, e.Kind == fault.Invalid, e.Kind == fault.Unprocessable, e.Kind == fault.Forbidden,
			e.Kind == fault.NotFound, e.Kind == fault.TooMany:
			c.system(changesEvent, "error", failureText(err), "")
			return
		default:
			c.system(changesEvent, "error", failureText(err), "")
			c.socket.server.Log.Warn("could not follow changes", "project", c.socket.tenant.id, "error", err)
			cursor = next
		}

		if tick.Pause(ctx, retry) != nil {
			return
		}
	}
}

// followOnce sends changes until a failure. It returns the cursor behind the last change.
func (c *channel) followOnce(ctx context.Context, bindings []event.Binding, cursor string) (next string, err error) {
	next = cursor
	defer fault.Recover(&err)

	changes := c.socket.tenant.now().changes()
	if changes == nil {
		return cursor, errNoChanges
	}

	c.socket.mu.Lock()
	v := c.caller
	c.socket.mu.Unlock()

	f, err := changes.Follow(ctx, v.Actor, bindings, cursor)
	if err != nil {
		return cursor, err
	}
	defer f.Close()

	c.socket.mu.Lock()
	c.follower = f
	current := c.caller
	c.socket.mu.Unlock()
	defer func() {
		c.socket.mu.Lock()
		c.follower = nil
		c.socket.mu.Unlock()
	}()
	f.SetCaller(current.Actor) // the token may have changed meanwhile

	c.system(changesEvent, "ok", "Subscribed to PostgreSQL", `,"cursor":`+string(quote(f.Cursor())))

	for {
		list, err := f.Next(ctx)
		if err != nil {
			return f.Cursor(), err
		}

		for i := range list {
			c.socket.send(c.joinRef, nil, c.topic, changesEvent, list[i].Encode(encodeChange))
		}
		next = f.Cursor()
	}
}

// oversized is the failure in a change whose row is too large.
var oversized = []string{"Error 413: Payload Too Large"}

// encodeChange returns the payload of a change.
func encodeChange(c *event.Change) []byte {
	ids := make([]int, 0, len(c.Bindings))
	for _, i := range c.Bindings {
		ids = append(ids, i+1)
	}

	type data struct {
		Type      string          `json:"type"`
		Schema    string          `json:"schema"`
		Table     string          `json:"table"`
		At        string          `json:"commit_timestamp"`
		Columns   []event.Column  `json:"columns"`
		Record    json.RawMessage `json:"record,omitempty"`
		OldRecord json.RawMessage `json:"old_record,omitempty"`
		Errors    []string        `json:"errors"`
	}
	payload := struct {
		IDs    []int  `json:"ids"`
		Data   data   `json:"data"`
		Cursor string `json:"cursor"`
	}{ids, data{Type: c.Type, Schema: c.Schema, Table: c.Table, At: c.At.UTC().Format(time.RFC3339Nano),
		Columns: c.Columns, Record: c.Record, OldRecord: c.Old}, c.Cursor}
	if c.Columns == nil {
		payload.Data.Columns = []event.Column{}
	}
	if c.Oversized {
		payload.Data.Errors = oversized
	}

	b, err := json.Marshal(payload)
	if err != nil { // package event keeps rows that can't be encoded away; a panic here would end the server
		payload.Data.Record, payload.Data.OldRecord, payload.Data.Errors = nil, nil, oversized
		b, _ = json.Marshal(payload) // texts and numbers have no error
	}

	return b
}
