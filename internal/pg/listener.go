package pg

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// listenAgain is how soon a listener connects again when its connection is lost.
const listenAgain = time.Second

// Listener hears what is told by NOTIFY in a database, on a connection of its own, which is made again when it is lost. What is told
// while there is none is not heard: whoever counts on hearing it catches up, see [Listener.Catch].
type Listener struct {
	config *pgx.ConnConfig
	log    *slog.Logger
	told   map[string]func(payload string)
	catch  []func(context.Context, *pgx.Conn) error
	pid    atomic.Uint32
}

// NewListener returns a listener in the database that config leads to. It hears nothing until [Listener.Run].
func NewListener(config *pgx.ConnConfig, log *slog.Logger) *Listener {
	c := config.Copy()
	for name, seconds := range map[string]string{
		"tcp_keepalives_idle": "10", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3",
	} {
		c.RuntimeParams[name] = seconds // other servers rely on the session to end when this machine is gone
	}

	return &Listener{config: c, log: log, told: map[string]func(string){}}
}

// On has told called for each notification on a channel. It must not wait. On and Catch are called before Run.
func (l *Listener) On(channel string, told func(payload string)) { l.told[channel] = told }

// Catch has f called with each connection that is made, when it listens: what was told before is not heard.
func (l *Listener) Catch(f func(context.Context, *pgx.Conn) error) { l.catch = append(l.catch, f) }

// PID returns the process of the server that the listener is connected to; 0: none, and then it hears nothing.
func (l *Listener) PID() uint32 { return l.pid.Load() }

// Run listens until ctx ends.
func (l *Listener) Run(ctx context.Context) error {
	for {
		err := l.listen(ctx)
		l.pid.Store(0)

		if ctx.Err() != nil {
			return nil
		}

		l.log.Warn("nobody hears what other servers tell", "error", err)

		select {
		case <-ctx.Done():
			return nil
		case <-time.After(listenAgain):
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
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()

		_ = conn.Close(closing)
	}()

	for channel := range l.told {
		if _, err := conn.Exec(ctx, "listen "+Quote(channel)); err != nil {
			return err
		}
	}

	var errs []error
	for _, f := range l.catch {
		errs = append(errs, f(ctx, conn))
	}

	if err := errors.Join(errs...); err != nil {
		return err
	}

	l.pid.Store(conn.PgConn().PID())

	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}

		if told := l.told[n.Channel]; told != nil {
			told(n.Payload)
		}
	}
}
