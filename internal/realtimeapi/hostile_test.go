package realtimeapi

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/socle-dev/socle/internal/event"
)

// TestJoinFlood: a client that joins without end is read slowly, and others are answered meanwhile.
func TestJoinFlood(t *testing.T) {
	t.Parallel()

	g := newRig(t)
	flood, other := g.dial("apikey=key&vsn=2.0.0"), g.dial("apikey=key&vsn=2.0.0")
	other.join("x", quiet)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for i := 0; ctx.Err() == nil && i < 10_000; i++ {
			_ = flood.conn.Write(ctx, websocket.MessageText,
				fmt.Appendf(nil, `["1","1","realtime:%d","phx_join",{"config":%s}]`, i, quiet))
		}
	}()

	joins := limitBurst * event.DefaultLimits.MessagesPerSecond
	for i := range joins {
		flood.read()
		if i%50 == 0 {
			other.sync()
		}
	}
	if got, most := g.server.Hub.Stats(g.project.uuid).Members, event.DefaultLimits.ChannelsPerSocket+1; got > most {
		t.Errorf("got %d members, want %d at most", got, most)
	}
}

// TestHugePresenceKey: a presence key of a megabyte is refused, or ends the socket with its frame.
func TestHugePresenceKey(t *testing.T) {
	t.Parallel()

	g := newRig(t)
	c := g.dial("apikey=key&vsn=2.0.0")
	join := func(size int) {
		c.send(`["1","1","realtime:x","phx_join",{"config":{"presence":{"key":"` + strings.Repeat("k", size) + `"}}}]`)
	}
	join(1_000_000)
	c.wantPart("A presence has a key of at most 255 bytes")
	join(maxFrame)
	c.wantClose(websocket.StatusMessageTooBig, "")
	if got := g.server.Hub.Stats(g.project.uuid).Members; got != 0 {
		t.Errorf("got %d members, want none", got)
	}
}
