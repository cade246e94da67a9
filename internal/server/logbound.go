package server

import (
	"context"
	"log/slog"
	"unicode/utf8"
)

// logText is the maximum length of a text in a log record, in bytes. User code can raise errors of
// hundreds of megabytes.
const logText = 4 << 10

// boundedLog is a log handler that truncates long texts.
type boundedLog struct{ slog.Handler }

// Handle forwards a record with truncated texts.
func (h boundedLog) Handle(ctx context.Context, r slog.Record) error {
	bounded := slog.NewRecord(r.Time, r.Level, clip(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		bounded.AddAttrs(boundAttr(a))
		return true
	})

	return h.Handler.Handle(ctx, bounded)
}

// WithAttrs implements [slog.Handler].
func (h boundedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	bounded := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		bounded[i] = boundAttr(a)
	}

	return boundedLog{h.Handler.WithAttrs(bounded)}
}

// WithGroup implements [slog.Handler].
func (h boundedLog) WithGroup(name string) slog.Handler {
	return boundedLog{h.Handler.WithGroup(name)}
}

func boundAttr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.String(a.Key, clip(v.String()))
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			return slog.String(a.Key, clip(err.Error()))
		}
	}

	return a
}

// clip truncates a text to logText bytes at a rune boundary and marks it with "…".
func clip(s string) string {
	if len(s) <= logText {
		return s
	}

	end := logText
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}

	return s[:end] + "…"
}
