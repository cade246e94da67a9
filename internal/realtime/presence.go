package realtime

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
)

// Refusals of presences.
var (
	ErrPresenceTooLarge = fault.New(fault.TooLarge,
		"A presence has a key of at most %d bytes, and a payload of at most %d", MaxPresenceKey, MaxPresencePayload)
	ErrPresenceInvalid  = fault.New(fault.Invalid, "The payload of a presence is a JSON object")
	ErrTooManyPresences = fault.New(fault.TooMany, "Too many presences in this channel")
)

// entry is a tracked presence.
type entry struct {
	key  string
	ref  string
	meta []byte // payload with references, JSON

	server uuid.UUID // its member's; zero: this one
}

func (e *entry) size() int { return len(e.key) + len(e.meta) }

// presence has the presences in a room: those that watchers know, as changed by the pending diff.
type presence struct {
	entries map[*entry]struct{}
	size    int // bytes

	joins  []*entry // in entries, not yet sent
	leaves []*entry // sent, no longer in entries
	timer  *time.Timer

	version  uint64 // what other servers know of the presences on this one; 0: there were none
	replicas map[uuid.UUID]*replica
}

// WatchPresence sends the member the presences in its room, and all changes from now on. Only the
// first call has an effect.
func (m *Member) WatchPresence() {
	p := m.room.project
	p.mu.Lock()
	defer p.mu.Unlock()

	if m.watches || m.left {
		return
	}

	m.watches = true
	m.room.watchers++
	m.subscriber.Deliver(&Message{Kind: PresenceState, Payload: m.room.presence.state()})
}

// Track sets the member's presence. payload is a JSON object. It replaces a former presence: to
// watchers, that one leaves and the new one joins. It fails with TooLarge, Invalid or TooMany.
func (m *Member) Track(key string, payload []byte) error {
	if len(key) > MaxPresenceKey || len(payload) > MaxPresencePayload {
		return ErrPresenceTooLarge
	}

	var members map[string]json.RawMessage
	if json.Unmarshal(payload, &members) != nil || members == nil {
		return ErrPresenceInvalid
	}

	p := m.room.project
	p.mu.Lock()
	defer p.mu.Unlock()

	if m.left {
		return nil
	}

	return m.room.track(m, key, members)
}

// Untrack removes the member's presence, if there is one.
func (m *Member) Untrack() {
	p := m.room.project
	p.mu.Lock()
	defer p.mu.Unlock()

	m.room.untrack(m)
}

func (r *room) track(m *Member, key string, members map[string]json.RawMessage) error {
	e := &entry{key: key, ref: uuid.NewString()}
	delete(members, "phx_ref_prev")
	members["phx_ref"] = json.RawMessage(strconv.Quote(e.ref))
	if m.entry != nil {
		members["phx_ref_prev"] = json.RawMessage(strconv.Quote(m.entry.ref))
	}

	var err error
	if e.meta, err = json.Marshal(members); err != nil {
		return ErrPresenceInvalid
	}

	former := 0
	count := len(r.presence.entries) + 1
	if m.entry != nil {
		former = m.entry.size()
		count--
	}
	if count > MaxPresences || r.presence.size-former+e.size() > MaxPresenceBytes {
		return ErrTooManyPresences
	}

	r.untrack(m)
	m.entry = e
	r.add(e)

	return nil
}

func (r *room) untrack(m *Member) {
	if m.entry != nil {
		r.drop(m.entry)
		m.entry = nil
	}
}

// add adds a presence.
func (r *room) add(e *entry) {
	p := &r.presence
	if p.entries == nil {
		p.entries = map[*entry]struct{}{}
	}
	p.entries[e] = struct{}{}
	p.size += e.size()
	if r.tells(e) {
		p.joins = append(p.joins, e)
		r.schedule()
	}
}

// tells reports whether a change of a presence is told to anybody: one of a member on this server
// is told to the other servers too.
func (r *room) tells(e *entry) bool { return r.watchers > 0 || e.server == uuid.Nil }

// drop removes a presence.
func (r *room) drop(e *entry) {
	p := &r.presence
	delete(p.entries, e)
	p.size -= e.size()
	if i := slices.Index(p.joins, e); i >= 0 { // no watcher knows it
		p.joins = slices.Delete(p.joins, i, i+1)
		return
	}

	if r.tells(e) {
		p.leaves = append(p.leaves, e)
		r.schedule()
	}
}

// schedule sends the pending diff soon.
func (r *room) schedule() {
	if r.presence.timer == nil {
		r.presence.timer = time.AfterFunc(presenceInterval, r.flush)
	}
}

// flush sends the pending diff. It waits once more if the project exceeds its deliveries.
func (r *room) flush() {
	r.project.mu.Lock()
	defer r.project.mu.Unlock()

	p := &r.presence
	if p.timer == nil { // stopped
		return
	}

	p.timer = nil
	if len(p.joins)+len(p.leaves) == 0 {
		return
	}
	if !r.project.deliveries.Take(time.Now(), float64(len(r.members))) {
		r.schedule()
		return
	}

	joins, leaves := p.joins, p.leaves
	p.joins, p.leaves = nil, nil
	r.publishDiff(joins, leaves)
	if replaces(joins, leaves) {
		r.sendDiff(nil, leaves)
		leaves = nil
	}
	r.sendDiff(joins, leaves)
}

// replaces reports whether a key both joins and leaves. Supabase's client for JavaScript loses the
// references of a key's presences when another one joins, and then never removes them. So what
// leaves goes first, in a diff of its own.
func replaces(joins, leaves []*entry) bool {
	keys := map[string]bool{}
	for _, e := range leaves {
		keys[e.key] = true
	}

	return slices.ContainsFunc(joins, func(e *entry) bool { return keys[e.key] })
}

// sendDiff sends a diff to the watchers. The project is locked.
func (r *room) sendDiff(joins, leaves []*entry) {
	diff := append(appendEntries([]byte(`{"joins":`), joins), `,"leaves":`...)
	msg := &Message{Kind: PresenceDiff, Payload: append(appendEntries(diff, leaves), '}')}
	for m := range r.members {
		if m.watches {
			m.subscriber.Deliver(msg)
		}
	}
}

// stop drops the pending diff of a room without members.
func (p *presence) stop() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// state returns the presences that watchers know, as a JSON object.
func (p *presence) state() []byte { return appendEntries(nil, p.known()) }

// known returns the presences without the pending diff.
func (p *presence) known() []*entry {
	known := maps.Clone(p.entries)
	for _, e := range p.joins {
		delete(known, e)
	}

	return slices.AppendSeq(slices.Clone(p.leaves), maps.Keys(known))
}

// appendEntries appends a JSON object with the presences by their key.
func appendEntries(b []byte, entries []*entry) []byte {
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b *entry) int { return cmp.Compare(a.key, b.key) })

	b = append(b, '{')
	for i, e := range sorted {
		switch {
		case i > 0 && sorted[i-1].key == e.key:
			b = append(b, ',')
		default:
			if i > 0 {
				b = append(b, `]},`...)
			}
			name, _ := json.Marshal(e.key) // a text has no error
			b = append(append(b, name...), `:{"metas":[`...)
		}

		b = append(b, e.meta...)
	}
	if len(sorted) > 0 {
		b = append(b, `]}`...)
	}

	return append(b, '}')
}
