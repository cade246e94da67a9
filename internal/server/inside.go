package server

import (
	"context"
	"net"
	"net/netip"
	"sync"
)

// insideListener accepts connections from this process: those of functions to their own project.
type insideListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newInsideListener() *insideListener {
	return &insideListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// connect returns a connection to the server, which sees client as its address.
func (l *insideListener) connect(ctx context.Context, client netip.Addr) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- insideConn{far, net.TCPAddrFromAddrPort(netip.AddrPortFrom(client, 0))}:
		return near, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements [net.Listener].
func (l *insideListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (l *insideListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements [net.Listener].
func (l *insideListener) Addr() net.Addr { return &net.TCPAddr{} }

// insideConn is a connection with the address of its client.
type insideConn struct {
	net.Conn
	remote net.Addr
}

func (c insideConn) RemoteAddr() net.Addr { return c.remote }
