package realtimeapi

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// Bounds of an [Activity].
const (
	shownSockets  = 100
	shownChannels = 200
)

// Activity is what a project has open on one server.
type Activity struct {
	Sockets         int           `json:"sockets" doc:"Open WebSockets."`
	Channels        int           `json:"channels" doc:"Joined channels: a public and a private one of a name are two."`
	NewestSockets   []SocketOpen  `json:"newestSockets" doc:"100 at most."`
	LargestChannels []ChannelOpen `json:"largestChannels" doc:"Channels with the most sockets, 200 at most."`
}

// SocketOpen describes an open socket.
type SocketOpen struct {
	OpenedAt time.Time `json:"openedAt"`
	Address  string    `json:"address" doc:"Address of the client."`
	Channels int       `json:"channels" doc:"Channels that it has joined."`
}

// ChannelOpen describes a joined channel.
type ChannelOpen struct {
	Name      string `json:"name"`
	IsPrivate bool   `json:"isPrivate" doc:"Whether policies decide who joins."`
	Sockets   int    `json:"sockets" doc:"On this server."`
	Presences int    `json:"presences" doc:"Tracked presences, on all servers."`
}

// Activity returns what a project has open on this server.
func (s *Server) Activity(project uuid.UUID) Activity {
	sockets := s.socketsOf(project)
	a := Activity{Sockets: len(sockets), NewestSockets: []SocketOpen{}, LargestChannels: []ChannelOpen{}}

	slices.SortFunc(sockets, func(x, y *socket) int { return y.openedAt.Compare(x.openedAt) })
	for _, k := range sockets[:min(shownSockets, len(sockets))] {
		a.NewestSockets = append(a.NewestSockets, SocketOpen{OpenedAt: k.openedAt, Address: k.address,
			Channels: len(k.list())})
	}

	rooms, total := s.Hub.Rooms(project, shownChannels)
	a.Channels = total
	for _, r := range rooms {
		a.LargestChannels = append(a.LargestChannels, ChannelOpen{Name: r.Topic, IsPrivate: r.Private,
			Sockets: r.Members, Presences: r.Presences})
	}

	return a
}

// socketsOf returns the sockets of a project.
func (s *Server) socketsOf(project uuid.UUID) []*socket {
	s.mu.Lock()
	t := s.tenants[project]
	s.mu.Unlock()
	if t == nil {
		return nil
	}

	return t.list()
}
