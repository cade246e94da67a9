package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// span is a span as a collector reads it.
type span struct {
	TraceID      hexID  `json:"traceId"`
	SpanID       hexID  `json:"spanId"`
	ParentSpanID hexID  `json:"parentSpanId"`
	Name         string `json:"name"`
	Kind         int    `json:"kind"`
	Links        []struct {
		TraceID hexID `json:"traceId"`
	} `json:"links"`
	Attributes []struct {
		Key   string         `json:"key"`
		Value map[string]any `json:"value"`
	} `json:"attributes"`
}

// hexID is an ID in lower case. OTLP allows both in JSON.
type hexID string

// UnmarshalText decodes an ID.
func (h *hexID) UnmarshalText(text []byte) error {
	*h = hexID(bytes.ToLower(text))
	return nil
}

// collector is a collector of OpenTelemetry that keeps all spans, and the metrics and logs as text.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	spans  []span
	others map[string]string // requests for metrics and logs by their path
}

func newCollector(t *testing.T) *collector {
	t.Helper()

	c := &collector{others: map[string]string{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/traces" {
			text, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}

			c.mu.Lock()
			defer c.mu.Unlock()

			c.others[r.URL.Path] += string(text)
			return
		}

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

		for _, resource := range in.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
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

// settings are the variables by which a server exports to the collector.
func (c *collector) settings() []string {
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_EXPORTER_OTLP_PROTOCOL=http/json",
		"OTEL_BSP_SCHEDULE_DELAY=100"}
}

// TestTraces has a server export to a collector: spans, metrics and logs.
func TestTraces(t *testing.T) {
	t.Parallel()

	collected := newCollector(t)
	p, c := startInstalled(t, collected.settings()...)
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

	asked, job := collected.find("POST /users/password/forgot"), collected.find("job password_reset")
	if asked == nil || job == nil || len(job.Links) != 1 || job.Links[0].TraceID != asked.TraceID ||
		job.TraceID == asked.TraceID {
		t.Errorf("got the span %+v of a job, want a link to the trace of %+v", job, asked)
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

	for path, want := range map[string]string{"/v1/metrics": "socle_http_request_duration_seconds",
		"/v1/logs": "/sql"} {
		if got := collected.others[path]; !strings.Contains(got, want) || strings.Contains(got, "a secret") {
			t.Errorf("%s: got %.1000s, want %s in it, and no statement", path, got, want)
		}
	}
}
