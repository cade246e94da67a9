// Package telemetry exports traces, metrics and logs to an OpenTelemetry collector, by OTLP over
// HTTP or gRPC. The settings are OpenTelemetry's own environment variables. Without an address for
// a collector nothing runs, and requests cost nothing.
//
// It starts request spans, and gives package queue the job tracer. Package trace starts those
// within. redact.go has the span attributes that leave the server.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/contrib/bridges/otelslog"
	prometheusbridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

const (
	flushTimeout = 5 * time.Second // timeout for the last export, when the server stops
	warnInterval = time.Minute     // between warnings about failed exports
)

// Telemetry exports the signals that have a collector's address. It is safe for concurrent use.
type Telemetry struct {
	traces  *sdktrace.TracerProvider // nil: no address for traces
	metrics *metric.MeterProvider    // nil: no address for metrics
	logs    *sdklog.LoggerProvider   // nil: no address for logs

	lostSpans atomic.Int64
}

// New returns the telemetry that the environment asks for. The gatherer provides the metrics. log
// gets export failures, which are not exported themselves.
func New(ctx context.Context, version string, metrics prometheus.Gatherer, log *slog.Logger) (*Telemetry, error) {
	t := &Telemetry{}
	protocols, err := readProtocols()
	if err != nil || len(protocols) == 0 {
		return t, err
	}

	attributes, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "socle"),
		attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil {
		return t, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}

	// OpenTelemetry has one error handler for the process, which also gets settings errors.
	invalid := make(chan error, 1)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		select {
		case invalid <- err:
		default:
		}
	}))

	if err := t.start(ctx, protocols, attributes, metrics); err != nil {
		return t, errors.Join(err, t.shutdown(ctx))
	}

	select {
	case err := <-invalid:
		return t, errors.Join(fmt.Errorf("settings of OpenTelemetry: %w", err), t.shutdown(ctx))
	default:
	}

	otel.SetErrorHandler(&warnings{log: log})

	return t, nil
}

// start starts the exports for signals that have a protocol.
func (t *Telemetry) start(
	ctx context.Context, protocols map[string]string, r *resource.Resource, metrics prometheus.Gatherer,
) error {
	if protocol := protocols[signalTraces]; protocol != "" {
		exporter, err := newSpanExporter(ctx, protocol)
		if err != nil {
			return err
		}

		t.traces = sdktrace.NewTracerProvider(sdktrace.WithResource(r),
			sdktrace.WithBatcher(redactingExporter{SpanExporter: exporter, lost: &t.lostSpans}))
	}

	if protocol := protocols[signalMetrics]; protocol != "" {
		exporter, err := newMetricExporter(ctx, protocol)
		if err != nil {
			return err
		}

		producer := prometheusbridge.NewMetricProducer(prometheusbridge.WithGatherer(metrics))
		t.metrics = metric.NewMeterProvider(metric.WithResource(r),
			metric.WithReader(metric.NewPeriodicReader(exporter, metric.WithProducer(producer))))
	}

	if protocol := protocols[signalLogs]; protocol != "" {
		exporter, err := newLogExporter(ctx, protocol)
		if err != nil {
			return err
		}

		t.logs = sdklog.NewLoggerProvider(sdklog.WithResource(r),
			sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter)))
	}

	return nil
}

// LostSpans returns the number of spans that the collector did not take.
func (t *Telemetry) LostSpans() int64 { return t.lostSpans.Load() }

// ExportsMetrics reports whether the metrics are exported.
func (t *Telemetry) ExportsMetrics() bool { return t.metrics != nil }

// Tracer returns the job tracer. Without an address for traces it records nothing.
func (t *Telemetry) Tracer() trace.Tracer {
	if t.traces == nil {
		return noop.Tracer{}
	}
	return t.traces.Tracer("socle")
}

// LogHandler returns a handler that also exports the records that h takes.
func (t *Telemetry) LogHandler(h slog.Handler) slog.Handler {
	if t.logs == nil {
		return h
	}

	return exportingHandler{h, otelslog.NewHandler("socle", otelslog.WithLoggerProvider(t.logs))}
}

// Middleware returns a handler whose requests are spans, except health checks. baseURL has the
// address of the server: that in a request is of the client's choice. Package httpx names the spans
// once the route is known.
func (t *Telemetry) Middleware(next http.Handler, baseURL string) http.Handler {
	if t.traces == nil {
		return next
	}

	host := baseURL
	if u, err := url.Parse(baseURL); err == nil {
		host = u.Host
	}

	return otelhttp.NewHandler(next, "HTTP", otelhttp.WithTracerProvider(t.traces),
		otelhttp.WithMeterProvider(noopmetric.MeterProvider{}), otelhttp.WithPropagators(propagation.TraceContext{}),
		otelhttp.WithServerName(host),
		otelhttp.WithSpanNameFormatter(func(operation string, _ *http.Request) string { return operation }),
		otelhttp.WithFilter(func(r *http.Request) bool { return r.URL.Path != "/healthz" && r.URL.Path != "/readyz" }))
}

// Run exports until ctx ends, and then flushes the queues.
func (t *Telemetry) Run(ctx context.Context) error {
	<-ctx.Done()

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()

	if err := t.shutdown(ctx); err != nil {
		otel.Handle(err)
	}

	return nil
}

// shutdown flushes the queues and stops.
func (t *Telemetry) shutdown(ctx context.Context) error {
	var errs []error
	if t.traces != nil {
		errs = append(errs, t.traces.Shutdown(ctx))
	}
	if t.metrics != nil {
		errs = append(errs, t.metrics.Shutdown(ctx))
	}
	if t.logs != nil {
		errs = append(errs, t.logs.Shutdown(ctx))
	}

	return errors.Join(errs...)
}
