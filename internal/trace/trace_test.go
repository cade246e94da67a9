package trace

import (
	"context"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// TestStart starts children by the provider of the context's span, and nothing outside a trace.
func TestStart(t *testing.T) {
	t.Parallel()

	if ctx, span := Start(t.Context(), "x"); ctx != t.Context() || span.IsRecording() {
		t.Error("a span outside a trace is recorded")
	}

	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	ctx, root := provider.Tracer("test").Start(t.Context(), "root")
	inner, child := Start(ctx, "child")
	_, grandchild := Provider{}.Tracer("library").Start(inner, "grandchild")
	for _, s := range []trace.Span{grandchild, child, root} {
		s.End()
	}

	ended := recorder.Ended()
	if len(ended) != 3 {
		t.Fatalf("got %d spans", len(ended))
	}
	for i, s := range ended[:2] {
		if s.Parent().SpanID() != ended[i+1].SpanContext().SpanID() {
			t.Errorf("%s is no child of %s", s.Name(), ended[i+1].Name())
		}
	}
}

// TestNoTraceAllocatesNothing: a statement outside a trace costs nothing.
func TestNoTraceAllocatesNothing(t *testing.T) {
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() {
		if Active(ctx) {
			t.Error("there is a trace")
		}
		_, span := Start(ctx, "x")
		span.End()
	}); n > 0 {
		t.Errorf("got %v allocations", n)
	}
}
