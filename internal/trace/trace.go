// Package trace records spans of requests, statements, jobs and outgoing requests, and exports them
// to a collector of OpenTelemetry. The settings are OpenTelemetry's own environment variables.
//
// A span belongs to the context that [Tracer.Start] or [Start] returns. Without a tracer there is
// none: both then return the context unchanged and nil, and the methods of a nil span do nothing.
package trace

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strings"
	"time"
)

// Kind is the role of a span in a trace, by its number in OTLP.
type Kind int

// The kinds of spans.
const (
	Internal Kind = 1
	Server   Kind = 2
	Client   Kind = 3
	Consumer Kind = 5
)

// Attribute is a property of a span. Its value is a string or an int64.
type Attribute struct {
	Key   string
	Value any
}

// Parent is the origin of a trace at another service. The zero value is none.
type Parent struct {
	TraceID [16]byte
	SpanID  [8]byte
	Sampled bool
}

// IsZero reports whether there is no parent.
func (p Parent) IsZero() bool { return p == Parent{} }

// Span is an operation of a trace. Its methods are not safe for concurrent use.
type Span struct {
	Parent // the identity of the span itself, by which children refer to it

	tracer     *Tracer
	parentID   [8]byte // zero: the root
	name       string
	kind       Kind
	start, end time.Time
	attributes []Attribute
	failed     bool
}

type spanKey struct{}

// from returns the span of ctx, or nil.
func from(ctx context.Context) *Span {
	s, _ := ctx.Value(spanKey{}).(*Span)
	return s
}

// Active reports whether ctx has a span.
func Active(ctx context.Context) bool { return from(ctx) != nil }

// Start starts a child of the context's span.
func Start(ctx context.Context, name string, kind Kind, attributes ...Attribute) (context.Context, *Span) {
	parent := from(ctx)
	if parent == nil {
		return ctx, nil
	}

	return parent.tracer.start(ctx, parent.Parent, name, kind, attributes)
}

// Start starts a span with a parent at another service, or the root of a trace.
func (t *Tracer) Start(
	ctx context.Context, parent Parent, name string, kind Kind, attributes ...Attribute,
) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}

	return t.start(ctx, parent, name, kind, attributes)
}

func (t *Tracer) start(
	ctx context.Context, parent Parent, name string, kind Kind, attributes []Attribute,
) (context.Context, *Span) {
	s := &Span{tracer: t, name: name, kind: kind, attributes: attributes, start: time.Now()}
	s.TraceID, s.parentID = parent.TraceID, parent.SpanID
	if parent.IsZero() {
		rand.Read(s.TraceID[:]) // never fails
	}

	s.Sampled = parent.Sampled // a server's spans of a trace are exported together
	if !Active(ctx) {
		s.Sampled = t.sampler.sample(parent, s.TraceID)
	}

	rand.Read(s.SpanID[:])

	return context.WithValue(ctx, spanKey{}, s), s
}

// Trace returns the hexadecimal ID of the span's trace, or "".
func (s *Span) Trace() string {
	if s == nil {
		return ""
	}
	return hex.EncodeToString(s.TraceID[:])
}

// Rename sets the name, if it is known only at the end.
func (s *Span) Rename(name string) {
	if s != nil {
		s.name = name
	}
}

// Set adds attributes.
func (s *Span) Set(attributes ...Attribute) {
	if s != nil {
		s.attributes = append(s.attributes, attributes...)
	}
}

// Fail marks the span as failed. The cause stays in the log: it can contain a user's data.
func (s *Span) Fail() {
	if s != nil {
		s.failed = true
	}
}

// End ends the span and queues it for export.
func (s *Span) End() {
	if s == nil || !s.Sampled {
		return
	}

	s.end = time.Now()
	s.tracer.queue(s)
}

// header is the name of the header that carries a trace (W3C Trace Context).
const header = "Traceparent"

// ParentOf returns the parent in the header traceparent, version 00. It is zero without a valid
// one.
func ParentOf(h http.Header) Parent {
	given := h[header]
	if len(given) != 1 {
		return Parent{}
	}

	parts := strings.Split(given[0], "-")
	if len(parts) != 4 || parts[0] != "00" || strings.ToLower(given[0]) != given[0] {
		return Parent{}
	}

	var p Parent
	var flags [1]byte
	if !decode(p.TraceID[:], parts[1]) || !decode(p.SpanID[:], parts[2]) || !decode(flags[:], parts[3]) ||
		p.TraceID == [16]byte{} || p.SpanID == [8]byte{} {
		return Parent{}
	}

	p.Sampled = flags[0]&1 != 0
	return p
}

// decode decodes hexadecimal text of exactly the length of to.
func decode(to []byte, text string) bool {
	if len(text) != 2*len(to) {
		return false
	}

	_, err := hex.Decode(to, []byte(text))
	return err == nil
}

// Inject sets the header traceparent of an outgoing request to the context's span.
func Inject(ctx context.Context, h http.Header) {
	s := from(ctx)
	if s == nil {
		return
	}

	flags := "-00"
	if s.Sampled {
		flags = "-01"
	}

	h.Set(header, "00-"+s.Trace()+"-"+hex.EncodeToString(s.SpanID[:])+flags)
}

// Transport is an http.RoundTripper that records a span of each request within a trace and passes
// the trace on.
type Transport struct{ Base http.RoundTripper }

// RoundTrip sends a request.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, span := Start(r.Context(), r.Method, Client, Attribute{"http.request.method", r.Method},
		Attribute{"server.address", r.URL.Hostname()})
	if span == nil {
		return t.Base.RoundTrip(r)
	}
	defer span.End()

	r = r.Clone(ctx)
	Inject(ctx, r.Header)

	response, err := t.Base.RoundTrip(r)
	if err != nil {
		span.Fail()
		return nil, err
	}

	span.Set(Attribute{"http.response.status_code", int64(response.StatusCode)})
	if response.StatusCode >= http.StatusInternalServerError {
		span.Fail()
	}

	return response, nil
}
