package telemetry

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// start returns the telemetry of an environment. Tests of this package are not parallel: the SDK
// reads the environment of the process.
func start(t *testing.T, environment map[string]string) (*Telemetry, error) {
	t.Helper()

	for name, value := range environment {
		t.Setenv(name, value)
	}

	registry := prometheus.NewRegistry()
	requests := prometheus.NewCounter(prometheus.CounterOpts{Name: "requests_total", Help: "Requests."})
	registry.MustRegister(requests)
	requests.Add(3)

	all, err := New(t.Context(), "1.2.3", registry, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = all.shutdown(t.Context()) }) // the context has ended

	return all, err
}

// flush ends the telemetry, which exports its queues.
func flush(t *testing.T, all *Telemetry) {
	t.Helper()

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := all.Run(ended); err != nil {
		t.Fatal(err)
	}
}

// TestExport exports a span, a metric and a record by each protocol, and nothing of the span that a
// user wrote.
func TestExport(t *testing.T) {
	r := newReceiver(t)
	for protocol, address := range map[string]string{protocolGRPC: r.grpcURL, "http/protobuf": r.httpURL} {
		t.Run(protocol, func(t *testing.T) { testExport(t, r, protocol, address) })
	}
}

func testExport(t *testing.T, r *receiver, protocol, address string) {
	t.Helper()

	clear(r.received)
	clear(r.authorizations)
	all, err := start(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": address,
		"OTEL_EXPORTER_OTLP_PROTOCOL": protocol, "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20token",
		"OTEL_SERVICE_NAME": "newspaper", "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test%20one"})
	if err != nil {
		t.Fatal(err)
	}

	state, err := trace.ParseTraceState("vendor=a-secret")
	if err != nil {
		t.Fatal(err)
	}

	client := trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state}))
	ctx, span := all.Tracer().Start(client, "job x", trace.WithLinks(trace.LinkFromContext(client)),
		trace.WithAttributes(attribute.String("socle.project", "p1"), attribute.String("url.path", "/a secret"),
			attribute.String("db.query.text", "select 'a secret'")))
	span.RecordError(errors.New("a secret"))
	span.SetStatus(codes.Error, "a secret")
	span.End()

	slog.New(all.LogHandler(slog.DiscardHandler)).Info("not taken by the local handler")
	slog.New(all.LogHandler(slog.NewTextHandler(io.Discard, nil))).InfoContext(ctx, "a record", "key", "value")
	flush(t, all)

	for signal, want := range map[string][]string{
		signalTraces:  {"newspaper", "1.2.3", "test one", "job x", "p1", "links:", "STATUS_CODE_ERROR"},
		signalMetrics: {"newspaper", "requests_total", "as_double:3"},
		signalLogs:    {"newspaper", "a record", "value", "trace_id:"},
	} {
		for _, text := range want {
			if !strings.Contains(r.received[signal], text) {
				t.Errorf("%s: got %q, want %q in it", signal, r.received[signal], text)
			}
		}
		for _, text := range []string{"secret", "not taken"} {
			if strings.Contains(r.received[signal], text) {
				t.Errorf("%s: got %q, want no %q", signal, r.received[signal], text)
			}
		}
	}

	if len(r.authorizations) != 1 || !r.authorizations["Bearer token"] {
		t.Errorf("got the headers %v", r.authorizations)
	}
	if all.LostSpans() != 0 {
		t.Errorf("got %d lost spans", all.LostSpans())
	}
}

// TestLostSpans counts the spans of an export that failed.
func TestLostSpans(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer refusing.Close()

	all, err := start(t, map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": refusing.URL})
	if err != nil {
		t.Fatal(err)
	}

	_, span := all.Tracer().Start(t.Context(), "job x")
	span.End()
	flush(t, all)

	if got := all.LostSpans(); got != 1 {
		t.Errorf("got %d lost spans, want 1", got)
	}
}

// TestSignals: a signal is exported if it has an address and is not switched off.
func TestSignals(t *testing.T) {
	const address = "http://127.0.0.1:1"
	for name, tt := range map[string]struct {
		environment map[string]string
		want        []string
	}{
		"no address": {nil, nil},
		"all": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": address},
			[]string{signalLogs, signalMetrics, signalTraces}},
		"traces": {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": address}, []string{signalTraces}},
		"no logs": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_LOGS_EXPORTER": "none"},
			[]string{signalMetrics, signalTraces}},
		"disabled": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_SDK_DISABLED": "true"}, nil},
		"gRPC": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
			[]string{signalLogs, signalMetrics, signalTraces}},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := start(t, tt.environment)
			if err != nil {
				t.Fatal(err)
			}

			var got []string
			if all.logs != nil {
				got = append(got, signalLogs)
			}
			if all.metrics != nil {
				got = append(got, signalMetrics)
			}
			if all.traces != nil {
				got = append(got, signalTraces)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestBadSettings are refused at the start, by their names.
func TestBadSettings(t *testing.T) {
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318",
		"OTEL_EXPORTER_OTLP_PROTOCOL": "smoke",
		"OTEL_TRACES_EXPORTER":        "zipkin",
		"OTEL_RESOURCE_ATTRIBUTES":    "nothing",
		"OTEL_TRACES_SAMPLER":         "sometimes",
	} {
		t.Run(name, func(t *testing.T) {
			environment := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
			environment[name] = value
			if _, err := start(t, environment); err == nil || (!strings.Contains(err.Error(), name) &&
				!strings.Contains(err.Error(), value)) {
				t.Errorf("got %v, want an error that names the setting", err)
			}
		})
	}
}

// TestNothingWithout: without an address, requests, records and jobs pass by.
func TestNothingWithout(t *testing.T) {
	all, err := start(t, nil)
	if err != nil {
		t.Fatal(err)
	}

	next := http.NewServeMux()
	if got := all.Middleware(next, "http://x"); got != http.Handler(next) {
		t.Error("requests pass through a middleware")
	}
	if got := all.LogHandler(slog.DiscardHandler); got != slog.DiscardHandler {
		t.Error("records pass through a handler")
	}

	ctx, span := all.Tracer().Start(t.Context(), "x")
	if span.IsRecording() || trace.SpanContextFromContext(ctx).IsValid() {
		t.Error("a job is recorded")
	}
}
