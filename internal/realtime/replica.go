package realtime

import (
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
)

// replica has a room's presences on another server. That server numbers their versions. A change
// names the version before it, so that a lost one is noticed: at the next change, or when the
// server announces its version.
type replica struct {
	version uint64
	entries map[string]*entry // by reference
	heardAt time.Time
	askedAt time.Time
}

// synchronize handles a note about presences.
func (r *room) synchronize(server uuid.UUID, n *note, now time.Time) {
	switch n.kind {
	case helloNote, requestNote:
		r.sendState(server)
	case stateNote:
		r.replace(server, n, now)
	case diffNote:
		if n.former == 0 {
			r.replace(server, n, now)
		} else if c := r.current(server, n.former, now); c != nil {
			r.change(server, c, n)
		}
	case versionNote:
		r.current(server, n.version, now)
	}
}

// current returns a replica if it has a version. If not, it asks the server for its presences.
func (r *room) current(server uuid.UUID, version uint64, now time.Time) *replica {
	c := r.replica(server)
	c.heardAt = now
	if c.version == version {
		return c
	}

	if now.Sub(c.askedAt) >= requestInterval {
		c.askedAt = now
		r.reply(server, &note{kind: requestNote})
	}

	return nil
}

// replica returns the replica of a server, which may be new.
func (r *room) replica(server uuid.UUID) *replica {
	p := &r.presence
	c := p.replicas[server]
	if c == nil {
		c = &replica{entries: map[string]*entry{}}
		if p.replicas == nil {
			p.replicas = map[uuid.UUID]*replica{}
		}
		p.replicas[server] = c
	}

	return c
}

// replace replaces a replica by the server's presences.
func (r *room) replace(server uuid.UUID, n *note, now time.Time) {
	c := r.replica(server)
	c.heardAt = now

	gone := maps.Clone(c.entries)
	for _, e := range n.joins {
		delete(gone, e.ref)
	}
	n.leaves = slices.Collect(maps.Values(gone))
	r.change(server, c, n)
}

// change applies the joins and leaves of a note to a replica.
func (r *room) change(server uuid.UUID, c *replica, n *note) {
	c.version = n.version
	for _, e := range n.leaves {
		if known := c.entries[e.ref]; known != nil {
			delete(c.entries, e.ref)
			r.drop(known)
		}
	}
	for _, e := range n.joins {
		if c.entries[e.ref] == nil && len(c.entries) < MaxPresences {
			e.server = server
			c.entries[e.ref] = e
			r.add(e)
		}
	}
}

// forget removes the presences on a server.
func (r *room) forget(server uuid.UUID) {
	c := r.presence.replicas[server]
	if c == nil {
		return
	}

	delete(r.presence.replicas, server)
	for _, e := range c.entries {
		r.drop(e)
	}
}

// expire forgets the replicas that their servers no longer announce.
func (r *room) expire(now time.Time) {
	for server, c := range r.presence.replicas {
		if now.Sub(c.heardAt) > replicaTimeout {
			r.forget(server)
		}
	}
}

// sendState sends the presences on this server to another one, as it knows them from the diffs so
// far.
func (r *room) sendState(server uuid.UUID) {
	if r.presence.version != 0 {
		r.reply(server, &note{kind: stateNote, version: r.presence.version, joins: local(r.presence.known())})
	}
}

// reply sends a note about the room to one server.
func (r *room) reply(server uuid.UUID, n *note) {
	p := r.project
	n.room = Address{Project: p.id, Topic: r.name.topic, Private: r.name.private}
	p.hub.bus.Send(p.share, server, n.encode())
}

// publishDiff sends what changed on this server to the others.
func (r *room) publishDiff(joins, leaves []*entry) {
	n := &note{kind: diffNote, joins: local(joins), leaves: local(leaves)}
	if len(n.joins)+len(n.leaves) == 0 {
		return
	}

	h := r.project.hub
	n.former, n.version = r.presence.version, h.version.Add(1)
	r.presence.version = n.version
	if h.isShared() {
		r.project.publish(r.name, n)
	}
}

// local returns the entries of members on this server.
func local(entries []*entry) []*entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e *entry) bool { return e.server != uuid.Nil })
}
