package httpx

import (
	"net/http"
	"strings"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// traceID returns the request's trace ID, or "". Without a span on this server it is the client's,
// from the header traceparent (W3C Trace Context).
func traceID(r *http.Request) string {
	if span := trace.SpanContextFromContext(r.Context()); span.IsValid() {
		return span.TraceID().String()
	}

	const version, length = len("00-"), len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	headers := r.Header["Traceparent"]
	if len(headers) != 1 || len(headers[0]) < length {
		return ""
	}

	id := headers[0][version : version+len(trace.TraceID{})*2]
	if _, err := trace.TraceIDFromHex(id); err != nil {
		return ""
	}

	return id
}

// describeSpan sets the span's name and attributes, once they are known.
func (w *recorder) describeSpan(r *http.Request) {
	span := trace.SpanFromContext(r.Context())
	if !span.IsRecording() {
		return
	}

	request := &w.request
	name := methodName(r)
	if route := strings.TrimPrefix(request.Route, r.Method+" "); route != "" {
		name += " " + route
		span.SetAttributes(attribute.String("http.route", route))
	}
	if request.Project != uuid.Nil {
		span.SetAttributes(attribute.String("socle.project", request.Project.String()))
	}

	span.SetName(name)
	span.SetAttributes(attribute.Int("http.response.status_code", w.status),
		attribute.String("socle.request_id", request.ID))

	switch {
	case w.failed():
		span.SetStatus(codes.Error, "")
	case w.status >= http.StatusInternalServerError:
		span.SetStatus(codes.Ok, "") // not the server's failure, whatever the status
	}
}
