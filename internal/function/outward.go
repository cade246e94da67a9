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
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/outbound"
)

const (
	maxConnections = 1024 // all functions to other hosts
	dialTimeout    = 10 * time.Second
	// lingerTimeout bounds the silence of a host that was told that no more bytes come.
	lingerTimeout = 10 * time.Second
)

// discardLog takes what the proxy says about requests of functions.
var discardLog = log.New(io.Discard, "", 0)

// mailPorts are ports by which others would be sent mail in the server's name.
var mailPorts = map[uint64]bool{25: true, 465: true, 587: true}

// Hosts that only functions know.
const (
	selfHost     = "socle.internal"    // the server
	databaseHost = "db.socle.internal" // the project's database

	selfOrigin      = "http://" + selfHost
	selfAddress     = selfHost + ":80"
	databaseAddress = databaseHost + ":5432"

	// DatabaseURL is the address of a project's database in its functions. The connection itself
	// says whose it is, so the password is none.
	DatabaseURL = "postgresql://postgres:postgres@" + databaseAddress + "/postgres"
)

// Self has the ways from functions to the server.
type Self struct {
	URL string // the server's public address without trailing slash; "": unknown

	// Connect returns a connection to the server, which takes the address for the client's.
	Connect func(ctx context.Context, client netip.Addr) (net.Conn, error)

	// ServeDatabase serves a function's PostgreSQL client until it leaves, and closes the
	// connection.
	ServeDatabase func(conn net.Conn, project uuid.UUID, function string)
}

// serveOutward serves a request of a worker's process to another host.
func (s *Service) serveOutward(w http.ResponseWriter, r *http.Request, owner *worker) {
	lease := s.connections.TryAcquire(owner.project.Key(r.Context()), 1)
	if lease == nil {
		http.Error(w, "too many connections", http.StatusServiceUnavailable)
		return
	}
	defer lease.Release()

	ctx, cancel := owner.untilStopped(r.Context())
	defer cancel()

	r = r.WithContext(ctx)
	if r.Method == http.MethodConnect {
		s.tunnel(w, r, owner)
		return
	}

	s.forward(w, r, owner)
}

// untilStopped returns a context that ends with the process, too.
func (w *worker) untilStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-w.stopped:
			cancel()
		case <-ctx.Done():
		}
	}()

	return ctx, cancel
}

// tunnel connects the process to another host, until both have ended or the context of r has.
func (s *Service) tunnel(w http.ResponseWriter, r *http.Request, owner *worker) {
	far, err := s.dial(r.Context(), owner, r.Host)
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

	relay(r.Context(), near, buffered, far)
}

// relay copies buffered to far, and far to near. It closes both when ctx ends.
func relay(ctx context.Context, near net.Conn, buffered io.Reader, far net.Conn) {
	stop := context.AfterFunc(ctx, func() {
		_ = near.Close()
		_ = far.Close()
	})
	defer stop()

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

// closeWrite tells the peer that no more bytes come, or closes a connection that can't. A process
// that ends closes both directions.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}

	_ = c.Close()
}

// forward sends a plain HTTP request.
func (s *Service) forward(w http.ResponseWriter, r *http.Request, owner *worker) {
	if r.URL.Scheme != "http" {
		http.Error(w, "unknown scheme", http.StatusBadRequest)
		return
	}

	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return s.dial(ctx, owner, address)
		}}
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, ErrorLog: discardLog,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.Host = p.In.Host // Rewrite has removed what the function says of itself
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, refusal(err), http.StatusForbidden)
		}}
	proxy.ServeHTTP(w, r)
}

// clientAddress returns the address that stands for a project where it calls the server, so that
// one project does not use up the limits of others. It is in a reserved network that no client has,
// and that no operator names as a proxy's.
func clientAddress(project uuid.UUID) netip.Addr {
	bytes := [16]byte{0x01}
	copy(bytes[1:], project[:])

	return netip.AddrFrom16(bytes)
}

// dial connects to the address that a function names: the server, the project's database, or a
// public one. A port is a number, which can be written in several ways.
func (s *Service) dial(ctx context.Context, owner *worker, named string) (net.Conn, error) {
	host, text, err := net.SplitHostPort(named)
	if err != nil {
		return nil, outbound.ErrNetwork
	}

	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, outbound.ErrNetwork
	}

	address := net.JoinHostPort(host, strconv.FormatUint(port, 10))
	switch {
	case address == selfAddress, address == s.publicAddress():
		return s.Self.Connect(ctx, clientAddress(owner.project.UUID))
	case address == databaseAddress:
		near, far := net.Pipe()
		s.open.Go(func() { s.Self.ServeDatabase(far, owner.project.UUID, owner.key.name) })

		return near, nil
	case mailPorts[port] && !owner.state.MailPorts:
		return nil, outbound.ErrNetwork
	}

	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()

	conn, err := s.Outbound.Connect(ctx, address)
	if err != nil {
		return nil, err
	}

	return &meteredConn{Conn: conn, rate: s.rates.of(owner.project.UUID), ended: owner.stopped}, nil
}

// publicAddress returns the host and port of the server's own URL if that is plain HTTP. By HTTPS a
// tunnel leads to the public address, since its content is not the server's to see.
func (s *Service) publicAddress() string {
	public, err := url.Parse(s.Self.URL)
	switch {
	case err != nil, public.Scheme != "http":
		return ""
	case public.Port() == "":
		return public.Host + ":80"
	}

	return public.Host
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
