package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
)

// Upgrade asks the server to switch a connection to another protocol, and returns the connection.
// It fails like [Client.Do], but never retries. The context bounds the request, not the connection.
func (c *Client) Upgrade(ctx context.Context, path, protocol string) (net.Conn, error) {
	var conn net.Conn
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) { conn = i.Conn },
	})

	// A transport of its own: HTTP/2 knows no upgrade, and no other request may use the connection.
	base := http.DefaultTransport
	upgrader := Client{URL: c.URL, Token: c.Token, UserAgent: c.UserAgent, HTTP: &http.Client{}}
	if c.HTTP != nil {
		upgrader.HTTP.CheckRedirect = c.HTTP.CheckRedirect
		if c.HTTP.Transport != nil {
			base = c.HTTP.Transport
		}
	}

	transport, ok := base.(*http.Transport)
	if !ok {
		return nil, errors.New("upgrade a connection: the client's transport is not an *http.Transport")
	}

	transport = transport.Clone()
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP1(true)
	upgrader.HTTP.Transport = transport

	res, err := upgrader.Open(ctx, Request{
		Method: http.MethodGet, Path: path, Header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {protocol}},
	})
	if err != nil {
		transport.CloseIdleConnections()
		return nil, err
	}

	body, ok := res.Body.(io.ReadWriteCloser)
	if res.StatusCode != http.StatusSwitchingProtocols || !ok {
		return nil, errors.Join(
			errors.New("the server, or a proxy before it, does not upgrade connections to "+protocol), res.Body.Close())
	}

	return &upgradedConn{conn, body}, nil
}

// upgradedConn is a connection with the stream after the response of its upgrade.
type upgradedConn struct {
	net.Conn
	stream io.ReadWriteCloser
}

func (c *upgradedConn) Read(b []byte) (int, error)  { return c.stream.Read(b) }
func (c *upgradedConn) Write(b []byte) (int, error) { return c.stream.Write(b) }
func (c *upgradedConn) Close() error                { return c.stream.Close() }

// CloseWrite ends the stream to the server, if the connection can end one direction.
func (c *upgradedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
