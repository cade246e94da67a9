package trace

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	queueSize      = 4096 // spans that wait for export
	batchSize      = 512
	batchInterval  = 5 * time.Second
	exportTimeout  = 10 * time.Second // of one request to the collector
	exportAttempts = 3
	retryDelay     = time.Second
	flushTimeout   = 5 * time.Second // of all that is left when the server stops
	warnInterval   = time.Minute
)

// Tracer exports spans to a collector, as OTLP in JSON over HTTP. It is safe for concurrent use. It
// never blocks: spans beyond the queue are dropped and counted. A nil Tracer records nothing.
type Tracer struct {
	address  string
	header   http.Header
	resource []Attribute
	sampler  sampler
	client   *http.Client
	log      *slog.Logger

	spans   chan *Span
	dropped atomic.Int64
	warned  time.Time // of dropped spans
	unsaid  int64     // dropped since
}

// Dropped returns the number of spans that were not exported.
func (t *Tracer) Dropped() int64 {
	if t == nil {
		return 0
	}
	return t.dropped.Load()
}

func (t *Tracer) queue(s *Span) {
	select {
	case t.spans <- s:
	default:
		t.dropped.Add(1)
	}
}

// Run exports spans until ctx ends, and then flushes the queue.
func (t *Tracer) Run(ctx context.Context) error {
	if t == nil {
		return nil
	}

	tick := time.NewTicker(batchInterval)
	defer tick.Stop()

	batch := make([]*Span, 0, batchSize)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case s := <-t.spans:
			if batch = append(batch, s); len(batch) == batchSize {
				batch = t.export(ctx, batch)
			}
		case <-tick.C:
			batch = t.export(ctx, batch)
		}
	}

	flushing, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()

	for {
		select {
		case s := <-t.spans:
			if batch = append(batch, s); len(batch) == batchSize {
				batch = t.export(flushing, batch)
			}
		default:
			t.export(flushing, batch)
			return nil
		}
	}
}

// export exports a batch and returns the empty batch. Spans that the collector does not accept are
// dropped.
func (t *Tracer) export(ctx context.Context, batch []*Span) []*Span {
	if len(batch) == 0 {
		return batch
	}

	err := t.post(ctx, batch)
	if err != nil {
		t.dropped.Add(int64(len(batch)))
	}

	if lost := t.dropped.Load(); lost > t.unsaid && time.Since(t.warned) > warnInterval {
		t.log.Warn("spans were not exported", "dropped", lost, "error", err)
		t.warned, t.unsaid = time.Now(), lost
	}

	clear(batch)
	return batch[:0]
}

// post sends a batch to the collector, again if that is temporarily unavailable.
func (t *Tracer) post(ctx context.Context, batch []*Span) error {
	body, err := json.Marshal(t.encode(batch))
	if err != nil {
		return err
	}

	for attempt := 1; ; attempt++ {
		again, err := t.send(ctx, body)
		if err == nil || !again || attempt == exportAttempts {
			return err
		}

		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryDelay << (attempt - 1)):
		}
	}
}

// send sends a request to the collector. again reports whether a repetition may succeed.
func (t *Tracer) send(ctx context.Context, body []byte) (again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.address, bytes.NewReader(body))
	if err != nil {
		return false, err
	}

	r.Header = t.header.Clone()
	r.Header.Set("Content-Type", "application/json")

	response, err := t.client.Do(r)
	if err != nil {
		return true, err
	}
	defer response.Body.Close()

	_, _ = io.CopyN(io.Discard, response.Body, 64<<10) // lets the connection be used again

	switch response.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}

	return again, fmt.Errorf("the collector answered %s", response.Status)
}

// The members of OTLP's JSON that are used.
type (
	otlpRequest struct {
		ResourceSpans []otlpResourceSpans `json:"resourceSpans"`
	}
	otlpResourceSpans struct {
		Resource   otlpResource     `json:"resource"`
		ScopeSpans []otlpScopeSpans `json:"scopeSpans"`
	}
	otlpResource struct {
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpScopeSpans struct {
		Scope otlpScope  `json:"scope"`
		Spans []otlpSpan `json:"spans"`
	}
	otlpScope struct {
		Name string `json:"name"`
	}
	otlpSpan struct {
		TraceID      string          `json:"traceId"`
		SpanID       string          `json:"spanId"`
		ParentSpanID string          `json:"parentSpanId,omitempty"`
		Name         string          `json:"name"`
		Kind         Kind            `json:"kind"`
		Start        string          `json:"startTimeUnixNano"`
		End          string          `json:"endTimeUnixNano"`
		Attributes   []otlpAttribute `json:"attributes,omitempty"`
		Status       *otlpStatus     `json:"status,omitempty"`
	}
	otlpStatus struct {
		Code int `json:"code"`
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	otlpValue struct {
		String *string `json:"stringValue,omitempty"`
		Int    string  `json:"intValue,omitempty"` // 64 bits are text in JSON
	}
)

const statusError = 2

func (t *Tracer) encode(batch []*Span) otlpRequest {
	spans := make([]otlpSpan, len(batch))
	for i, s := range batch {
		spans[i] = otlpSpan{
			TraceID: s.Trace(), SpanID: hex.EncodeToString(s.SpanID[:]), Name: s.name, Kind: s.kind,
			Start: strconv.FormatInt(s.start.UnixNano(), 10), End: strconv.FormatInt(s.end.UnixNano(), 10),
			Attributes: encodeAttributes(s.attributes),
		}
		if s.parentID != [8]byte{} {
			spans[i].ParentSpanID = hex.EncodeToString(s.parentID[:])
		}
		if s.failed {
			spans[i].Status = &otlpStatus{statusError}
		}
	}

	return otlpRequest{[]otlpResourceSpans{{otlpResource{encodeAttributes(t.resource)},
		[]otlpScopeSpans{{otlpScope{"socle"}, spans}}}}}
}

func encodeAttributes(all []Attribute) []otlpAttribute {
	encoded := make([]otlpAttribute, len(all))
	for i, a := range all {
		encoded[i].Key = a.Key
		switch v := a.Value.(type) {
		case string:
			encoded[i].Value.String = &v
		case int64:
			encoded[i].Value.Int = strconv.FormatInt(v, 10)
		}
	}

	return encoded
}
