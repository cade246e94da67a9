// Package pgserver runs a private PostgreSQL: it finds the installed binaries, runs initdb once,
// starts PostgreSQL, waits until it is ready, supervises it and stops it.
//
// The directory contains everything:
//
//	data/             PostgreSQL's data directory
//	data.new/         an incomplete data directory, renamed to data when it is complete
//	data.15/          the data before an upgrade from that version, see [Upgrade]
//	.s.PGSQL.5432     the socket, the only way to connect: only one OS user (and root) can reach it
//	postgresql.log    PostgreSQL's log, preceded by postgresql.log.1; both bounded in size
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

	"github.com/socle-dev/socle/internal/tick"
)

const (
	role = "socle" // the superuser
	port = 5432    // no TCP port: part of the socket's name

	fastStopTimeout      = 20 * time.Second // for terminating sessions and writing a checkpoint
	immediateStopTimeout = 10 * time.Second // PostgreSQL itself kills remaining processes after five seconds
	pollInterval         = 20 * time.Millisecond
	watchInterval        = time.Second
	minBackoff           = 100 * time.Millisecond
	maxBackoff           = 5 * time.Second
	orphansTimeout       = 10 * time.Second

	// A package's files are replaced one after the other, and those of its libraries with them.
	replacementTime = 10 * time.Second
)

// Config configures a [Server].
type Config struct {
	Dir      string            // created if absent
	Binaries Binaries          // from [Find]
	Password string            // superuser "socle": a random ASCII key; fixed when the data directory is created
	Settings map[string]string // additional postgresql.conf settings, which override Socle's
	Log      *slog.Logger      // nil discards

	upgrading       bool          // the data are being upgraded
	replacementTime time.Duration // 0: replacementTime
}

// Server is a running PostgreSQL. It is safe for concurrent use.
type Server struct {
	config  Config
	host    string // directory through which clients reach the socket
	stop    sync.Once
	stopped chan struct{}

	replacedSince time.Time // when Run saw that the program was replaced; zero: it was not

	mu         sync.Mutex // held while PostgreSQL is being started
	postmaster *postmaster
}

// Start creates the data directory if there is none, starts PostgreSQL or adopts a running one, and
// returns when it accepts connections. Crash recovery can take long. If ctx ends first, PostgreSQL
// is stopped again.
func Start(ctx context.Context, c Config) (*Server, error) {
	if c.Password == "" || strings.ContainsAny(c.Password, "\r\n\x00") {
		return nil, errors.New("start PostgreSQL: the password is empty or contains a line break or NUL")
	}

	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.replacementTime == 0 {
		c.replacementTime = replacementTime
	}

	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}

	c.Dir = dir
	s := &Server{config: c, host: socketDir(dir), stopped: make(chan struct{})}
	if s.postmaster, err = s.launch(ctx, (*cluster).create); err != nil {
		return nil, fmt.Errorf("start PostgreSQL in %s: %w", dir, err)
	}

	return s, nil
}

// URL returns a database's connection URI for pgx and for PostgreSQL's client programs. It contains
// the superuser's password.
func (s *Server) URL(database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(role, s.config.Password), Path: "/" + database}
	query := url.Values{"host": {s.host}, "port": {strconv.Itoa(port)}}.Encode()
	u.RawQuery = strings.ReplaceAll(query, "+", "%20") // libpq does not decode a plus as a space

	return u.String()
}

// Run supervises PostgreSQL until ctx ends or Stop is called: it restarts PostgreSQL after a crash
// and after an update of its package, and bounds its log size. It leaves PostgreSQL running. Call
// it once.
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

	tick := time.NewTicker(watchInterval)
	defer tick.Stop()

	for {
		p := s.current()
		select {
		case <-ctx.Done():
			return nil
		case <-p.done:
		case <-tick.C:
			s.maintain()
			s.endReplaced(ctx, p)
		}

		if !p.alive() {
			s.restart(ctx)
		}
	}
}

// maintain bounds the log and recreates the link to the socket, which a temporary file cleaner may
// have removed.
func (s *Server) maintain() {
	if err := rotateLog(s.config.Dir); err != nil {
		s.config.Log.Warn("rotate PostgreSQL's log", "error", err)
	}
	if err := linkSocket(s.config.Dir, s.host); err != nil {
		s.config.Log.Warn("link PostgreSQL's socket", "error", err)
	}
}

