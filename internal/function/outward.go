package function

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/outbound"
)

const (
	maxConnections = 1024 // all functions to other hosts
	dialTimeout    = 10 * time.Second
)

// discardLog takes what the proxy says about requests of functions.
var discardLog = log.New(io.Discard, "", 0)

// closedPorts are ports by which others would be sent mail in the server's name.
var closedPorts = map[string]bool{"25": true, "465": true, "587": true}

// Self is the server's own address if that is plain HTTP. By HTTPS functions call their project as
// any client does, by its public address: in a tunnel nothing would tell the server whose call it
// is.
type Self struct {
	Host    string // host and port in the server's URL, as in localhost:8080; "": none
	Address string // where the server listens
}

// serveOutward serves a request of a worker's process to another host.
func (s *Service) serveOutward(w http.ResponseWriter, r *http.Request, owner *worker) {
	lease := s.connections.TryAcquire(owner.project.Key(r.Context()), 1)
	if lease == nil {
		http.Error(w, "too many connections", http.StatusServiceUnavailable)
		return
	}
	defer lease.Release()

	if r.Method == http.MethodConnect {
		s.tunnel(w, r)
		return
	}

	s.forward(w, r, owner)
}

// tunnel connects the process to another host.
func (s *Service) tunnel(w http.ResponseWriter, r *http.Request) {
	far, err := s.dial(r.Context(), r.Host)
	if err != nil {
		http.Error(w, refusal(err), http.StatusForbidden)
		return
	}
	defer far.Close()

	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer near.Close()

	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}

	var copies sync.WaitGroup
	copies.Go(func() {
		_, _ = io.Copy(far, buffered)
		closeWrite(far)
	})
	copies.Go(func() {
		_, _ = io.Copy(near, far)
		closeWrite(near)
	})
	copies.Wait()
}

// closeWrite tells the peer that no more bytes come. A process that ends closes both directions.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// forward sends a plain HTTP request.
func (s *Service) forward(w http.ResponseWriter, r *http.Request, owner *worker) {
	if r.URL.Scheme != "http" {
		http.Error(w, "unknown scheme", http.StatusBadRequest)
		return
	}

	self := s.Self.Host != "" && hostAndPort(r.URL) == s.Self.Host
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			if self {
				return new(net.Dialer).DialContext(ctx, "tcp", s.Self.Address)
			}

			return s.dial(ctx, address)
		}}
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, ErrorLog: discardLog,
		Rewrite: func(p *httputil.ProxyRequest) {
			// Rewrite has removed what the function says of itself. The server must not take it for
			// a program of its operator, and one project must not use up the limits of others.
			p.Out.Host = p.In.Host
			if self {
				p.Out.Header.Set("X-Forwarded-For", address(owner.project.UUID).String())
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, refusal(err), http.StatusForbidden)
		}}
	proxy.ServeHTTP(w, r)
}

// address returns the address that stands for a project where it calls the server: one of a private
// network, which no client has.
func address(project uuid.UUID) netip.Addr {
	const private = 0xfd
	bytes := [16]byte{private}
	copy(bytes[1:], project[:])

	return netip.AddrFrom16(bytes)
}

func hostAndPort(u *url.URL) string {
	if u.Port() == "" {
		return u.Host + ":80"
	}

	return u.Host
}

// dial connects to a public address that the function names.
func (s *Service) dial(ctx context.Context, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil || closedPorts[port] {
		return nil, outbound.ErrNetwork
	}

	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()

	return s.Outbound.Connect(ctx, address)
}

// refusal returns what a function may know of a failed connection.
func refusal(err error) string {
	switch {
	case errors.Is(err, outbound.ErrNetwork):
		return "the address is closed to functions"
	case errors.Is(err, fair.ErrBusy):
		return "too many connections"
	}

	return "the host does not answer"
}
