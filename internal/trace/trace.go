// Package trace starts spans for the work within a request or a job, by the provider behind the
// span in the context. Outside a trace nothing is recorded and nothing allocated. Package telemetry
// starts the traces and exports them.
package trace

import (
	"context"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
)

// Active reports whether ctx's span is recorded.
func Active(ctx context.Context) bool { return trace.SpanFromContext(ctx).IsRecording() }

// Start starts a child of the context's span. Outside a trace it returns ctx, and a span whose
// methods do nothing.
func Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if !Active(ctx) {
		return ctx, trace.SpanFromContext(ctx)
	}
	return Provider{}.Tracer("socle").Start(ctx, name, options...)
}

// Provider starts spans by the provider behind the context's span. It serves libraries that take
// their provider before there is a trace.
type Provider struct{ embedded.TracerProvider }

// Tracer returns a tracer for a library's spans.
func (Provider) Tracer(library string, options ...trace.TracerOption) trace.Tracer {
	return tracer{library: library, options: options}
}

type tracer struct {
	embedded.Tracer
	library string
	options []trace.TracerOption
}

// Start starts a span.
func (t tracer) Start(
	ctx context.Context, name string, options ...trace.SpanStartOption,
) (context.Context, trace.Span) {
	return trace.SpanFromContext(ctx).TracerProvider().Tracer(t.library, t.options...).Start(ctx, name, options...)
}
