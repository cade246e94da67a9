package realtime

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fair"
)

// network connects hubs in memory.
type network struct {
	nodes []*server
	drops func(from, to *server, kind byte) bool // nil: nothing
}

// server is a hub with its bus, which delivers in order.
type server struct {
	hub        *Hub
	network    *network
	id         uuid.UUID
	inbox      chan func()
	subscribed map[string]int
}

// newNetwork returns a network of n servers, in the bubble of a test.
func newNetwork(t *testing.T, n int) *network {
	w := &network{}
	for range n {
		s := &server{hub: NewHub(), network: w,
			id: uuid.New(), inbox: make(chan func(), 10_000), subscribed: map[string]int{}}
		s.hub.Connect(s)
		w.nodes = append(w.nodes, s)
		go func() {
			for f := range s.inbox {
				f()
			}
		}()
		t.Cleanup(func() { close(s.inbox) })
	}

	return w
}

// each has all servers do something in order with their messages.
func (w *network) each(f func(*server)) {
	for _, s := range w.nodes {
		s.inbox <- func() { f(s) }
	}
	synctest.Wait()
}

// pass lets time pass.
func (w *network) pass(d time.Duration) {
	for range d / presenceInterval {
		time.Sleep(presenceInterval)
		w.each(func(s *server) { s.hub.Tick(time.Now()) })
	}
}

func (s *server) Active() bool { return len(s.network.nodes) > 1 }

func (s *server) Publish(_ fair.Key, subject string, data []byte) bool {
	for _, o := range s.network.nodes {
		if o != s {
			s.transmit(o, data, func() bool { return o.subscribed[subject] > 0 })
		}
	}

	return true
}

func (s *server) Send(_ fair.Key, to uuid.UUID, data []byte) bool {
	for _, o := range s.network.nodes {
		if o.id == to {
			s.transmit(o, data, func() bool { return true })
		}
	}

	return true
}

func (s *server) transmit(to *server, data []byte, isWanted func() bool) {
	if s.network.drops == nil || !s.network.drops(s, to, data[0]) {
		to.inbox <- func() {
			if isWanted() {
				to.hub.Receive(s.id, data)
			}
		}
	}
}

func (s *server) Subscribe(subject string) (cancel func()) {
	s.inbox <- func() { s.subscribed[subject]++ }
	return func() { s.inbox <- func() { s.subscribed[subject]-- } }
}

func (s *server) Barrier() <-chan struct{} { return closed }

// TestRoomsOnServers broadcasts from one of three servers.
func TestRoomsOnServers(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(t, 3)
		here := Address{Project: uuid.New(), Topic: "room"}
		ann, annInbox := join(t, w.nodes[0].hub, here) // before the bus is connected
		w.each(func(s *server) { s.hub.Connected() })
		ben, benInbox := join(t, w.nodes[1].hub, here)
		_, otherInbox := join(t, w.nodes[1].hub, Address{Project: here.Project, Topic: "room", Private: true})
		synctest.Wait()

		for i, test := range []struct {
			name     string
			send     func(*Message) error
			ann, ben string
		}{
			{"to others", func(m *Message) error { return ann.Send(m, false) }, "", "e 0"},
			{"to all", func(m *Message) error { return ben.Send(m, true) }, "e 1", "e 1"},
			{"from elsewhere", func(m *Message) error { return w.nodes[2].hub.Send(here, m) }, "e 2", "e 2"},
			{"bytes", func(m *Message) error { m.Binary = true; return ann.Send(m, false) }, "", "e 3"},
			{"after leaving", func(m *Message) error { ben.Leave(); return ann.Send(m, true) }, "e 4", ""},
		} {
			if err := test.send(&Message{Event: "e", Payload: fmt.Append(nil, i)}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			a, b := strings.Join(annInbox.take(), "|"), strings.Join(benInbox.take(), "|")
			if a != test.ann || b != test.ben {
				t.Errorf("%s: got %q, %q, want %q, %q", test.name, a, b, test.ann, test.ben)
			}
		}
		if got := otherInbox.take(); got != nil {
			t.Errorf("the private room got %v", got)
		}
		all := w.nodes[1].subscribed
		if n := all[ann.room.project.subject(ann.room.name)]; n != 0 || len(all) != 2 {
			t.Errorf("got subscriptions %v after leaving", all)
		}
	})
}

