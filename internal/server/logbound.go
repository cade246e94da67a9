package server

import (
	"context"
	"log/slog"
	"unicode/utf8"
)

// logText is the most bytes of a text in a log record: code of a project's can raise an error of hundreds of megabytes.
const logText = 4 << 10

// boundedLog is a log handler that clips long texts.
type boundedLog struct{ slog.Handler }

// Handle hands on a record with its texts clipped.
func (h boundedLog) Handle(ctx context.Context, r slog.Record) error {
	bounded := slog.NewRecord(r.Time, r.Level, clip(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		bounded.AddAttrs(boundAttr(a))
		return true
	})

	return h.Handler.Handle(ctx, bounded)
}

// WithAttrs returns a handler whose records have attributes.
func (h boundedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	bounded := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		bounded[i] = boundAttr(a)
	}

	return boundedLog{h.Handler.WithAttrs(bounded)}
}

// WithGroup returns a handler whose attributes are in a group.
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

// clip keeps the beginning of a text.
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
