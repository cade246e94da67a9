package realtime

import "time"

// Limits bound a project on one server.
type Limits struct {
	Members             int // joined channels of all rooms together; 0: MaxMembers
	DeliveriesPerSecond int // 0: as before, at first DeliveriesPerSecond
}

// Bounds of a project on one server.
const (
	// MaxMembers bounds the members of the rooms of an account's projects together.
	MaxMembers    = 100_000
	maxAllMembers = 2 * MaxMembers // all accounts
	memberReserve = maxAllMembers / 10

	// DeliveriesPerSecond bounds the messages that members receive, since one message to a large
	// room costs as much as many messages to small ones. A project can save up those of
	// burstSeconds. All projects of an account have AccountShare times as many, unless one of them
	// has more.
	DeliveriesPerSecond = 20_000
	AccountShare        = 2
	burstSeconds        = 2
	deliveryBurst       = burstSeconds * DeliveriesPerSecond

	// MaxPresences bounds the members of a room that track a presence, and MaxPresenceBytes their
	// keys and payloads together: each new member gets all of them.
	MaxPresences     = 2000
	MaxPresenceBytes = 512 << 10

	// MaxPresenceKey and MaxPresencePayload bound a presence, in bytes.
	MaxPresenceKey     = 255
	MaxPresencePayload = 4 << 10

	// maxMeta bounds a payload with its references, whose characters may be escaped.
	maxMeta = 6*MaxPresencePayload + 256

	// presenceInterval collects changes of presence, so that n members that come together cause a
	// few diffs and not n.
	presenceInterval = 200 * time.Millisecond

	// announceInterval is the time after which a server learns that a change of presences did not
	// reach it. A server that announces none for replicaTimeout has none.
	announceInterval = 5 * time.Second
	replicaTimeout   = 3*announceInterval + time.Second
	requestInterval  = time.Second // between requests for the same presences
)