// TestServersShareNoLimits checks that each server keeps the limit of deliveries for itself, also
// for what others send and for projects without members.
func TestServersShareNoLimits(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(t, 2)
		w.each(func(s *server) { s.hub.Connected() })
		here := Address{Project: uuid.New(), Topic: "room"}
		_, inbox := join(t, w.nodes[0].hub, here)
		join(t, w.nodes[0].hub, here)

		sent := 0
		for w.nodes[1].hub.Send(here, &Message{}) == nil {
			if sent++; sent%1000 == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		if got := len(inbox.take()); sent != deliveryBurst || got != deliveryBurst/2 {
			t.Errorf("got %d of %d messages, want %d of %d", got, sent, deliveryBurst/2, deliveryBurst)
		}
		if got := w.nodes[0].hub.Refused(); got != deliveryBurst/2 {
			t.Errorf("got %d refused messages, want %d", got, deliveryBurst/2)
		}

		if len(w.nodes[1].hub.projects) != 1 {
			t.Error("the sender's limit is forgotten")
		}
		w.pass(2 * announceInterval)
		if len(w.nodes[1].hub.projects) != 0 {
			t.Error("a project without members stays")
		}
	})
}

// metas returns how many presences a watcher with an inbox knows, by key.
func metas(known map[string]int, inbox *inbox) map[string]int {
	for _, text := range inbox.take() {
		joins, leaves, isDiff := strings.Cut(text, `,"leaves":`)
		if !isDiff {
			clear(known)
		}
		for _, key := range []string{"ann", "ben", "cleo"} {
			known[key] += strings.Count(joins, `"`+key+`":`) - strings.Count(leaves, `"`+key+`":`)
			if known[key] == 0 {
				delete(known, key)
			}
		}
	}

	return known
}

// TestPresenceOnServers checks that the presences of three servers agree after each fault.
func TestPresenceOnServers(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(t, 3)
		w.each(func(s *server) { s.hub.Connected() })
		room := Address{Project: uuid.New(), Topic: "x"}
		names := []string{"ann", "ben", "cleo"}
		var members []*Member
		var inboxes []*inbox
		known := []map[string]int{{}, {}, {}}
		for i, s := range w.nodes {
			m, inbox := join(t, s.hub, room)
			synctest.Wait()
			m.WatchPresence()
			if err := m.Track(names[i], []byte(`{}`)); err != nil {
				t.Fatal(err)
			}
			members, inboxes = append(members, m), append(inboxes, inbox)
			w.pass(2 * presenceInterval)
		}

		check := func(step string, want ...map[string]int) {
			t.Helper()
			for i := range known {
				if diff := cmp.Diff(want[min(i, len(want)-1)], metas(known[i], inboxes[i])); diff != "" {
					t.Errorf("%s: server %d (-want +got):\n%s", step, i, diff)
				}
			}
		}
		all := map[string]int{"ann": 1, "ben": 1, "cleo": 1}
		check("joined", all)

		late, lateInbox := join(t, w.nodes[2].hub, room)
		late.WatchPresence()
		if diff := cmp.Diff(all, metas(map[string]int{}, lateInbox)); diff != "" {
			t.Errorf("a late watcher (-want +got):\n%s", diff)
		}
		late.Leave()

		members[0].Untrack()
		w.pass(2 * presenceInterval)
		check("untracked", map[string]int{"ben": 1, "cleo": 1})

		w.drops = func(_, _ *server, kind byte) bool { return kind == diffNote }
		if err := members[0].Track("ann", []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		w.pass(2 * presenceInterval)
		w.drops = nil
		check("a lost diff", all, map[string]int{"ben": 1, "cleo": 1})
		w.pass(announceInterval + presenceInterval)
		check("repaired", all)

		// Server 0 is cut off; both sides change meanwhile.
		w.drops = func(from, to *server, _ byte) bool { return (from == w.nodes[0]) != (to == w.nodes[0]) }
		w.each(func(s *server) {
			for _, o := range w.nodes {
				if s != o && (s == w.nodes[0]) != (o == w.nodes[0]) {
					s.hub.Lost(o.id)
				}
			}
		})
		w.pass(2 * presenceInterval)
		check("partition", map[string]int{"ann": 1}, map[string]int{"ben": 1, "cleo": 1})
		members[1].Untrack()
		members[0].Untrack()
		if err := members[0].Track("ann", []byte(`{"new":true}`)); err != nil {
			t.Fatal(err)
		}
		w.drops = nil
		w.each(func(s *server) { s.hub.Joined(uuid.New()) })
		w.pass(3 * presenceInterval)
		check("healed", map[string]int{"ann": 1, "cleo": 1})

		// The end of the last member on a server is lost.
		w.drops = func(from, _ *server, _ byte) bool { return from == w.nodes[2] }
		members[2].Leave()
		w.pass(replicaTimeout + announceInterval + presenceInterval)
		inboxes, known = inboxes[:2], known[:2]
		check("no longer announced", map[string]int{"ann": 1})
	})
}

