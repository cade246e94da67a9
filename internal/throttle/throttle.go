// Package throttle bounds the log lines of loops: during an outage of the database each of them
// fails several times a second for one cause.
package throttle

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	interval    = 30 * time.Second
	maxMessages = 256 // throttled at a time; others pass
)

// New returns a logger that passes the first warning or error with a message, and then one every 30
// seconds with the number of those left out since, as attribute repeated. Other levels pass.
//
// It is for loggers whose messages name a cause, not for those of requests or projects.
func New(log *slog.Logger) *slog.Logger {
	return slog.New(handler{log.Handler(), &messages{pending: map[string]*pending{}}})
}

type handler struct {
	slog.Handler
	messages *messages
}

// messages are those that were logged in the last interval.
type messages struct {
	mu      sync.Mutex
	pending map[string]*pending
}

// pending is a message with the records left out since it was logged.
type pending struct {
	repeated int
	last     slog.Record
	handler  slog.Handler // for last
}

// Handle implements [slog.Handler].
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn || h.messages.admit(h.Handler, r) {
		return h.Handler.Handle(ctx, r)
	}

	return nil
}

// WithAttrs implements [slog.Handler].
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs), h.messages}
}

// WithGroup implements [slog.Handler].
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.messages}
}

// admit reports whether a record is logged now.
func (m *messages) admit(h slog.Handler, r slog.Record) bool {
	m.mu.Lock()
	defer m.mu.Unlock()

	if p := m.pending[r.Message]; p != nil {
		p.repeated++
		p.last, p.handler = r.Clone(), h

		return false
	}

	if len(m.pending) < maxMessages {
		m.pending[r.Message] = &pending{}
		time.AfterFunc(interval, func() { m.flush(r.Message) })
	}

	return true
}

// flush logs the last of a message's records that were left out.
func (m *messages) flush(message string) {
	m.mu.Lock()
	p := m.pending[message]
	if p.repeated == 0 {
		delete(m.pending, message)
		m.mu.Unlock()

		return
	}

	m.pending[message] = &pending{}
	time.AfterFunc(interval, func() { m.flush(message) })
	m.mu.Unlock()

	p.last.AddAttrs(slog.Int("repeated", p.repeated))
	_ = p.handler.Handle(context.Background(), p.last)
}
