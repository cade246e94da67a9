// Package pgserver runs a private PostgreSQL: it finds the installed binaries, makes the
// cluster once, starts it, waits until it is ready, watches it and stops it last.
//
// The cluster's folder holds all there is of it:
//
//	data/             PostgreSQL's data directory
//	data.new/         a cluster in the making: it becomes data when it is complete
//	.s.PGSQL.5432     the socket, the only way in: the folder is open to one account only (and to root)
//	postgresql.log    PostgreSQL's log, with postgresql.log.1 before it; both bounded
//
// A PostgreSQL that outlived the process that started it is adopted at the next [Start].
package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	role = "socle" // the cluster's superuser
	port = 5432    // no TCP port: a part of the socket's name

	fastStop      = 20 * time.Second // for sessions to be ended and a checkpoint to be written
	immediateStop = 10 * time.Second // PostgreSQL itself kills what lingers after five seconds
	pause         = 20 * time.Millisecond
	watch         = time.Second
	firstBackoff  = 100 * time.Millisecond
	lastBackoff   = 5 * time.Second
	lingering     = 10 * time.Second
)

// Config says what to run.
type Config struct {
	Dir      string            // the cluster's folder; made if it is absent
	Binaries Binaries          // as Find returned them
	Password string            // of the superuser "socle"; a cluster keeps the one that it was made with
	Settings map[string]string // further settings of postgresql.conf, stronger than our own
	Log      *slog.Logger      // nil: nothing is logged
}

// Server is a running PostgreSQL. Its methods may be called from any goroutine.
type Server struct {
	config  Config
	host    string // the folder by which clients reach the socket
	stop    sync.Once
	stopped chan struct{}

	mu         sync.Mutex // held while PostgreSQL is being started
	postmaster *postmaster
}

// Start makes the cluster if there is none, starts PostgreSQL or adopts the one that already
// runs in the folder, and returns when it accepts connections. A recovery can take
// long; ctx bounds it, and a PostgreSQL that did not get ready by then is stopped again.
func Start(ctx context.Context, c Config) (*Server, error) {
	if c.Password == "" || strings.ContainsAny(c.Password, "\r\n\x00") {
		return nil, errors.New("start PostgreSQL: the password is empty or has a line break")
	}

	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}

	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}

	c.Dir = dir
	s := &Server{config: c, host: socketFolder(dir), stopped: make(chan struct{})}
	if s.postmaster, err = s.launch(ctx, (*cluster).create); err != nil {
		return nil, fmt.Errorf("start PostgreSQL in %s: %w", dir, err)
	}

	return s, nil
}

// URL returns the address of a database for pgx and for PostgreSQL's own programs. It holds the
// superuser's password.
func (s *Server) URL(database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(role, s.config.Password), Path: "/" + database}
	query := url.Values{"host": {s.host}, "port": {strconv.Itoa(port)}}.Encode()
	u.RawQuery = strings.ReplaceAll(query, "+", "%20") // libpq takes a plus for a plus

	return u.String()
}

// Run watches PostgreSQL until ctx ends or Stop is called: it starts PostgreSQL again when it
// has died, and keeps its log bounded. It leaves PostgreSQL running. Run it once.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	go func() {
		select {
		case <-s.stopped:
			cancel()
		case <-ctx.Done():
		}
	}()

	tick := time.NewTicker(watch)
	defer tick.Stop()

	for {
		p := s.current()
		select {
		case <-ctx.Done():
			return nil
		case <-p.done:
		case <-tick.C:
			s.tidy()
		}

		if !p.alive() {
			s.revive(ctx)
		}
	}
}

// tidy keeps up what time wears off: the log's bound, and a link that a cleaner of temporary folders removed.
func (s *Server) tidy() {
	if err := boundLog(s.config.Dir); err != nil {
		s.config.Log.Warn("bound PostgreSQL's log", "error", err)
	}
	if err := linkSocket(s.config.Dir, s.host); err != nil {
		s.config.Log.Warn("link PostgreSQL's socket", "error", err)
	}
}

