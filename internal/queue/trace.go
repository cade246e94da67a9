package queue

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/riverqueue/river/rivertype"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceMetadata names the span that inserted a job, in the W3C Trace Context format. It is part of
// the job's metadata.
type traceMetadata struct {
	Parent string `json:"traceparent"`
}

const traceHeader = "traceparent"

// traceOf returns job metadata that links to ctx's span, or nil without a span.
func traceOf(ctx context.Context) []byte {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return nil
	}

	header := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, header)

	text, err := json.Marshal(traceMetadata{header[traceHeader]})
	if err != nil {
		panic("queue: " + err.Error()) // a string
	}

	return text
}

// startSpan starts a trace for a job attempt, with a link to the span that inserted the job.
func (q *Queue) startSpan(ctx context.Context, j *rivertype.JobRow) (context.Context, trace.Span) {
	if q.Tracer == nil {
		return ctx, trace.SpanFromContext(ctx)
	}

	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(attribute.String("messaging.system", "river"),
			attribute.String("messaging.message.id", strconv.FormatInt(j.ID, 10)))}

	var m traceMetadata
	if json.Unmarshal(j.Metadata, &m) == nil && m.Parent != "" {
		cause := propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceHeader: m.Parent})
		options = append(options, trace.WithLinks(trace.LinkFromContext(cause)))
	}

	return q.Tracer.Start(ctx, "job "+j.Kind, options...)
}
