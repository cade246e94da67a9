package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/socle-dev/socle/internal/httpx"
)

// profiles are the Go runtime's profiles beside CPU and execution. The command line is none of
// them: net/http/pprof shows it too.
var profiles = []string{"allocs", "block", "goroutine", "heap", "mutex", "threadcreate"}

// metrics measures requests and serves the metrics and profiles on a separate address. Without an
// address, and unless package telemetry exports the registry, it does nothing.
type metrics struct {
	listener net.Listener // nil: no address
	http     *http.Server
	registry *prometheus.Registry // nil: neither served nor exported
	requests *prometheus.HistogramVec
}

func newMetrics(addr string, registry *prometheus.Registry, hasExporter bool) (*metrics, error) {
	if addr == "" && !hasExporter {
		return &metrics{}, nil
	}

	m := &metrics{registry: registry, requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "socle_http_request_duration_seconds", Help: "Duration of requests, by route and status.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
	}, []string{"route", "status"})}

	registry.MustRegister(m.requests, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	if addr == "" {
		return m, nil
	}

	var err error
	if m.listener, err = net.Listen("tcp", addr); err != nil {
		return nil, fmt.Errorf("listen for metrics: %w", err)
	}

	paths := httpx.Paths{
		"/metrics":             promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP,
		"/debug/pprof/":        pprof.Index,
		"/debug/pprof/profile": pprof.Profile,
		"/debug/pprof/trace":   pprof.Trace,
	}
	for _, name := range profiles {
		paths["/debug/pprof/"+name] = pprof.Handler(name).ServeHTTP
	}

	m.http = &http.Server{
		Handler:           paths,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      60 * time.Second,
	}

	m.http.SetKeepAlivesEnabled(false) // one request per connection, see httpx.StrictListener

	return m, nil
}

// run serves the metrics until ctx ends.
func (m *metrics) run(ctx context.Context) error {
	if m.listener == nil {
		return nil
	}

	stop := context.AfterFunc(ctx, func() { _ = m.http.Close() })
	defer stop()

	if err := m.http.Serve(httpx.StrictListener(m.listener)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}

	return nil
}

// instrument wraps a handler with the duration histogram.
func (m *metrics) instrument(next http.Handler) http.Handler {
	if m.registry == nil {
		return next
	}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		next.ServeHTTP(w, r)

		if httpx.Status(w) == http.StatusSwitchingProtocols {
			return // the duration is a session's
		}

		m.requests.WithLabelValues(httpx.From(r.Context()).Route, strconv.Itoa(httpx.Status(w))).
			Observe(time.Since(start).Seconds())
	})
}
