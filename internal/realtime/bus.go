package realtime

import (
	"encoding/base64"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fair"
)

// Bus carries messages to the hubs on other servers. None of its methods blocks.
type Bus interface {
	// Active reports whether there are other servers.
	Active() bool
	// Publish sends data to the servers that subscribe to a subject, and Send to one server. They
	// report false if share has no room for it.
	Publish(share fair.Key, subject string, data []byte) bool
	Send(share fair.Key, server uuid.UUID, data []byte) bool
	Subscribe(subject string) (cancel func())
	// Barrier is closed when the other servers have handled what was sent before, and know the
	// subscriptions made before.
	Barrier() <-chan struct{}
}

// Connect connects the hub to others, before the first member joins. The bus calls the methods
// below.
func (h *Hub) Connect(b Bus) { h.bus = b }

// isShared reports whether rooms can have members on other servers.
func (h *Hub) isShared() bool { return h.bus != nil && h.bus.Active() }

// Refused returns the number of messages from other servers that did not reach the members on this
// one, since their project had too many.
func (h *Hub) Refused() int64 { return h.refused.Load() }

// Connected subscribes to the messages for all rooms.
func (h *Hub) Connected() {
	h.isConnected.Store(true) // rooms subscribe by themselves from now on
	h.each(func(r *room) { r.subscribe() })
}

// each calls a function with all rooms, whose project is locked.
func (h *Hub) each(f func(*room)) {
	h.mu.Lock()
	projects := make([]*project, 0, len(h.projects))
	for _, p := range h.projects {
		projects = append(projects, p)
	}
	h.mu.Unlock()

	for _, p := range projects {
		p.mu.Lock()
		for _, r := range p.rooms {
			f(r)
		}
		p.mu.Unlock()
	}
}

// subject returns the bus's subject for a room.
func (p *project) subject(name roomName) string {
	kind := "public."
	if name.private {
		kind = "private."
	}

	return p.id.String() + "." + kind + base64.RawURLEncoding.EncodeToString([]byte(name.topic))
}

// publish sends a note about a room to the servers with members in it.
func (p *project) publish(name roomName, n *note) {
	n.room = Address{Project: p.id, Topic: name.topic, Private: name.private}
	p.hub.bus.Publish(p.share, p.subject(name), n.encode())
}

// subscribe subscribes to the messages of other servers, if there can be some, and asks for their
// presences.
func (r *room) subscribe() {
	h := r.project.hub
	if r.unsubscribe != nil || !h.isConnected.Load() {
		return
	}

	r.unsubscribe = h.bus.Subscribe(r.project.subject(r.name))
	r.project.publish(r.name, &note{kind: helloNote})
	r.ready = h.bus.Barrier()
}

// leave ends the subscription of a room without members.
func (r *room) leave() {
	if r.unsubscribe == nil {
		return
	}
	if r.presence.version != 0 {
		r.project.publish(r.name, &note{kind: stateNote, version: r.project.hub.version.Add(1)})
	}

	r.unsubscribe()
}

// Ready is closed when the member misses neither a later broadcast on another server, nor a
// presence there.
func (m *Member) Ready() <-chan struct{} {
	p := m.room.project
	p.mu.Lock()
	defer p.mu.Unlock()

	if m.room.ready == nil {
		return closed
	}

	return m.room.ready
}

var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Receive handles a note of another server's hub.
func (h *Hub) Receive(server uuid.UUID, data []byte) {
	n, ok := decodeNote(data)
	if !ok {
		return
	}

	h.mu.Lock()
	p := h.projects[n.room.Project]
	h.mu.Unlock()
	if p == nil {
		return
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	r := p.rooms[roomName{n.room.Topic, n.room.Private}]
	switch {
	case r == nil:
	case n.kind != broadcastNote:
		r.synchronize(server, n, time.Now())
	case p.takeDeliveries(len(r.members)):
		r.deliver(n.message, nil)
	default:
		h.refused.Add(1)
	}
}

// Joined announces the presences to a new server.
func (h *Hub) Joined(uuid.UUID) { h.announce(time.Now()) }

// Lost removes the presences on a server that is out of reach.
func (h *Hub) Lost(server uuid.UUID) {
	h.each(func(r *room) { r.forget(server) })
}

// Tick announces the presences every few seconds, and forgets what is no longer announced, and
// projects that only sent.
func (h *Hub) Tick(now time.Time) {
	if now.Sub(h.announcedAt) < announceInterval {
		return
	}

	h.announce(now)
	h.each(func(r *room) { r.expire(now) })

	h.mu.Lock()
	defer h.mu.Unlock()

	for _, p := range h.projects {
		if p.members == 0 && p.isRested(now) {
			h.closeLocked(p)
		}
	}
}

// isRested reports whether forgetting the project lifts no limit.
func (p *project) isRested(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.deliveries.isFull(now)
}

func (h *Hub) announce(now time.Time) {
	h.announcedAt = now
	if !h.isShared() {
		return
	}

	h.each(func(r *room) {
		if v := r.presence.version; v != 0 {
			r.project.publish(r.name, &note{kind: versionNote, version: v})
		}
	})
}
