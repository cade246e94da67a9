package standalone

import (
	"context"
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

	"socle/internal/httpx"
	"socle/internal/rest"
)

const probeTime = 2 * time.Second // in which whoever asks for /live or /ready gets an answer

// routes passes requests on, with the header that an answer repeats.
func routes(api *rest.Server, traceHeader string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if values := r.Header.Values(traceHeader); traceHeader != "" && len(values) > 0 {
			w.Header()[http.CanonicalHeaderKey(traceHeader)] = values
		}
		known := httpx.From(r.Context())
		switch {
		case r.URL.Path == "/":
			known.Route = "/"
		case strings.HasPrefix(r.URL.Path, "/rpc/"):
			known.Route = "/rpc/{function}"
		default:
			known.Route = "/{relation}"
		}
		api.ServeHTTP(w, r)
	})
}

// panicked answers for a handler that did not.
func panicked(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = io.WriteString(w, `{"code":"PGRSTX00","message":"Internal server error","details":null,"hint":null}`)
}

func newHTTPServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       60 * time.Second,
		WriteTimeout:      longest + time.Minute,
		IdleTimeout:       120 * time.Second,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// adminRoutes answers those who watch.
func (s *Server) adminRoutes() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pgrst_db_pool_max", Help: "Connections at most."},
			func() float64 { return float64(s.pool.Stat().MaxConns()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "pgrst_db_pool_available", Help: "Connections that no request uses, or that could be opened."},
			func() float64 { return float64(s.pool.Stat().MaxConns() - s.pool.Stat().AcquiredConns()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "pgrst_db_pool_timeouts_total", Help: "Requests that gave up waiting for a connection."},
			func() float64 { return float64(s.pool.Stat().CanceledAcquireCount()) }))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), probeTime)
		defer cancel()
		if !s.live(ctx) {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), probeTime)
		defer cancel()
		if _, err := s.cache.Get(ctx); err != nil || s.pool.Ping(ctx) != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		} else if !s.live(ctx) {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	return mux
}

// live reports whether requests are taken.
func (s *Server) live(ctx context.Context) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		return false
	}
	_ = conn.Close() // nothing was said
	return true
}

// urlOf returns the address at which a listener is reached from its own machine.
func urlOf(l net.Listener) string {
	addr := l.Addr().(*net.TCPAddr)
	if addr.IP.IsUnspecified() {
		return "http://" + net.JoinHostPort("localhost", strconv.Itoa(addr.Port))
	}
	return "http://" + addr.String()
}