// endReplaced ends a PostgreSQL whose program was replaced by another minor version, for Run to
// start the new one: the old one's new sessions would load the new one's libraries, which may fail.
func (s *Server) endReplaced(ctx context.Context, p *postmaster) {
	if !p.isReplaced() {
		s.replacedSince = time.Time{}
		return
	}
	if s.replacedSince.IsZero() {
		s.replacedSince = time.Now()
	}
	if time.Since(s.replacedSince) < s.config.replacementTime {
		return
	}

	s.replacedSince = time.Now() // the next attempt, if this one fails
	b, err := inspect(s.config.Binaries.Dir)
	if err == nil && b.Major() != s.config.Binaries.Major() {
		err = fmt.Errorf("it is PostgreSQL %d now", b.Major())
	}
	if err != nil {
		s.config.Log.Warn("PostgreSQL's program was replaced, and the new one can't be used", "error", err)
		return
	}

	s.config.Log.Warn("PostgreSQL's program was replaced, restarting")
	if err := p.shutdown(ctx); err != nil {
		s.config.Log.Error("end the PostgreSQL whose program was replaced", "error", err)
	}
}

// restart restarts PostgreSQL after a crash, with backoff until it succeeds. It does nothing after
// Stop.
func (s *Server) restart(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.stopping() {
		return
	}

	s.config.Log.Warn("PostgreSQL exited, restarting")

	for backoff := minBackoff; ctx.Err() == nil; backoff = min(2*backoff, maxBackoff) {
		p, err := s.launch(ctx, refuseCreate)
		if err == nil {
			s.postmaster = p
			s.config.Log.Info("PostgreSQL restarted", "pid", p.pid)

			return
		}

		if ctx.Err() == nil {
			s.config.Log.Error("restart PostgreSQL", "error", err, "next", backoff)
		}

		_ = tick.Pause(ctx, backoff)
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

// Stop stops PostgreSQL, adopted or not, terminates its sessions and returns when it has ended, at
// once if it already has. When ctx ends, or after 20 seconds, PostgreSQL stops without a checkpoint
// and recovers at its next start.
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

// refuseCreate replaces cluster.create in a restart: a new empty data directory would look like the
// loss of all data.
func refuseCreate(*cluster, context.Context) error {
	return errors.New("the data directory is missing")
}

// launch returns a PostgreSQL that accepts connections: the running one, or a new one. It calls
// create if there is no data directory. One process at a time launches in a directory.
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

	p, err := c.findPostmaster()
	if err != nil {
		return nil, err
	}

	if p != nil {
		err := s.awaitReady(ctx, p, c)
		if err == nil {
			s.config.Log.Info("adopted a running PostgreSQL", "pid", p.pid)
		}

		if p.alive() {
			return p, err
		} // the adopted PostgreSQL was shutting down
	}

	for start := time.Now(); ; {
		if p, err = c.start(ctx); err != nil {
			return nil, err
		}
		if err = s.awaitReady(ctx, p, c); err == nil {
			return p, nil
		}

		// A killed postmaster's backends notice soon, and use its shared memory until then.
		if p.alive() || !strings.Contains(err.Error(), "pre-existing shared memory block") ||
			time.Since(start) > orphansTimeout || tick.Pause(ctx, 5*pollInterval) != nil {
			return nil, errors.Join(err, p.shutdown(ctx))
		}
	}
}

// awaitReady waits until PostgreSQL accepts connections.
func (s *Server) awaitReady(ctx context.Context, p *postmaster, c *cluster) error {
	for {
		err := ping(ctx, s.URL("postgres"))
		if err == nil {
			return nil
		}

		if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "28P01" { // invalid_password
			return errors.New(
				"the data directory has another password: the secret key that it derives from was lost or " +
					"replaced; restore the key, or move the directory away to start with an empty one")
		}
		if !p.alive() {
			return c.exitReason()
		}
		if tick.Pause(ctx, pollInterval) != nil {
			return fmt.Errorf("PostgreSQL is not ready (%w): %w", err, context.Cause(ctx))
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