// revive starts a PostgreSQL that has died, as often as it takes, unless it died because Stop was called.
func (s *Server) revive(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.stopping() {
		return
	}

	s.config.Log.Warn("PostgreSQL has ended; it is started again")

	for backoff := firstBackoff; ctx.Err() == nil; backoff = min(2*backoff, lastBackoff) {
		p, err := s.launch(ctx, lost)
		if err == nil {
			s.postmaster = p
			s.config.Log.Info("PostgreSQL is back", "pid", p.pid)

			return
		}

		if ctx.Err() == nil {
			s.config.Log.Error("start PostgreSQL again", "error", err, "next", backoff)
		}

		sleep(ctx, backoff)
	}
}

func (s *Server) stopping() bool {
	select {
	case <-s.stopped:
		return true
	default:
		return false
	}
}

// Stop stops PostgreSQL, adopted or not, and returns when it has ended: at once if it
// already has. Its clients' sessions are ended. When ctx ends, or after twenty seconds,
// PostgreSQL leaves without a checkpoint and recovers at its next start.
func (s *Server) Stop(ctx context.Context) error {
	s.stop.Do(func() { close(s.stopped) })

	err := s.current().shutdown(ctx)
	if err != nil {
		return fmt.Errorf("stop PostgreSQL in %s: %w", s.config.Dir, err)
	}

	return unlinkSocket(s.config.Dir, s.host)
}

func (s *Server) current() *postmaster {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.postmaster
}

// lost stands in for making a cluster when there has been one: an empty one in its place would
// look like the loss of everything.
func lost(*cluster, context.Context) error { return errors.New("the cluster is gone from its folder") }

// launch returns a PostgreSQL that accepts connections: the one that runs already, or a new one. If there is
// no cluster, it calls create. One process at a time launches in a folder.
func (s *Server) launch(ctx context.Context, create func(*cluster, context.Context) error) (*postmaster, error) {
	c, err := openCluster(ctx, s.config)
	if err != nil {
		return nil, err
	}
	defer c.close()

	if err = c.check(); errors.Is(err, fs.ErrNotExist) {
		err = create(c, ctx)
	}

	if err != nil {
		return nil, err
	}
	if err := linkSocket(s.config.Dir, s.host); err != nil {
		return nil, err
	}

	p, err := c.running()
	if err != nil {
		return nil, err
	}

	if p != nil {
		err := s.ready(ctx, p, c)
		if err == nil {
			s.config.Log.Info("a PostgreSQL that runs already is adopted", "pid", p.pid)
		}

		if p.alive() {
			return p, err
		} // else it was on its way out
	}

	for given := time.Now(); ; {
		if p, err = c.start(ctx); err != nil {
			return nil, err
		}
		if err = s.ready(ctx, p, c); err == nil {
			return p, nil
		}

		// Processes of one that was killed notice it in a moment, and have its memory until then.
		if p.alive() || !strings.Contains(err.Error(), "pre-existing shared memory block") ||
			time.Since(given) > lingering || !sleep(ctx, 5*pause) {
			return nil, errors.Join(err, p.shutdown(ctx))
		}
	}
}

// ready waits until PostgreSQL accepts connections.
func (s *Server) ready(ctx context.Context, p *postmaster, c *cluster) error {
	for {
		err := ping(ctx, s.URL("postgres"))
		if err == nil {
			return nil
		}

		if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "28P01" { // invalid_password
			return errors.New(
				"the cluster was made with another password: the secret key that it comes from was lost or " +
					"replaced; give the key back, or move the folder away to begin with an empty cluster")
		}
		if !p.alive() {
			return c.epitaph()
		}
		if !sleep(ctx, pause) {
			return fmt.Errorf("it is not ready (%w): %w", err, context.Cause(ctx))
		}
	}
}

func ping(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()

	conn, err := pgconn.Connect(ctx, url)
	if err != nil {
		return err
	}

	return conn.Close(ctx)
}

// sleep waits and reports true, or false as soon as ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()

	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
