package realtime

import (
	"sync"
	"time"

	"github.com/google/uuid"

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
}

// Subscriber receives the messages to a member. Deliver is called under the project's lock: it
// neither blocks nor calls the hub.
type Subscriber interface {
	Deliver(*Message)
}

// Hub has the rooms of all projects on this server. The zero value has none. It is safe for
// concurrent use.
type Hub struct {
	mu       sync.Mutex
	projects map[uuid.UUID]*project
}

// project has a project's rooms.
type project struct {
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
}

// Member is a subscriber in a room, until [Member.Leave].
type Member struct {
	hub        *Hub
	id         uuid.UUID // project's
	room       *room
	subscriber Subscriber

	watches bool   // receives presences
	entry   *entry // its presence; nil: none
	left    bool
}

// Join adds a subscriber to a room. It fails with ErrTooManyMembers.
func (h *Hub) Join(a Address, s Subscriber) (*Member, error) {
	p := h.enter(a.Project)
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
	}

	m := &Member{hub: h, id: a.Project, room: r, subscriber: s}
	r.members[m] = struct{}{}

	return m, nil
}

// enter returns a project with one member more, or nil if it has too many.
func (h *Hub) enter(id uuid.UUID) *project {
	h.mu.Lock()
	defer h.mu.Unlock()

	p := h.projects[id]
	if p == nil {
		p = &project{rooms: map[roomName]*room{}, deliveries: NewBucket(DeliveriesPerSecond, DeliveryBurst)}
		if h.projects == nil {
			h.projects = map[uuid.UUID]*project{}
		}
		h.projects[id] = p
	}
	if p.members == MaxMembers {
		return nil
	}

	p.members++
	return p
}

// Leave removes the member and its presence. Only the first call has an effect.
func (m *Member) Leave() {
	if !m.remove() {
		return
	}

	h := m.hub
	h.mu.Lock()
	defer h.mu.Unlock()

	p := m.room.project
	if p.members--; p.members == 0 {
		delete(h.projects, m.id)
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
	if len(r.members) == 0 {
		r.presence.stop()
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
	h.mu.Lock()
	p := h.projects[a.Project]
	h.mu.Unlock()
	if p == nil {
		return nil
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	if r := p.rooms[roomName{a.Topic, a.Private}]; r != nil {
		return r.send(msg, nil)
	}

	return nil
}

// send sends a message to all members but one. The project is locked.
func (r *room) send(msg *Message, except *Member) error {
	if !r.project.deliveries.Take(time.Now(), float64(len(r.members))) {
		return ErrTooManyDeliveries
	}

	for m := range r.members {
		if m != except {
			m.subscriber.Deliver(msg)
		}
	}

	return nil
}

// Stats counts a project's rooms and members.
type Stats struct {
	Rooms, Members int
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
