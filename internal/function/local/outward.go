package local

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
)

// serveOutward serves a request of a function to another host.
func (s *Server) serveOutward(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect {
		s.tunnel(w, r)
		return
	}

	proxy := &httputil.ReverseProxy{FlushInterval: -1, ErrorLog: discardLog,
		Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true,
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
				return s.dial(ctx, address)
			}},
		Rewrite:      func(p *httputil.ProxyRequest) { p.Out.Host = p.In.Host },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { refuse(w, err) }}
	proxy.ServeHTTP(w, r)
}

// refuse answers a request to a host that can't be reached. The developer may know why.
func refuse(w http.ResponseWriter, err error) { http.Error(w, err.Error(), http.StatusForbidden) }

// tunnel connects a function to another host.
func (s *Server) tunnel(w http.ResponseWriter, r *http.Request) {
	far, err := s.dial(r.Context(), r.Host)
	if err != nil {
		refuse(w, err)
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
		_ = far.Close()
	})
	copies.Go(func() {
		_, _ = io.Copy(near, far)
		_ = near.Close()
	})
	copies.Wait()
}

// dial connects to a host that a function names: the server of its project, or what functions reach
// on a server, too.
func (s *Server) dial(ctx context.Context, address string) (net.Conn, error) {
	if address == s.Project {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}

	return s.Outbound.Connect(ctx, address)
}
