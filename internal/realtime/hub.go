package realtime

import (
	"cmp"
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
	ErrTooManyMembers    = fault.New(fault.TooMany, "ChannelRateLimitReached: Too many channels")
)

// Address names a room.
type Address struct {
	Project uuid.UUID
	Topic   string
	Private bool // a private room is another one than the public room with its topic

	Share  fair.Key // what its members and messages count to
	Limits Limits
}

// Subscriber receives the messages to a member. Deliver is called under the project's lock: it
// neither blocks nor calls the hub.
type Subscriber interface {
	Deliver(*Message)
}

// Hub has the rooms of all projects on this server. It is safe for concurrent use.
type Hub struct {
	places      *fair.Pool // for members
	bus         Bus        // nil: none
	isConnected atomic.Bool
	version     atomic.Uint64 // latest change of presences
	refused     atomic.Int64
	announcedAt time.Time // the bus's

	mu       sync.Mutex
	projects map[uuid.UUID]*project
	accounts map[string]*account
}

// NewHub returns a hub without rooms, which knows no other servers.
func NewHub() *Hub {
	return &Hub{projects: map[uuid.UUID]*project{}, accounts: map[string]*account{},
		places: fair.New(fair.Config{Name: "realtime_channels", Capacity: maxAllMembers, PerAccount: MaxMembers,
			Reserve: memberReserve})}
}

// Pools returns the pools that accounts share, for metrics.
func (h *Hub) Pools() []*fair.Pool { return []*fair.Pool{h.places} }

// account has what the projects of an account share.
type account struct {
	projects int // under the hub's lock

	mu         sync.Mutex
	deliveries Bucket
}

// project has a project's rooms.
type project struct {
	hub     *Hub
	id      uuid.UUID
	share   fair.Key
	account *account

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
	place      *fair.Lease

	watches bool   // receives presences
	entry   *entry // its presence; nil: none
	left    bool
}

// Join adds a subscriber to a room. It fails with ErrTooManyMembers.
func (h *Hub) Join(a Address, s Subscriber) (*Member, error) {
	place := h.places.TryAcquire(a.Share, 1)
	if place == nil {
		return nil, ErrTooManyMembers
	}
	p := h.enter(a)
	if p == nil {
		place.Release()
		return nil, ErrTooManyMembers
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	p.limit(a.Limits)
	name := roomName{a.Topic, a.Private}
	r := p.rooms[name]
	if r == nil {
		r = &room{project: p, name: name, members: map[*Member]struct{}{}}
		p.rooms[name] = r
		r.subscribe()
	}

	m := &Member{room: r, subscriber: s, place: place}
	r.members[m] = struct{}{}

	return m, nil
}

// enter returns a project with one member more, or nil if it has too many.
func (h *Hub) enter(a Address) *project {
	h.mu.Lock()
	defer h.mu.Unlock()

	p := h.openLocked(a)
	if p.members >= cmp.Or(a.Limits.Members, MaxMembers) {
		return nil
	}

	p.members++
	return p
}

// openLocked returns a project, which may be new. The hub is locked.
func (h *Hub) openLocked(a Address) *project {
	p := h.projects[a.Project]
	if p == nil {
		p = &project{hub: h, id: a.Project, share: a.Share, account: h.accounts[a.Share.Account],
			rooms: map[roomName]*room{}, deliveries: newDeliveries(DeliveriesPerSecond)}
		if p.account == nil {
			p.account = &account{deliveries: newDeliveries(AccountShare * DeliveriesPerSecond)}
			h.accounts[a.Share.Account] = p.account
		}
		p.account.projects++
		h.projects[a.Project] = p
	}

	return p
}

// closeLocked forgets a project. The hub is locked.
func (h *Hub) closeLocked(p *project) {
	delete(h.projects, p.id)
	if p.account.projects--; p.account.projects == 0 {
		delete(h.accounts, p.share.Account)
	}
}

func newDeliveries(perSecond float64) Bucket { return NewBucket(perSecond, burstSeconds*perSecond) }

// limit applies limits. The project is locked.
func (p *project) limit(l Limits) {
	rate := float64(l.DeliveriesPerSecond)
	if rate == 0 {
		return
	}

	now := time.Now()
	p.deliveries.SetRate(now, rate, burstSeconds*rate)
	p.account.mu.Lock()
	defer p.account.mu.Unlock()

	if rate > p.account.deliveries.rate {
		p.account.deliveries.SetRate(now, rate, burstSeconds*rate)
	}
}

// takeDeliveries reports whether the project and its account have n deliveries left, and takes
// them. The project is locked.
func (p *project) takeDeliveries(n int) bool {
	now := time.Now()
	if !p.deliveries.Take(now, float64(n)) {
		return false
	}

	p.account.mu.Lock()
	defer p.account.mu.Unlock()

	if !p.account.deliveries.Take(now, float64(n)) {
		p.deliveries.Return(float64(n))
		return false
	}

	return true
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
	m.place.Release()
	h.mu.Lock()
	defer h.mu.Unlock()

	if p.members--; p.members == 0 {
		h.closeLocked(p)
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

	p.limit(a.Limits)
	name := roomName{a.Topic, a.Private}
	if r := p.rooms[name]; r != nil {
		return r.send(msg, nil)
	}
	if !h.isShared() {
		return nil
	}
	if !p.takeDeliveries(1) {
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
	if !p.takeDeliveries(deliveries) {
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
