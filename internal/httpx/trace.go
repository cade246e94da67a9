package httpx

import (
	"context"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/trace"
)

// startSpan starts the span of a request and returns its context. It sets the request's trace,
// which is also logged without spans.
func (w *recorder) startSpan(r *http.Request, t *trace.Tracer) context.Context {
	parent := trace.ParentOf(r.Header)

	ctx, span := t.Start(r.Context(), parent, methodName(r), trace.Server)
	if w.span = span; span != nil {
		w.request.Trace = span.Trace()
	} else if !parent.IsZero() {
		w.request.Trace = hex.EncodeToString(parent.TraceID[:])
	}

	return ctx
}

// endSpan ends the span of a request, except of a successful health check.
func (w *recorder) endSpan(r *http.Request) {
	request := &w.request
	if w.span == nil || (request.Probe && !w.failed()) {
		return
	}

	if w.failed() {
		w.span.Fail()
	}
	if route := strings.TrimPrefix(request.Route, r.Method+" "); route != "" {
		w.span.Rename(methodName(r) + " " + route)
		w.span.Set(trace.Attribute{Key: "http.route", Value: route})
	}
	if request.Project != uuid.Nil {
		w.span.Set(trace.Attribute{Key: "socle.project", Value: request.Project.String()})
	}

	w.span.Set(trace.Attribute{Key: "http.request.method", Value: methodName(r)},
		trace.Attribute{Key: "http.response.status_code", Value: int64(w.status)},
		trace.Attribute{Key: "socle.request_id", Value: request.ID})
	w.span.End()
}
