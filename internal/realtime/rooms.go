package realtime

import (
	"cmp"
	"slices"

	"github.com/google/uuid"
)

// Room describes a room with members on this server.
type Room struct {
	Topic     string
	Private   bool
	Members   int // on this server
	Presences int // on all servers
}

// Rooms returns the rooms of a project with the most members, and the number of all.
func (h *Hub) Rooms(id uuid.UUID, most int) (largest []Room, total int) {
	h.mu.Lock()
	p := h.projects[id]
	h.mu.Unlock()
	if p == nil {
		return []Room{}, 0
	}

	all := p.describe()
	slices.SortFunc(all, func(a, b Room) int {
		return cmp.Or(cmp.Compare(b.Members, a.Members), cmp.Compare(a.Topic, b.Topic))
	})

	return slices.Clone(all[:min(most, len(all))]), len(all)
}

// describe returns all rooms of the project, at most [MaxMembers].
func (p *project) describe() []Room {
	p.mu.Lock()
	defer p.mu.Unlock()

	rooms := make([]Room, 0, len(p.rooms))
	for name, r := range p.rooms {
		rooms = append(rooms, Room{Topic: name.topic, Private: name.private, Members: len(r.members),
			Presences: len(r.presence.entries)})
	}

	return rooms
}
