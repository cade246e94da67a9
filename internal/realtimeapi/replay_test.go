package realtimeapi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/realtime"
)

// archive has messages by their ids, and notes what it is asked for.
type archive struct {
	ids     []string
	asked   string
	during  func() // while a client joins
	failure error
}

func (a *archive) Replay(_ context.Context, topic string, since time.Time, n int) ([]*realtime.Message, error) {
	a.asked = fmt.Sprint(topic, " ", since.UnixMilli(), " ", n)
	if a.during != nil {
		a.during()
	}

	var messages []*realtime.Message
	for _, id := range a.ids {
		messages = append(messages, keptMessage(id))
	}

	return messages, a.failure
}

func keptMessage(id string) *realtime.Message {
	return &realtime.Message{ID: id, Event: "e", Payload: []byte(`{}`)}
}

// TestReplay: a private channel gets what it has missed after the reply to its join, and no message
// twice that comes live at the same time.
func TestReplay(t *testing.T) {
	t.Parallel()

	g := newRig(t)
	kept := &archive{ids: []string{"1", "2", "3"}}
	g.project.kept = kept
	room := realtime.Address{Project: g.project.uuid, Topic: "x", Private: true}
	live := func(id string) {
		if err := g.server.Hub.Send(room, keptMessage(id)); err != nil {
			t.Error(err)
		}
	}
	kept.during = func() { live("2") }

	c := g.dial("apikey=secret&vsn=1.0.0")
	join := func(config string) {
		c.send(`{"topic":"realtime:x","event":"phx_join","payload":{"config":` + config + `},"ref":"1","join_ref":"1"}`)
	}
	message := func(meta string) {
		t.Helper()
		c.want(`{"topic":"realtime:x","event":"broadcast","payload":{"type":"broadcast","event":"e","payload":{},"meta":` + meta +
			`},"ref":null,"join_ref":null}`)
	}

	join(`{"private":true,"presence":{"enabled":false},"broadcast":{"replay":{"since":1700000000000.5,"limit":3}}}`)
	c.wantPart(`"ok"`)
	message(`{"id":"2"}`)
	message(`{"id":"1","replayed":true}`)
	message(`{"id":"3","replayed":true}`)
	if got, want := kept.asked, "x 1700000000000 3"; got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
	live("3") // late
	live("4")
	live("4") // a second delivery of a message is the sender's matter
	message(`{"id":"4"}`)
	message(`{"id":"4"}`)

	kept.during, kept.asked = nil, ""
	join(`{"private":true,"presence":{"enabled":false}}`)
	c.wantPart(`"ok"`)
	live("1")
	message(`{"id":"1"}`)
	if kept.asked != "" {
		t.Errorf("asked for %s without a request", kept.asked)
	}

	join(`{"private":true,"presence":{"enabled":false},"broadcast":{"replay":{"since":0,"limit":1000}}}`)
	c.wantPart(`"ok"`)
	for _, id := range kept.ids {
		message(`{"id":"` + id + `","replayed":true}`)
	}
	if got, want := kept.asked, "x 0 25"; got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}

	join(`{"broadcast":{"replay":{"since":0}}}`)
	c.wantPart("Only private channels replay messages")

	kept.ids, kept.failure = nil, errors.New("secret text")
	join(`{"private":true,"presence":{"enabled":false},"broadcast":{"replay":{"since":0}}}`)
	c.wantPart(`"ok"`)
	c.wantPart(`"message":"Internal error"`)
}
