package bus

import (
	"context"
	"fmt"
	"log/slog"
)

// logger has the messages of NATS in the server's log. Its notices are of no use to operators.
type logger struct{ log *slog.Logger }

func (l logger) print(level slog.Level, format string, args []any) {
	if l.log.Enabled(context.Background(), level) {
		l.log.Log(context.Background(), level, "messages between servers", "nats", fmt.Sprintf(format, args...))
	}
}

// Noticef implements [server.Logger], as do the others.
func (l logger) Noticef(format string, args ...any) { l.print(slog.LevelDebug, format, args) }

// Warnf logs a warning.
func (l logger) Warnf(format string, args ...any) { l.print(slog.LevelDebug, format, args) }

// Fatalf logs an error. What can't go on without is checked after the start.
func (l logger) Fatalf(format string, args ...any) { l.print(slog.LevelError, format, args) }

// Errorf logs a warning: strangers can cause it, and routes are tried again.
func (l logger) Errorf(format string, args ...any) { l.print(slog.LevelWarn, format, args) }

// Debugf logs nothing: it is off.
func (l logger) Debugf(string, ...any) {}

// Tracef logs nothing: it is off.
func (l logger) Tracef(string, ...any) {}
