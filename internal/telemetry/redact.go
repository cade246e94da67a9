package telemetry

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// exportedAttributes are the attributes that a span may have outside the server. Libraries record
// more: paths, which may be secret links, statements, and error texts, which may quote user data.
var exportedAttributes = map[attribute.Key]bool{
	"http.request.method":       true,
	"http.response.status_code": true,
	"http.route":                true,
	"server.address":            true, // the server's own, or that of the S3 service
	"server.port":               true,
	"db.system.name":            true,
	"db.operation.name":         true,
	"pgx.rows_affected":         true,
	"pgx.sql_state":             true,
	"messaging.system":          true,
	"messaging.message.id":      true,
	"socle.project":             true,
	"socle.request_id":          true,
}

// redactingExporter exports spans without user texts, and counts those that are lost.
type redactingExporter struct {
	sdktrace.SpanExporter
	lost *atomic.Int64
}

// ExportSpans exports spans.
func (e redactingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	spansOut := make([]sdktrace.ReadOnlySpan, len(spans))
	for i, s := range spans {
		spansOut[i] = redactedSpan{s}
	}

	err := e.SpanExporter.ExportSpans(ctx, spansOut)
	if err != nil {
		e.lost.Add(int64(len(spans)))
	}

	return err
}

// redactedSpan is a span without user texts.
type redactedSpan struct{ sdktrace.ReadOnlySpan }

// Attributes returns the attributes that may leave the server.
func (s redactedSpan) Attributes() []attribute.KeyValue {
	var attributes []attribute.KeyValue
	for _, a := range s.ReadOnlySpan.Attributes() {
		if exportedAttributes[a.Key] {
			attributes = append(attributes, a)
		}
	}

	return attributes
}

// SpanContext returns the identity without the trace state, which is the client's text.
func (s redactedSpan) SpanContext() trace.SpanContext {
	return s.ReadOnlySpan.SpanContext().WithTraceState(trace.TraceState{})
}

// Events returns none: they have error texts.
func (redactedSpan) Events() []sdktrace.Event { return nil }

// Status returns the status without its description, an error text.
func (s redactedSpan) Status() sdktrace.Status {
	return sdktrace.Status{Code: s.ReadOnlySpan.Status().Code}
}
