package standalone

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/socle-dev/socle/internal/httpx"
)

// probeTimeout is the timeout for /live and /ready.
const probeTimeout = 2 * time.Second

// routes passes requests to the API and copies the trace header into the response.
func (s *Server) routes() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := s.current.Load()
		if values := r.Header.Values(now.traceHeader); now.traceHeader != "" && len(values) > 0 {
			w.Header()[http.CanonicalHeaderKey(now.traceHeader)] = values
		}

		request := httpx.From(r.Context())
		switch {
		case r.URL.Path == "/":
			request.Route = "/"
		case strings.HasPrefix(r.URL.Path, "/rpc/"):
			request.Route = "/rpc/{function}"
		default:
			request.Route = "/{relation}"
		}

		now.api.ServeHTTP(w, r)
	})
}

// writePanic responds for a handler that panicked.
func writePanic(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = io.WriteString(w, `{"code":"PGRSTX00","message":"Internal server error","details":null,"hint":null}`)
}

func newHTTPServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       60 * time.Second,
		WriteTimeout:      statementTimeout + time.Minute,
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// adminRoutes are the endpoints for monitoring.
func (s *Server) adminRoutes() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pgrst_db_pool_max", Help: "Maximum number of connections."},
			func() float64 { return float64(s.pool.Stat().MaxConns()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "pgrst_db_pool_available", Help: "Connections that are idle or can still be opened.",
		},
			func() float64 { return float64(s.pool.Stat().MaxConns() - s.pool.Stat().AcquiredConns()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "pgrst_db_pool_timeouts_total", Help: "Requests that timed out waiting for a connection.",
		},
			func() float64 { return float64(s.pool.Stat().CanceledAcquireCount()) }))

	return httpx.Paths{
		"/metrics": promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP,
		"/live": func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
			defer cancel()

			if !s.live(ctx) {
				w.WriteHeader(http.StatusInternalServerError)
			}
		},
		"/ready": func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
			defer cancel()

			if _, err := s.current.Load().cache.Get(ctx); err != nil || s.pool.Ping(ctx) != nil {
				w.WriteHeader(http.StatusServiceUnavailable)
			} else if !s.live(ctx) {
				w.WriteHeader(http.StatusInternalServerError)
			}
		},
		"/config": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(w, s.current.Load().Config.String())
		},
		"/schema_cache": func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
			defer cancel()

			c, err := s.current.Load().cache.Get(ctx)
			if err != nil {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}

			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(newShownCatalog(c)) // fails only if the client is gone
		},
	}
}

// live reports whether the server accepts connections.
func (s *Server) live(ctx context.Context) bool {
	at := s.listener.Addr()
	conn, err := (&net.Dialer{}).DialContext(ctx, at.Network(), at.String()) // [::] and 0.0.0.0 mean this machine
	if err != nil {
		return false
	}

	_ = conn.Close() // only a probe
	return true
}

// listenerURL returns a listener's URL for clients on the same machine, or unix: and a path for a
// socket.
func listenerURL(l net.Listener) string {
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return "unix:" + l.Addr().String()
	}
	if addr.IP.IsUnspecified() {
		return "http://" + net.JoinHostPort("localhost", strconv.Itoa(addr.Port))
	}

	return "http://" + addr.String()
}
