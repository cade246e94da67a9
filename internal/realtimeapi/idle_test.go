package realtimeapi

import (
	"runtime"
	"testing"
)

// TestIdleSockets bounds the memory of idle sockets with a joined channel.
func TestIdleSockets(t *testing.T) {
	g := newRig(t)
	const count, limit = 500, 40 << 10 // bytes per socket, and about as much for its client here

	inUse := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}

	before := inUse()
	clients := make([]*client, count)
	for i := range clients {
		clients[i] = g.dial("apikey=key&vsn=2.0.0")
		clients[i].join("x", quiet)
	}
	after := inUse()

	each := (after - before) / count
	t.Logf("%d bytes per socket and client", each)
	if each > 2*limit {
		t.Errorf("got %d bytes per socket and client, want at most %d", each, 2*limit)
	}
	runtime.KeepAlive(clients)
}
