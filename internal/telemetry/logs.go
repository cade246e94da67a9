package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// exportingHandler exports the records that a local handler takes.
type exportingHandler struct {
	slog.Handler
	exporter slog.Handler
}

// Handle logs and exports a record.
func (h exportingHandler) Handle(ctx context.Context, r slog.Record) error {
	return errors.Join(h.Handler.Handle(ctx, r.Clone()), h.exporter.Handle(ctx, r))
}

// WithAttrs implements [slog.Handler].
func (h exportingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return exportingHandler{h.Handler.WithAttrs(attrs), h.exporter.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (h exportingHandler) WithGroup(name string) slog.Handler {
	return exportingHandler{h.Handler.WithGroup(name), h.exporter.WithGroup(name)}
}

// warnings logs export failures, at most one in a while.
type warnings struct {
	log *slog.Logger

	mu       sync.Mutex
	warnedAt time.Time
}

// Handle logs a failure.
func (w *warnings) Handle(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if time.Since(w.warnedAt) < warnInterval {
		return
	}

	w.warnedAt = time.Now()
	w.log.Warn("telemetry was not exported", "error", err)
}
