package pg

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/tick"
)

// reconnectDelay is the delay before reconnecting.
const reconnectDelay = time.Second

// Listener receives a database's notifications on a dedicated connection and reconnects when it is
// lost. Notifications sent in between are missed; register a resync with [Listener.OnConnect].
type Listener struct {
	config    *pgx.ConnConfig
	log       *slog.Logger
	handlers  map[string]func(payload string)
	onConnect []func(context.Context, *pgx.Conn) error
	pid       atomic.Uint32
}

// NewListener returns a listener for config's database. It is idle until [Listener.Run] is called.
func NewListener(config *pgx.ConnConfig, log *slog.Logger) *Listener {
	c := config.Copy()
	for name, seconds := range map[string]string{
		"tcp_keepalives_idle": "10", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3",
	} {
		c.RuntimeParams[name] = seconds // other servers rely on the session ending when this machine is gone
	}

	return &Listener{config: c, log: log, handlers: map[string]func(string){}}
}

// Handle registers a handler for the notifications on a channel. It must not block. Handle and
// OnConnect must be called before Run.
func (l *Listener) Handle(channel string, handler func(payload string)) {
	l.handlers[channel] = handler
}

// OnConnect registers a function that is called with each new connection after LISTEN, to catch up
// with missed notifications.
func (l *Listener) OnConnect(f func(context.Context, *pgx.Conn) error) {
	l.onConnect = append(l.onConnect, f)
}

// PID returns the backend PID of the listener's connection, or 0 if it has none.
func (l *Listener) PID() uint32 { return l.pid.Load() }

// Run listens until ctx ends.
func (l *Listener) Run(ctx context.Context) error {
	for {
		err := l.listen(ctx)
		l.pid.Store(0)

		if ctx.Err() != nil {
			return nil
		}

		l.log.Warn("LISTEN connection lost, reconnecting", "error", err)

		if tick.Pause(ctx, reconnectDelay) != nil {
			return nil
		}
	}
}

// listen returns when the connection is lost or ctx ends.
func (l *Listener) listen(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, l.config)
	if err != nil {
		return err
	}
	defer func() {
		closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()

		_ = conn.Close(closeCtx)
	}()

	for channel := range l.handlers {
		if _, err := conn.Exec(ctx, "listen "+Quote(channel)); err != nil {
			return err
		}
	}

	var errs []error
	for _, f := range l.onConnect {
		errs = append(errs, f(ctx, conn))
	}

	if err := errors.Join(errs...); err != nil {
		return err
	}

	l.pid.Store(conn.PgConn().PID())

	for {
		n, err := WaitForNotification(ctx, conn)
		if err != nil {
			return err
		}

		if handler := l.handlers[n.Channel]; handler != nil {
			handler(n.Payload)
		}
	}
}
