package pgwire

import (
	"io"
	"net"
	"time"
)

// lingerTimeout bounds [Linger].
const lingerTimeout = time.Second

// writeCloser is a connection that can end its stream to the peer and still read.
type writeCloser interface{ CloseWrite() error }

// Linger ends the stream to the peer and discards further bytes from it, until it leaves or for a
// second. Call it before closing a connection whose peer may be writing: a close with bytes unread
// resets the connection, and a peer whose write fails may never read the last message.
func Linger(conn net.Conn) {
	if c, ok := conn.(writeCloser); ok {
		_ = c.CloseWrite() // the peer may be gone
	}
	if err := conn.SetReadDeadline(time.Now().Add(lingerTimeout)); err == nil {
		_, _ = io.Copy(io.Discard, conn)
	}
}
