package rest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/rest/session"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	minRetryDelay = time.Second // doubled after each failure
	maxRetryDelay = 30 * time.Second
)

// listener makes a Cache read the catalog again after notifications. It holds a connection from the
// first request on, so it suits a server of one database.
type listener struct {
	cache     *Cache
	channel   string // quoted
	onConfig  func() // reload configuration; may be nil
	listening atomic.Bool
	once      sync.Once
	ctx       context.Context
	cancel    context.CancelFunc
	running   sync.WaitGroup
}

// ListenOn makes the cache listen on a channel from the first request on. The payload "reload
// schema", or none, reloads the catalog. "reload config" calls onConfig, unless nil, which must not
// block. With "" the cache does not listen, and reads the catalog again for [Cache.Reload] only.
// Call it before the cache is used.
func (c *Cache) ListenOn(channel string, onConfig func()) {
	if channel == "" {
		c.listener = nil
		return
	}

	l := &listener{cache: c, channel: pg.Quote(channel), onConfig: onConfig}
	l.ctx, l.cancel = context.WithCancel(c.ctx)
	c.listener = l
}

func (l *listener) start() {
	l.once.Do(func() { l.running.Go(l.run) })
}

// stop stops listening and waits until it has stopped.
func (l *listener) stop() {
	l.cancel()
	l.once.Do(func() {}) // never start
	l.running.Wait()
}

func (l *listener) run() {
	for delay := minRetryDelay; ; {
		start := time.Now()
		err := l.listen()
		lost := l.listening.Swap(false)

		if l.ctx.Err() != nil {
			return
		}

		if time.Since(start) > maxRetryDelay {
			delay = minRetryDelay
		}

		if lost && time.Since(start) > minRetryDelay {
			continue // first retry at once
		}

		l.cache.log.Warn("LISTEN connection lost, reconnecting", "channel", l.channel, "error", err, "delay", delay)

		if tick.Pause(l.ctx, delay) != nil {
			return
		}

		delay = min(2*delay, maxRetryDelay)
	}
}

// listen listens until the connection is lost.
func (l *listener) listen() error {
	acquireCtx, cancel := context.WithTimeout(l.ctx, session.DefaultAcquireTimeout)
	defer cancel()

	pooled, err := l.cache.source.Pool().Acquire(acquireCtx)
	if err != nil {
		return err
	}

	conn := pooled.Hijack() // so that closing the pool does not wait for it
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), time.Second)
		defer cancel()

		_ = conn.Close(ctx)
	}()

	if _, err := conn.Exec(l.ctx, "listen "+l.channel); err != nil {
		return err
	}

	// Notifications sent before LISTEN are missed.
	l.cache.mu.Lock()
	loading := l.cache.loading != nil
	l.cache.mu.Unlock()

	if loading || l.cache.current.Load() != nil {
		l.cache.startRead(true)
	}
	if l.onConfig != nil {
		l.onConfig()
	}

	l.listening.Store(true)

	for {
		n, err := pg.WaitForNotification(l.ctx, conn)
		switch {
		case err != nil:
			return err
		case n.Payload == "" || n.Payload == "reload schema":
			l.cache.startRead(true)
		case n.Payload == "reload config" && l.onConfig != nil:
			l.onConfig()
		}
	}
}
