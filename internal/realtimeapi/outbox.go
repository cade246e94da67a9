package realtimeapi

import (
	"context"
	"errors"
	"sync"

	"github.com/coder/websocket"

	"github.com/socle-dev/socle/internal/fair"
)

// Close codes (RFC 6455, section 7.4.1).
const (
	statusGoingAway       = websocket.StatusGoingAway
	statusUnsupported     = websocket.StatusUnsupportedData
	statusMalformed       = websocket.StatusInvalidFramePayloadData
	statusPolicyViolation = websocket.StatusPolicyViolation
	statusTryAgainLater   = websocket.StatusTryAgainLater
)

const slowReason = "the client reads too slowly"

// frame is a message to the client.
type frame struct {
	isBinary bool
	data     []byte
}

func (f frame) cost() int { return len(f.data) + frameCost }

// conn is the part of a WebSocket that an outbox writes to.
type conn interface {
	Write(ctx context.Context, kind websocket.MessageType, data []byte) error
	Close(code websocket.StatusCode, reason string) error
	CloseNow() error
}

// outbox has the frames that a client has not taken yet. A goroutine writes them as long as there
// are some. A client that is too slow is closed.
type outbox struct {
	conn     conn
	backlogs *fair.Pool
	share    fair.Key

	mu        sync.Mutex
	frames    []frame
	size      int           // cost of frames
	leases    []*fair.Lease // backlogStep each
	isWriting bool
	isClosed  bool
	code      websocket.StatusCode // once closed
	reason    string
}

// push adds a frame. It never blocks.
func (o *outbox) push(f frame) {
	o.mu.Lock()
	defer o.mu.Unlock()

	switch {
	case o.isClosed:
	case o.size+f.cost() > maxBacklog:
		o.closeLocked(statusTryAgainLater, slowReason)
	case !o.grow(o.size + f.cost()):
		o.closeLocked(statusTryAgainLater, "too many messages wait for slow clients")
	default:
		o.frames = append(o.frames, f)
		o.size += f.cost()
		o.write()
	}
}

// grow takes shares of memory for a backlog of size. It reports false if there are none.
func (o *outbox) grow(size int) bool {
	for size > freeBacklog+len(o.leases)*backlogStep {
		lease := o.backlogs.TryAcquire(o.share, backlogStep)
		if lease == nil {
			return false
		}
		o.leases = append(o.leases, lease)
	}

	return true
}

// close drops what waits and ends the connection with a reason. Only the first call has an effect.
func (o *outbox) close(code websocket.StatusCode, reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()

	o.closeLocked(code, reason)
}

func (o *outbox) closeLocked(code websocket.StatusCode, reason string) {
	if o.isClosed {
		return
	}

	o.isClosed, o.code, o.reason = true, code, reason
	o.write()
}

// outcome reports whether the connection is closed, and why the server has closed it; "" if the
// client has.
func (o *outbox) outcome() (isClosed bool, reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()

	return o.isClosed, o.reason
}

// write starts the writer if there is none. The outbox is locked.
func (o *outbox) write() {
	if !o.isWriting {
		o.isWriting = true
		go o.run()
	}
}

// run writes frames until none waits, or the connection ends.
func (o *outbox) run() {
	for {
		f, ok := o.next()
		if !ok {
			return
		}

		kind := websocket.MessageText
		if f.isBinary {
			kind = websocket.MessageBinary
		}

		ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
		err := o.conn.Write(ctx, kind, f.data)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			o.close(statusTryAgainLater, slowReason)
		}
		if err != nil {
			o.close(statusGoingAway, "")
			_ = o.conn.CloseNow() // the reader notices
		}
	}
}

// next returns the next frame. At the end it returns false, and closes the connection if it is to
// be closed.
func (o *outbox) next() (frame, bool) {
	o.mu.Lock()

	if !o.isClosed && len(o.frames) > 0 {
		f := o.frames[0]
		o.frames[0] = frame{}
		o.frames = o.frames[1:]
		o.size -= f.cost()
		o.mu.Unlock()

		return f, true
	}

	for _, l := range o.leases {
		l.Release()
	}
	o.frames, o.leases, o.size = nil, nil, 0
	isClosed, code, reason := o.isClosed, o.code, o.reason
	o.isWriting = isClosed // the writer of a closed outbox is its last one
	o.mu.Unlock()

	if isClosed {
		_ = o.conn.Close(code, reason) // fails if the client has gone
	}

	return frame{}, false
}
