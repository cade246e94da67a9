package pgwire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// TunnelProtocol is the name of the tunnel's protocol in an Upgrade header.
const TunnelProtocol = "socle-postgres/1"

const (
	// HeartbeatInterval is the interval in which each end of a tunnel writes at least once.
	HeartbeatInterval = 15 * time.Second

	// SilenceTimeout is the time without a byte after which a read counts the peer as lost.
	SilenceTimeout = 3 * HeartbeatInterval
)

const (
	frameHead    = 4        // bytes: length of the payload, big endian
	maxFrame     = 64 << 10 // bytes of payload that are written at once
	tunnelBuffer = 64 << 10

	armInterval = time.Second // between new deadlines, which are not free
)

// ErrSilent is the failure of a read from a peer that has frozen or vanished. It is a timeout.
var ErrSilent error = silentError{}

type silentError struct{}

func (silentError) Error() string {
	return fmt.Sprintf("the other side has sent nothing for %v", SilenceTimeout)
}
func (silentError) Timeout() bool   { return true }
func (silentError) Temporary() bool { return false }

// Tunnel is one end of a connection that carries PostgreSQL's protocol through HTTP proxies. Its
// stream consists of frames: four bytes of length and a payload. An empty frame is a heartbeat.
//
// Proxies acknowledge TCP keepalives themselves, so only the stream shows whether the peer lives.
// Read fails with [ErrSilent] if it waits for longer than [SilenceTimeout]. An end that does not
// read judges nothing: psql may pause for an hour while its user looks at a page.
type Tunnel struct {
	net.Conn
	reader    *bufio.Reader
	remaining uint32 // bytes in the current frame

	deadlines sync.Mutex
	deadline  time.Time // for reads, set by the owner
	silence   time.Time // start of the silence that bounds the next read

	writing sync.Mutex
	frame   []byte
	active  bool  // a frame was written since the last tick
	failure error // a frame was written in part

	done    chan struct{}
	closing sync.Once
}

// NewTunnel returns the end of a tunnel over conn. It sends heartbeats until it is closed.
func NewTunnel(conn net.Conn) *Tunnel {
	t := &Tunnel{Conn: conn, reader: bufio.NewReaderSize(conn, tunnelBuffer),
		frame: make([]byte, frameHead, frameHead+maxFrame), done: make(chan struct{})}

	go t.beat()

	return t
}

// beat writes a heartbeat in each interval without another frame.
func (t *Tunnel) beat() {
	tick := time.NewTicker(HeartbeatInterval)
	defer tick.Stop()

	for {
		select {
		case <-t.done:
			return
		case <-tick.C:
		}

		if !t.writing.TryLock() { // a frame is on its way
			continue
		}

		if !t.active {
			_ = t.writeFrame(nil) // a failure shows at the next read or write
		}

		t.active = false
		t.writing.Unlock()
	}
}

// Read reads payload. It skips heartbeats.
func (t *Tunnel) Read(b []byte) (int, error) {
	for t.remaining == 0 {
		t.arm()

		head, err := t.reader.Peek(frameHead) // keeps a part of the head for the read after a deadline
		if err != nil {
			return 0, t.explain(err)
		}

		t.remaining = binary.BigEndian.Uint32(head)
		if _, err := t.reader.Discard(frameHead); err != nil {
			return 0, err
		}
	}

	t.arm()

	n, err := t.reader.Read(b[:min(uint64(len(b)), uint64(t.remaining))])
	t.remaining -= uint32(n)
	if err == io.EOF && t.remaining > 0 {
		err = io.ErrUnexpectedEOF
	}

	return n, t.explain(err)
}

// arm bounds the next read of the connection.
func (t *Tunnel) arm() {
	if t.reader.Buffered() >= frameHead {
		return // it will not wait
	}

	t.deadlines.Lock()
	defer t.deadlines.Unlock()

	if time.Since(t.silence) > armInterval {
		_ = t.Conn.SetReadDeadline(t.readDeadline()) // a failure shows at the read
	}
}

// readDeadline returns the owner's deadline or the end of the peer's silence, whichever comes
// first.
func (t *Tunnel) readDeadline() time.Time {
	t.silence = time.Now()

	limit := t.silence.Add(SilenceTimeout)
	if t.deadline.IsZero() || limit.Before(t.deadline) {
		return limit
	}

	return t.deadline
}

// explain tells the peer's silence from the owner's deadline.
func (t *Tunnel) explain(err error) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}

	t.deadlines.Lock()
	defer t.deadlines.Unlock()

	if t.deadline.IsZero() || time.Now().Before(t.deadline) {
		return ErrSilent
	}

	return err
}

// Write writes payload.
func (t *Tunnel) Write(b []byte) (count int, err error) {
	t.writing.Lock()
	defer t.writing.Unlock()

	for count < len(b) {
		part := b[count:min(len(b), count+maxFrame)]
		if err := t.writeFrame(part); err != nil {
			return count, err
		}

		count += len(part)
	}

	return count, nil
}

// writeFrame writes one frame. After a frame in part nothing can follow.
func (t *Tunnel) writeFrame(payload []byte) error {
	if t.failure != nil {
		return t.failure
	}

	binary.BigEndian.PutUint32(t.frame[:frameHead], uint32(len(payload)))
	t.active = true

	n, err := t.Conn.Write(append(t.frame[:frameHead], payload...))
	if err != nil && n > 0 {
		t.failure = err
	}

	return err
}

// SetDeadline sets the deadlines for reads and writes.
func (t *Tunnel) SetDeadline(deadline time.Time) error {
	return errors.Join(t.SetReadDeadline(deadline), t.SetWriteDeadline(deadline))
}

// SetReadDeadline sets the deadline for reads, which end earlier if the peer is silent.
func (t *Tunnel) SetReadDeadline(deadline time.Time) error {
	t.deadlines.Lock()
	defer t.deadlines.Unlock()

	t.deadline = deadline
	return t.Conn.SetReadDeadline(t.readDeadline())
}

// CloseWrite ends the stream to the peer.
func (t *Tunnel) CloseWrite() error {
	t.writing.Lock()
	defer t.writing.Unlock()

	if c, ok := t.Conn.(writeCloser); ok {
		return c.CloseWrite()
	}

	return nil
}

// Close closes the connection.
func (t *Tunnel) Close() error {
	t.closing.Do(func() { close(t.done) })
	return t.Conn.Close()
}
