package httpx

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

const handshakeTimeout = 10 * time.Second

// StrictTLSListener returns l with TLS connections by their protocol: HTTP/2 as net/http knows it,
// and HTTP/1.1 with the checks from [StrictListener], which HTTP/2 does not need. A connection with
// another protocol is closed after its handshake.
//
// net/http detects HTTP/2 by the type *tls.Conn after a handshake, so the handshake is done here.
func StrictTLSListener(l net.Listener, c *tls.Config) net.Listener {
	ctx, cancel := context.WithCancel(context.Background())
	t := &tlsListener{Listener: l, config: c, done: ctx.Done(), cancel: cancel, ready: make(chan acceptResult)}
	go t.acceptAll(ctx)

	return t
}

type tlsListener struct {
	net.Listener
	config *tls.Config
	done   <-chan struct{} // closed by cancel
	cancel context.CancelFunc
	ready  chan acceptResult
}

// acceptResult is a connection or an error for Accept.
type acceptResult struct {
	conn net.Conn
	err  error
}

// acceptAll accepts connections until the listener is closed.
func (l *tlsListener) acceptAll(ctx context.Context) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			if l.deliver(acceptResult{err: err}); errors.Is(err, net.ErrClosed) {
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

	ok := false
	switch conn.ConnectionState().NegotiatedProtocol {
	case "h2":
		ok = l.deliver(acceptResult{conn: conn})
	case "http/1.1", "":
		ok = l.deliver(acceptResult{conn: &strictConn{Conn: conn}})
	}
	if !ok {
		_ = conn.Close()
	}
}

// deliver passes a result to Accept, and reports whether Accept took it.
func (l *tlsListener) deliver(a acceptResult) bool {
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

// Close also aborts handshakes in flight.
func (l *tlsListener) Close() error {
	l.cancel()
	return l.Listener.Close()
}
