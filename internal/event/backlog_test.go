package event

import (
	"runtime"
	"testing"

	"github.com/socle-dev/socle/internal/fair"
)

// TestQueueTakesMemory: the changes that wait for a follower are bounded by its account's share;
// without one the follower reads the log itself.
func TestQueueTakesMemory(t *testing.T) {
	t.Parallel()

	pool := fair.New(fair.Config{Name: "test", Capacity: 4 * backlogStep})
	f := &Follower{log: &Log{logs: &Logs{backlogs: pool}}, live: true, signal: make(chan struct{}, 1)}
	for i, test := range []struct {
		copied, queued int
		used           int64
		live           bool
	}{
		{10 << 10, 1, 0, true},
		{20 << 10, 2, backlogStep, true},
		{0, 3, backlogStep, true}, // rows that other followers have as well
		{100 << 10, 3, backlogStep, false},
		{0, 3, backlogStep, false},
	} {
		f.append([]Change{{copied: test.copied}}, position{})
		if used := pool.Stats().InUse; len(f.queue) != test.queued || used != test.used || f.live != test.live {
			t.Errorf("%d: got %d changes, %d bytes, live %v; want %+v", i, len(f.queue), used, f.live, test)
		}
	}

	if changes, err := f.Next(t.Context()); err != nil || len(changes) != 3 || pool.Stats().InUse != backlogStep {
		t.Errorf("got %d changes, %v, and %d bytes", len(changes), err, pool.Stats().InUse)
	}
	f.hold([]Change{{Record: make([]byte, 2*freeBacklog)}})
	if used := pool.Stats().InUse; used <= backlogStep {
		t.Errorf("a page that the follower has read takes nothing beside %d bytes", used)
	}
	f.Close()
	if used := pool.Stats().InUse; used != 0 {
		t.Errorf("a closed follower has %d bytes", used)
	}
}

// TestEncodingIsShared: followers share encoded bytes as long as these are in memory anyway.
func TestEncodingIsShared(t *testing.T) {
	t.Parallel()

	calls := 0
	encode := func(*Change) []byte { calls++; return []byte("encoded") }
	c := Change{encoding: &encoding{}}
	first, second := c, c
	if a, b := first.Encode(encode), second.Encode(encode); string(a) != "encoded" || &a[0] != &b[0] || calls != 1 {
		t.Errorf("got %s and %s after %d calls", a, b, calls)
	}

	runtime.GC()
	if got := first.Encode(encode); string(got) != "encoded" || calls != 2 {
		t.Errorf("got %s after %d calls, want a second one", got, calls)
	}
}

// TestSelectionsAreBounded: followers with parts of rows share them up to a number of bytes.
func TestSelectionsAreBounded(t *testing.T) {
	t.Parallel()

	m := (&Log{}).newMatchers(nil)
	for i, copied := range []int{maxCopied, 0, 1} {
		m.keep(selectionKey{group: string(rune('a' + i))}, []Change{{copied: copied}})
	}
	if len(m.selected) != 2 || m.copied != maxCopied {
		t.Errorf("got %d selections with %d bytes, want the first two", len(m.selected), m.copied)
	}
}
