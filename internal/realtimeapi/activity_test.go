package realtimeapi

import (
	"testing"

	"github.com/google/uuid"
)

// TestActivity lists what a project has open.
func TestActivity(t *testing.T) {
	t.Parallel()

	g := newRig(t)
	if a := g.server.Activity(g.project.uuid); a.Sockets != 0 || a.Channels != 0 || a.NewestSockets == nil ||
		a.LargestChannels == nil {
		t.Errorf("got %+v before the first socket", a)
	}

	first, second := g.dial("apikey=key&vsn=2.0.0"), g.dial("apikey=key&vsn=2.0.0")
	first.join("lobby", quiet)
	first.join("<b>", quiet)
	second.join("lobby", quiet)

	a := g.server.Activity(g.project.uuid)
	if a.Sockets != 2 || a.Channels != 2 || len(a.NewestSockets) != 2 {
		t.Fatalf("got %+v, want two sockets and two channels", a)
	}
	if got, want := a.LargestChannels[0], (ChannelOpen{Name: "lobby", Sockets: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if newest := a.NewestSockets[0]; newest.Channels != 1 || newest.Address != "127.0.0.1" ||
		newest.OpenedAt.Before(a.NewestSockets[1].OpenedAt) {
		t.Errorf("got %+v, want the second socket first", a.NewestSockets)
	}
	if other := g.server.Activity(uuid.New()); other.Sockets != 0 || other.Channels != 0 {
		t.Errorf("got %+v of another project", other)
	}
}
