package realtime

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
)

// Refusals by the bounds of a project.
var (
	ErrTooManyDeliveries = fault.New(fault.TooMany, "Too many messages per second")
	ErrTooManyMembers    = fault.New(fault.TooMany, "Too many channels in this project")
)

// Address names a room.
type Address struct {
	Project uuid.UUID
	Topic   string
	Private bool // a private room is another one than the public room with its topic

	Share fair.Key // what its messages to other servers count to
}

// Subscriber receives the messages to a member. Deliver is called under the project's lock: it
// neither blocks nor calls the hub.
type Subscriber interface {
	Deliver(*Message)
}

// Hub has the rooms of all projects on this server. The zero value has none, and knows no other
// servers. It is safe for concurrent use.
type Hub struct {
	bus         Bus // nil: none
	isConnected atomic.Bool
	version     atomic.Uint64 // latest change of presences
	refused     atomic.Int64
	announcedAt time.Time // the bus's

	mu       sync.Mutex
	projects map[uuid.UUID]*project
}

// project has a project's rooms.
type project struct {
	hub   *Hub
	id    uuid.UUID
	share fair.Key

	members int // under the hub's lock

	mu         sync.Mutex
	rooms      map[roomName]*room
	deliveries Bucket
}

type roomName struct {
	topic   string
	private bool
}

type room struct {
	project *project
	name    roomName
	members map[*Member]struct{}

	presence presence
	watchers int // members that receive presences

	unsubscribe func()          // nil: not subscribed to messages of other servers
	ready       <-chan struct{} // closed when none is missed; nil: at once
}

// Member is a subscriber in a room, until [Member.Leave].
type Member struct {
	room       *room
	subscriber Subscriber

	watches bool   // receives presences
	entry   *entry // its presence; nil: none
	left    bool
}

// Join adds a subscriber to a room. It fails with ErrTooManyMembers.
func (h *Hub) Join(a Address, s Subscriber) (*Member, error) {
	p := h.enter(a)
	if p == nil {
		return nil, ErrTooManyMembers
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	name := roomName{a.Topic, a.Private}
	r := p.rooms[name]
	if r == nil {
		r = &room{project: p, name: name, members: map[*Member]struct{}{}}
		p.rooms[name] = r
		r.subscribe()
	}

	m := &Member{room: r, subscriber: s}
	r.members[m] = struct{}{}

	return m, nil
}

// enter returns a project with one member more, or nil if it has too many.
func (h *Hub) enter(a Address) *project {
	h.mu.Lock()
	defer h.mu.Unlock()

	p := h.openLocked(a)
	if p.members == MaxMembers {
		return nil
	}

	p.members++
	return p
}

// openLocked returns a project, which may be new. The hub is locked.
func (h *Hub) openLocked(a Address) *project {
	p := h.projects[a.Project]
	if p == nil {
		p = &project{hub: h, id: a.Project, share: a.Share, rooms: map[roomName]*room{},
			deliveries: NewBucket(DeliveriesPerSecond, DeliveryBurst)}
		if h.projects == nil {
			h.projects = map[uuid.UUID]*project{}
		}
		h.projects[a.Project] = p
	}

	return p
}

// find returns a project that has members or, if there are other servers, any project.
func (h *Hub) find(a Address) *project {
	h.mu.Lock()
	defer h.mu.Unlock()

	if h.isShared() {
		return h.openLocked(a)
	}

	return h.projects[a.Project]
}

// Leave removes the member and its presence. Only the first call has an effect.
func (m *Member) Leave() {
	if !m.remove() {
		return
	}

	p := m.room.project
	h := p.hub
	h.mu.Lock()
	defer h.mu.Unlock()

	if p.members--; p.members == 0 {
		delete(h.projects, p.id)
	}
}

func (m *Member) remove() bool {
	r := m.room
	r.project.mu.Lock()
	defer r.project.mu.Unlock()

	if m.left {
		return false
	}

	m.left = true
	r.untrack(m)
	delete(r.members, m)
	if m.watches {
		r.watchers--
	}
	if len(r.members) == 0 {
		r.presence.stop()
		r.leave()
		delete(r.project.rooms, r.name)
	}

	return true
}

// Send sends a broadcast to the other members of the room, and to the member itself if self is set.
// It fails with ErrTooManyDeliveries.
func (m *Member) Send(msg *Message, self bool) error {
	r := m.room
	r.project.mu.Lock()
	defer r.project.mu.Unlock()

	if self {
		return r.send(msg, nil)
	}

	return r.send(msg, m)
}

// Send sends a broadcast to the members of a room, if there are any. It fails with
// ErrTooManyDeliveries.
func (h *Hub) Send(a Address, msg *Message) error {
	p := h.find(a)
	if p == nil {
		return nil
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	name := roomName{a.Topic, a.Private}
	if r := p.rooms[name]; r != nil {
		return r.send(msg, nil)
	}
	if !h.isShared() {
		return nil
	}
	if !p.deliveries.Take(time.Now(), 1) {
		return ErrTooManyDeliveries
	}
	p.publish(name, &note{kind: broadcastNote, message: msg})

	return nil
}

// send sends a message to all members but one, on all servers. The project is locked.
func (r *room) send(msg *Message, except *Member) error {
	p := r.project
	isShared := p.hub.isShared()
	deliveries := len(r.members)
	if isShared {
		deliveries++
	}
	if !p.deliveries.Take(time.Now(), float64(deliveries)) {
		return ErrTooManyDeliveries
	}

	r.deliver(msg, except)
	if isShared {
		p.publish(r.name, &note{kind: broadcastNote, message: msg})
	}

	return nil
}

// deliver delivers a message to all members on this server but one.
func (r *room) deliver(msg *Message, except *Member) {
	for m := range r.members {
		if m != except {
			m.subscriber.Deliver(msg)
		}
	}
}

// Stats counts a project's rooms and members.
type Stats struct {
	Rooms, Members int
}

// Members returns the number of members of all projects on this server.
func (h *Hub) Members() int {
	h.mu.Lock()
	defer h.mu.Unlock()

	n := 0
	for _, p := range h.projects {
		n += p.members
	}

	return n
}

// Stats returns the counts of a project on this server.
func (h *Hub) Stats(id uuid.UUID) Stats {
	h.mu.Lock()
	p, members := h.projects[id], 0
	if p != nil {
		members = p.members
	}
	h.mu.Unlock()
	if p == nil {
		return Stats{}
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	return Stats{len(p.rooms), members}
}
