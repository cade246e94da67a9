package httpx

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

const handshakeTimeout = 10 * time.Second

// StrictTLSListener returns l with connections of TLS, by their protocol: HTTP/2 as net/http knows
// it, and HTTP/1.1 with the checks of [StrictListener], which HTTP/2 has no need of. A connection
// of another protocol has ended with its handshake.
//
// net/http tells HTTP/2 by the type *tls.Conn after a handshake, so that is done here.
func StrictTLSListener(l net.Listener, c *tls.Config) net.Listener {
	ctx, cancel := context.WithCancel(context.Background())
	t := &tlsListener{Listener: l, config: c, done: ctx.Done(), cancel: cancel, ready: make(chan accepted)}
	go t.run(ctx)

	return t
}

type tlsListener struct {
	net.Listener
	config *tls.Config
	done   <-chan struct{} // closed by cancel
	cancel context.CancelFunc
	ready  chan accepted
}

// accepted is the result of an Accept.
type accepted struct {
	conn net.Conn
	err  error
}

// run accepts connections until the listener is closed.
func (l *tlsListener) run(ctx context.Context) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			if l.deliver(accepted{err: err}); errors.Is(err, net.ErrClosed) {
				l.cancel()
				return
			}
			continue
		}

		go l.shakeHands(ctx, conn)
	}
}

// shakeHands delivers a connection once its protocol is negotiated.
func (l *tlsListener) shakeHands(ctx context.Context, raw net.Conn) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()

	conn := tls.Server(raw, l.config)
	if conn.HandshakeContext(ctx) != nil {
		_ = raw.Close()
		return
	}

	delivered := false
	switch conn.ConnectionState().NegotiatedProtocol {
	case "h2":
		delivered = l.deliver(accepted{conn: conn})
	case "http/1.1", "":
		delivered = l.deliver(accepted{conn: &strictConn{Conn: conn}})
	}
	if !delivered {
		_ = conn.Close()
	}
}

// deliver passes a result to Accept, and reports whether that took it.
func (l *tlsListener) deliver(a accepted) bool {
	select {
	case l.ready <- a:
		return true
	case <-l.done:
		return false
	}
}

// Accept returns the next connection that is ready.
func (l *tlsListener) Accept() (net.Conn, error) {
	select {
	case a := <-l.ready:
		return a.conn, a.err
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close ends the handshakes under way too.
func (l *tlsListener) Close() error {
	l.cancel()
	return l.Listener.Close()
}