// TestPresencesOfServersAreBounded: what a server takes from another has the bounds of a room.
func TestPresencesOfServersAreBounded(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := newNetwork(t, 2)
		w.each(func(s *server) { s.hub.Connected() })
		room := Address{Project: uuid.New(), Topic: "x"}
		m, _ := join(t, w.nodes[0].hub, room)

		n := &note{kind: diffNote, room: room, version: 1}
		for i := range MaxPresences {
			n.joins = append(n.joins, &entry{ref: fmt.Sprint(i), key: "k", meta: []byte(`{}`)})
		}
		w.nodes[0].hub.Receive(w.nodes[1].id, n.encode())
		if err := m.Track("k", []byte(`{}`)); err != ErrTooManyPresences {
			t.Errorf("got %v, want %v", err, ErrTooManyPresences)
		}

		more := &note{kind: diffNote, room: room, former: 1, version: 2,
			joins: []*entry{{ref: "more", key: "k", meta: []byte(`{}`)}}}
		w.nodes[0].hub.Receive(w.nodes[1].id, more.encode())
		if got := len(m.room.presence.entries); got != MaxPresences {
			t.Errorf("got %d presences, want %d", got, MaxPresences)
		}
		w.nodes[0].hub.Lost(w.nodes[1].id)
		if p := m.room.presence; len(p.entries) != 0 || p.size != 0 || len(p.replicas) != 0 {
			t.Errorf("got %d presences of a lost server", len(p.entries))
		}
	})
}

// TestNotes decodes notes, and cut and changed ones.
func TestNotes(t *testing.T) {
	t.Parallel()

	room := Address{Project: uuid.New(), Topic: "ünder:*.>", Private: true}
	entries := []*entry{{ref: "r", key: "k", meta: []byte(`{}`)}, {ref: "s", meta: []byte(`{"a":1}`)}}
	for _, n := range []*note{
		{kind: broadcastNote, message: &Message{Event: "e", Payload: []byte{0, 1}, Binary: true}},
		{kind: helloNote}, {kind: requestNote}, {kind: versionNote, version: 1 << 40},
		{kind: stateNote, version: 7, joins: entries},
		{kind: diffNote, former: 7, version: 8, joins: entries[:1], leaves: []*entry{{ref: "s"}}},
	} {
		n.room = room
		data := n.encode()
		got, ok := decodeNote(data)
		if !ok || string(got.encode()) != string(data) || got.room != room {
			t.Errorf("kind %d: got %+v, %v", n.kind, got, ok)
		}

		for i := range data {
			decodeNote(data[:i])
			changed := append([]byte(nil), data...)
			changed[i] = byte(rand.Uint32())
			decodeNote(changed)
		}
	}

	for _, bad := range []*note{
		{kind: stateNote, joins: []*entry{{key: strings.Repeat("k", MaxPresenceKey+1)}}},
		{kind: stateNote, joins: []*entry{{meta: make([]byte, maxMeta+1)}}},
		{kind: stateNote, joins: make([]*entry, MaxPresences+1)},
	} {
		for i, e := range bad.joins {
			if e == nil {
				bad.joins[i] = &entry{}
			}
		}
		if _, ok := decodeNote(bad.encode()); ok {
			t.Errorf("%d presences: got no failure", len(bad.joins))
		}
	}
}
