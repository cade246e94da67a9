// Package outbound sends HTTP requests to addresses that tenants choose, such as identity
// providers'.
//
// A tenant must not reach the server's networks through it. The address is checked when the
// connection is opened, after name resolution, so neither a DNS name nor an unusual notation leads
// to a private network. Redirects to another host are errors. Bytes, time and concurrency are
// bounded.
package outbound

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/socle-dev/socle/internal/fair"
)

const (
	// Timeout bounds a request with redirects and the response.
	Timeout = 10 * time.Second
	// MaxResponse is the maximum response body size in bytes, but see [Client.Within].
	MaxResponse = 256 << 10

	maxHeader    = 64 << 10
	maxRedirects = 3
	// memory bounds the responses to all requests from a client, and so their number: 64 with
	// MaxResponse.
	memory = 64 * MaxResponse
)

// Failures from [Client.Do].
var (
	ErrNetwork  = errors.New("address in a network that requests of tenants may not reach")
	ErrRedirect = errors.New("redirect to another host")
	ErrTooLarge = errors.New("response is too large")
)

// Client sends requests. It is safe for concurrent use.
type Client struct {
	places        *fair.Pool
	timeout       time.Duration
	maxResponse   int64 // bytes
	excerpts      bool  // a longer response is cut, and so is one that breaks off
	secure, plain *http.Client
	dialer        *net.Dialer // dialer behind [Client.Dial]
}

// New returns a client that reaches public addresses by HTTPS, and addresses in the allowed
// networks by HTTPS and HTTP.
func New(networks []netip.Prefix) *Client {
	internet := newDialer(func(a netip.Addr) bool { return isPublic(a) || contains(networks, a) })
	return &Client{
		places:      newPlaces("outbound_requests", MaxResponse),
		timeout:     Timeout,
		maxResponse: MaxResponse,
		secure:      newHTTPClient(internet),
		plain:       newHTTPClient(newDialer(func(a netip.Addr) bool { return contains(networks, a) })),
		dialer:      internet,
	}
}

// Pools returns the pools that accounts share, for metrics.
func (c *Client) Pools() []*fair.Pool { return []*fair.Pool{c.places} }

// newPlaces returns the pool for a client's requests. A network in a project gets a quarter of the
// places, an account half.
func newPlaces(name string, maxResponse int64) *fair.Pool {
	places := memory / maxResponse
	return fair.New(fair.Config{Name: name, Capacity: places, PerAccount: places / 2, PerPart: places / 4,
		Reserve: places / 4, Waiting: int(4 * places), Revocable: true})
}

// Within returns a client for responses up to n bytes. Its requests neither wait for c's nor delay
// them. name is the pool's name in metrics.
func (c *Client) Within(n int64, name string) *Client {
	client := *c
	client.places, client.maxResponse = newPlaces(name, n), n

	return &client
}

// Excerpts returns a client as [Client.Within] does that keeps the first n bytes of a response. One
// whose body is longer or breaks off is no failure.
func (c *Client) Excerpts(n int64, name string) *Client {
	client := c.Within(n, name)
	client.excerpts = true

	return client
}

// Via returns a client whose requests share c's places and bounds, but go by t, within another
// timeout.
func (c *Client) Via(t http.RoundTripper, timeout time.Duration) *Client {
	client := *c
	client.timeout = timeout
	client.secure = &http.Client{Transport: t, CheckRedirect: checkRedirect}
	client.plain = client.secure

	return &client
}

// Dial connects to an address for a protocol other than HTTP. It fails with ErrNetwork, or a
// connection error. Reads from the connection fail with ErrTooLarge beyond MaxResponse.
func (c *Client) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}

	return &boundedConn{conn, MaxResponse}, nil
}

// Connect connects to an address for a tenant's own use: neither bytes nor time are bounded after
// that. It fails with ErrNetwork, or a connection error.
func (c *Client) Connect(ctx context.Context, address string) (net.Conn, error) {
	return c.dialer.DialContext(ctx, "tcp", address)
}

