package realtimeapi

import (
	"time"

	"github.com/socle-dev/socle/internal/event"
)

// memberSession bounds a stream of a platform user, who may lose the role meanwhile. The client
// continues at its cursor.
const memberSession = 5 * time.Minute

// Bounds of sockets beside the limits of their project. Those of rooms are in package realtime.
const (
	// Sockets of one server. Each costs a file descriptor and about 38 kB (bench/realtime).
	maxSockets    = 2 * event.MaxSockets
	socketReserve = 4000 // for accounts without a socket

	maxBindings = 100 // postgres_changes per channel

	// maxFrame bounds a client's message: a payload with escapes, and a token.
	maxFrame = 1 << 20

	// smallFrame is read without a share in the memory of request bodies.
	smallFrame = 8 << 10

	// maxTopic bounds a channel's name, whose topic is one word of a binary frame.
	maxTopic = maxWord - len(topicPrefix)

	// Frames that a socket has not taken yet. freeBacklog needs no share in the memory of all
	// sockets; beyond it, the socket takes a share per backlogStep.
	maxBacklog   = 1 << 20
	freeBacklog  = 16 << 10
	backlogStep  = 64 << 10
	maxBacklogs  = 64 << 20 // all sockets together
	frameCost    = 64       // bytes of a waiting frame beside its data
	maxBatch     = 100      // broadcasts per HTTP request
	maxBatchBody = 1 << 20
	maxQuery     = 8 << 10 // query string of a handshake, with its key

	idleTimeout    = 90 * time.Second // clients send a heartbeat every 25 s
	messageTimeout = 30 * time.Second // from a message's first byte to its last
	writeTimeout   = 10 * time.Second // per frame
	policyTimeout  = 10 * time.Second // decision about a private channel
	serversTimeout = time.Second      // until other servers know of a new channel
	stopTimeout    = 6 * time.Second  // close handshakes when the server stops

	checkInterval = 5 * time.Second // between checks of a project with sockets
	checkTimeout  = 4 * time.Second

	firstRetry = 500 * time.Millisecond // after a failure to follow changes
	lastRetry  = 30 * time.Second
)
