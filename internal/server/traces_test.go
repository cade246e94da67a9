package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// span is a span as a collector reads it.
type span struct {
	TraceID      string `json:"traceId"`
	SpanID       string `json:"spanId"`
	ParentSpanID string `json:"parentSpanId"`
	Name         string `json:"name"`
	Kind         int    `json:"kind"`
	Attributes   []struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	} `json:"attributes"`
}

// collector is a collector of OpenTelemetry that keeps all spans.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []span
}

func newCollector(t *testing.T) *collector {
	t.Helper()

	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			ResourceSpans []struct {
				ScopeSpans []struct {
					Spans []span `json:"spans"`
				} `json:"scopeSpans"`
			} `json:"resourceSpans"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
			return
		}

		c.mu.Lock()
		defer c.mu.Unlock()

		c.spans = append(c.spans, in.ResourceSpans[0].ScopeSpans[0].Spans...)
	}))
	t.Cleanup(c.Close)

	return c
}

// find returns the span with a name, or nil.
func (c *collector) find(name string) *span {
	c.mu.Lock()
	defer c.mu.Unlock()

	for i, s := range c.spans {
		if s.Name == name {
			return &c.spans[i]
		}
	}

	return nil
}

// TestTraces has a server send its spans to a collector.
func TestTraces(t *testing.T) {
	t.Parallel()

	collected := newCollector(t)
	p, c := startInstalled(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+collected.URL)
	c.want(t, 200, "POST", "/users/password/forgot", `{"email": "somebody@example.com"}`)
	eventually(t, "a job has ended", func() bool { return collected.find("job password_reset") != nil })

	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/sql",
		strings.NewReader(`{"query": "select 'a secret'"}`))
	if err != nil {
		t.Fatal(err)
	}

	for name, value := range map[string]string{"Authorization": "Bearer " + c.token, "X-Project": c.project,
		"Content-Type": "application/json", "Traceparent": "00-" + trace + "-" + parent + "-01"} {
		request.Header.Set(name, value)
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()

	if response.StatusCode != http.StatusOK {
		t.Fatalf("got status %d", response.StatusCode)
	}

	p.signal(syscall.SIGTERM) // exports what is left
	p.wait()

	served := collected.find("POST /sql")
	if served == nil || served.TraceID != trace || served.ParentSpanID != parent || served.Kind != 2 {
		t.Fatalf("got the span %+v of the request", served)
	}
	if collected.find("job password_reset") == nil {
		t.Error("no span of a job")
	}
	if collected.find("GET /readyz") != nil || collected.find("GET /healthz") != nil {
		t.Error("spans of health checks")
	}

	statements := 0
	for _, s := range collected.spans {
		if s.TraceID == trace && s.Kind == 3 && s.ParentSpanID == served.SpanID {
			statements++
		}
	}
	if statements == 0 {
		t.Error("no span of a statement within the request's")
	}

	if text, err := json.Marshal(collected.spans); err != nil || strings.Contains(string(text), "secret") {
		t.Errorf("a span has a statement's text: %v", err)
	}
	if !strings.Contains(p.log.String(), "traceId="+trace) {
		t.Error("the log lacks the trace")
	}
}