// boundedConn is a connection from which at most some bytes can be read.
type boundedConn struct {
	net.Conn
	remaining int
}

// Read reads at most the bytes that are left.
func (c *boundedConn) Read(p []byte) (int, error) {
	if c.remaining <= 0 {
		return 0, ErrTooLarge
	}

	n, err := c.Conn.Read(p[:min(len(p), c.remaining)])
	c.remaining -= n

	return n, err
}

// newDialer returns a dialer that connects to admitted addresses only.
func newDialer(admits func(netip.Addr) bool) *net.Dialer {
	return &net.Dialer{
		Timeout: Timeout,
		Control: func(_, address string, _ syscall.RawConn) error {
			a, err := netip.ParseAddrPort(address)
			if err != nil || !admits(a.Addr().Unmap()) {
				return ErrNetwork
			}

			return nil
		},
	}
}

// newHTTPClient returns a client that connects by a dialer. It uses no proxy from the environment,
// keeps no connection and accepts no compression.
func newHTTPClient(dialer *net.Dialer) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, DisableKeepAlives: true, DisableCompression: true,
			TLSHandshakeTimeout: Timeout, MaxResponseHeaderBytes: maxHeader, ForceAttemptHTTP2: true,
		},
		CheckRedirect: checkRedirect,
	}
}

func checkRedirect(r *http.Request, via []*http.Request) error {
	first := via[0].URL
	if r.URL.Scheme != first.Scheme || r.URL.Host != first.Host || len(via) > maxRedirects {
		return ErrRedirect
	}

	return nil
}

// Response is a whole response.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Place is the right to send one request. It is given back by [Place.Do], or by [Place.Release].
type Place struct {
	client *Client
	lease  *fair.Lease
}

// Acquire waits for a place for a tenant's request. It fails with [fair.ErrBusy] or ctx's error.
func (c *Client) Acquire(ctx context.Context, tenant fair.Key) (*Place, error) {
	lease, err := c.places.Acquire(ctx, tenant, 1)
	if err != nil {
		return nil, err
	}

	return &Place{c, lease}, nil
}

// TryAcquire returns a place for a tenant's request if one is free, or nil.
func (c *Client) TryAcquire(tenant fair.Key) *Place {
	lease := c.places.TryAcquire(tenant, 1)
	if lease == nil {
		return nil
	}

	return &Place{c, lease}
}

// Release gives the place back, if it is not used.
func (p *Place) Release() { p.lease.Release() }

// Do sends a request for a tenant. It waits while too many requests are in flight, and is cancelled
// if another tenant needs its place more. It fails with ErrNetwork, ErrRedirect, ErrTooLarge,
// [fair.ErrBusy], or a connection error.
func (c *Client) Do(ctx context.Context, tenant fair.Key, r *http.Request) (Response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()

	p, err := c.Acquire(ctx, tenant)
	if err != nil {
		return Response{}, err
	}

	return p.Do(ctx, r)
}

// Do is [Client.Do] in the place, until ctx ends.
func (p *Place) Do(ctx context.Context, r *http.Request) (Response, error) {
	defer p.Release()

	ctx, stop := p.lease.Context(ctx)
	defer stop()

	c := p.client
	client := c.plain
	if r.URL.Scheme == "https" {
		client = c.secure
	}

	r = r.WithContext(ctx)
	r.Header.Set("User-Agent", "Socle")

	res, err := client.Do(r)
	if err != nil {
		return Response{}, cmp.Or(context.Cause(ctx), err)
	}
	defer res.Body.Close()

	var body bytes.Buffer
	n, err := io.Copy(&body, io.LimitReader(res.Body, c.maxResponse+1))
	switch {
	case c.excerpts:
		body.Truncate(int(min(n, c.maxResponse)))
	case err != nil:
		return Response{}, fmt.Errorf("read the response: %w", cmp.Or(context.Cause(ctx), err))
	case n > c.maxResponse:
		return Response{}, ErrTooLarge
	}

	return Response{Status: res.StatusCode, Header: res.Header, Body: body.Bytes()}, nil
}
