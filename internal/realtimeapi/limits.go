package realtimeapi

import "time"

// memberSession bounds a stream of a platform user, who may lose the role meanwhile. The client
// continues at its cursor.
const memberSession = 5 * time.Minute

// Bounds of sockets. Those of rooms are in package realtime.
const (
	// Sockets of one server, of an account's projects, and of a project. Each costs a file
	// descriptor and about 38 kB (bench/realtime).
	maxSockets           = 40_000
	maxSocketsPerAccount = 20_000
	maxSocketsPerProject = 10_000
	socketReserve        = 4000 // for accounts without a socket

	maxChannels = 100 // joined ones per socket
	maxBindings = 100 // postgres_changes per channel

	joinsPerSecond = 20 // per socket, beyond joinBurst; each may need a query
	joinBurst      = 100

	// A socket that sends more is read more slowly, so that nothing is lost.
	messagesPerSecond = 100
	messageBurst      = 500

	// maxFrame bounds a client's message: a payload of maxPayload with escapes, and a token.
	maxFrame   = 1 << 20
	maxPayload = 256 << 10

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
