package server

import (
	"context"
	"log/slog"
	"unicode/utf8"
)

// maxLogText is in bytes. User code can raise errors with hundreds of megabytes.
const maxLogText = 4 << 10

// truncatingHandler is a log handler that truncates long texts.
type truncatingHandler struct{ slog.Handler }

// Handle forwards a record with truncated texts.
func (h truncatingHandler) Handle(ctx context.Context, r slog.Record) error {
	record := slog.NewRecord(r.Time, r.Level, truncate(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		record.AddAttrs(truncateAttr(a))
		return true
	})

	return h.Handler.Handle(ctx, record)
}

// WithAttrs implements [slog.Handler].
func (h truncatingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	copies := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		copies[i] = truncateAttr(a)
	}

	return truncatingHandler{h.Handler.WithAttrs(copies)}
}

// WithGroup implements [slog.Handler].
func (h truncatingHandler) WithGroup(name string) slog.Handler {
	return truncatingHandler{h.Handler.WithGroup(name)}
}

func truncateAttr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, truncate(v.String()))
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			return slog.String(a.Key, truncate(err.Error()))
		}
	}

	return a
}

// truncate truncates a text to maxLogText bytes at a rune boundary and marks it with "…".
func truncate(s string) string {
	if len(s) <= maxLogText {
		return s
	}

	end := maxLogText
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}

	return s[:end] + "…"
}
