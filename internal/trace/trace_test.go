package trace

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// collector is an OTLP collector that decodes JSON.
type collector struct {
	*httptest.Server
	headers  http.Header
	requests chan otlpRequest
	statuses chan int // of the next responses; empty: 200
}

func newCollector(t *testing.T) *collector {
	c := &collector{requests: make(chan otlpRequest, 10), statuses: make(chan int, 10)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case status := <-c.statuses:
			w.WriteHeader(status)
			return
		default:
		}

		var in otlpRequest
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL, err)
		}

		c.headers = r.Header
		c.requests <- in
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(c.Close)

	return c
}

func (c *collector) tracer(t *testing.T, settings map[string]string) *Tracer {
	t.Helper()

	settings["OTEL_EXPORTER_OTLP_ENDPOINT"] = c.URL + "/"
	tracer, err := New(func(name string) string { return settings[name] }, "1.2.3", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	return tracer
}

// flush ends a tracer, which exports what is left.
func flush(t *testing.T, tracer *Tracer) {
	t.Helper()

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tracer.Run(ended); err != nil {
		t.Fatal(err)
	}
}

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// TestExport sends spans to a collector: names, ids, attributes and failures.
func TestExport(t *testing.T) {
	t.Parallel()

	c := newCollector(t)
	tracer := c.tracer(t, map[string]string{"OTEL_SERVICE_NAME": "newspaper",
		"OTEL_RESOURCE_ATTRIBUTES":   "deployment.environment.name=test%20one,service.name=other",
		"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20secret"})

	var passed string
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		passed = r.Header.Get("Traceparent")
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer target.Close()

	ctx, root := tracer.Start(t.Context(), ParentOf(http.Header{header: {parent}}), "GET", Server)
	_, child := Start(ctx, "SELECT", Client, Attribute{"db.operation.name", "SELECT"}, Attribute{"rows", int64(2)})
	child.End()

	request, err := http.NewRequestWithContext(ctx, http.MethodPut, target.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}

	response, err := Transport{http.DefaultTransport}.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()

	root.Rename("GET /items")
	root.End()

	c.statuses <- http.StatusServiceUnavailable // it is sent again
	flush(t, tracer)

	in := <-c.requests
	if got := c.headers.Get("Authorization"); got != "Bearer secret" {
		t.Errorf("got header %q", got)
	}

	resource := in.ResourceSpans[0]
	names := map[string]string{}
	for _, a := range resource.Resource.Attributes {
		names[a.Key] = *a.Value.String
	}
	if names["service.name"] != "newspaper" || names["service.version"] != "1.2.3" ||
		names["deployment.environment.name"] != "test one" {
		t.Errorf("got resource %v", names)
	}

	spans := resource.ScopeSpans[0].Spans
	if len(spans) != 3 {
		t.Fatalf("got %d spans, want 3", len(spans))
	}

	statement, outgoing, server := spans[0], spans[1], spans[2]
	if server.Name != "GET /items" || server.Kind != Server || server.TraceID != parent[3:35] ||
		server.ParentSpanID != parent[36:52] || server.Status != nil || server.Start > server.End {
		t.Errorf("got %+v", server)
	}
	if statement.Name != "SELECT" || statement.Kind != Client || statement.ParentSpanID != server.SpanID ||
		*statement.Attributes[0].Value.String != "SELECT" || statement.Attributes[1].Value.Int != "2" {
		t.Errorf("got %+v", statement)
	}
	if outgoing.Name != "PUT" || outgoing.Status == nil || outgoing.Status.Code != statusError {
		t.Errorf("got %+v", outgoing)
	}
	if want := "00-" + server.TraceID + "-" + outgoing.SpanID + "-01"; passed != want {
		t.Errorf("passed on %q, want %q", passed, want)
	}
	if tracer.Dropped() != 0 {
		t.Errorf("got %d dropped spans", tracer.Dropped())
	}
}

// TestDropped counts the spans that a full queue or a refusing collector loses.
func TestDropped(t *testing.T) {
	t.Parallel()

	c := newCollector(t)
	tracer := c.tracer(t, map[string]string{})
	for range queueSize + 5 {
		_, span := tracer.Start(t.Context(), Parent{}, "GET", Server)
		span.End()
	}
	if got := tracer.Dropped(); got != 5 {
		t.Errorf("got %d dropped spans beyond the queue, want 5", got)
	}

	c.statuses <- http.StatusBadRequest // of the first batch
	flush(t, tracer)
	if got := tracer.Dropped(); got != 5+batchSize {
		t.Errorf("got %d dropped spans, want %d", got, 5+batchSize)
	}
	if got := len(c.requests); got != queueSize/batchSize-1 {
		t.Errorf("got %d batches, want %d", got, queueSize/batchSize-1)
	}
}

func TestSampler(t *testing.T) {
	t.Parallel()

	high, low := [16]byte{8: 0xff}, [16]byte{15: 1}
	unsampled := Parent{TraceID: low, SpanID: [8]byte{1}}
	sampled := unsampled
	sampled.Sampled = true
	for _, test := range []struct {
		name, argument string
		parent         Parent
		id             [16]byte
		want           bool
	}{
		{"", "", Parent{}, high, true},
		{"", "", unsampled, low, false},
		{"always_on", "", unsampled, low, true},
		{"always_off", "", sampled, low, false},
		{"parentbased_always_off", "", sampled, low, true},
		{"traceidratio", "0.5", Parent{}, low, true},
		{"traceidratio", "0.5", Parent{}, high, false},
		{"traceidratio", "", Parent{}, high, true},
		{"traceidratio", "0", Parent{}, low, false},
		{"parentbased_traceidratio", "0", sampled, low, true},
	} {
		s, err := parseSampler(test.name, test.argument)
		if got := s.sample(test.parent, test.id); err != nil || got != test.want {
			t.Errorf("%s %s: got %v, %v; want %v", test.name, test.argument, got, err, test.want)
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()

	address := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
		"OTEL_TRACES_SAMPLER": "xray", "OTEL_EXPORTER_OTLP_HEADERS": "a=%0Ab",
		"OTEL_RESOURCE_ATTRIBUTES": "none",
	} {
		_, err := New(func(n string) string {
			if n == name {
				return value
			}
			return address[n]
		}, "", nil)
		if err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s=%s: got %v", name, value, err)
		}
	}

	for _, off := range []map[string]string{
		{},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_SDK_DISABLED": "true"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_TRACES_EXPORTER": "none"},
	} {
		if tracer, err := New(func(n string) string { return off[n] }, "", nil); tracer != nil || err != nil {
			t.Errorf("%v: got %v, %v", off, tracer, err)
		}
	}
}

// TestParentOf reads the header traceparent of W3C Trace Context.
func TestParentOf(t *testing.T) {
	t.Parallel()

	for given, want := range map[string]bool{
		parent:                                true,
		strings.TrimSuffix(parent, "1") + "0": true,
		"":                                    false,
		"00" + strings.ToUpper(parent[2:]):    false,
		"01" + parent[2:]:                     false,
		parent + "-00":                        false,
		"00-" + strings.Repeat("0", 32) + parent[35:]: false,
		parent[:36] + strings.Repeat("0", 16) + "-01": false,
		"00-xyz-b7ad6b7169203331-01":                  false,
	} {
		if got := ParentOf(http.Header{header: {given}}); got.IsZero() == want {
			t.Errorf("%q: got %+v", given, got)
		}
	}

	if !ParentOf(http.Header{header: {parent, parent}}).IsZero() {
		t.Error("two headers are a parent")
	}
}

// BenchmarkOff measures a statement's cost without a tracer.
func BenchmarkOff(b *testing.B) {
	type other struct{}
	ctx := context.WithValue(b.Context(), other{}, parent)
	b.ReportAllocs()
	for b.Loop() {
		var tracer *Tracer
		ctx, span := tracer.Start(ctx, Parent{}, "GET", Server)
		_ = Active(ctx)
		span.End()
	}
}
