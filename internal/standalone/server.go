// Package standalone serves the rows API on any PostgreSQL, without the platform, with the settings
// of PostgREST. It owns those settings, the single login for all requests, and the admin port. The
// API itself is in package rest.
package standalone

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/rest"
	"github.com/socle-dev/socle/internal/rest/session"
)

const (
	drainTimeout     = 30 * time.Second // for requests in flight during shutdown
	rolesInterval    = 20 * time.Second // maximum delay before a role's changed settings apply
	statementTimeout = 10 * time.Minute // limit per statement; the role's statement_timeout may be shorter
	maxRetryDelay    = 32 * time.Second // maximum delay between attempts to connect at start
)

// Server serves one database's rows.
type Server struct {
	URL      string // API address
	AdminURL string // address for /live, /ready and /metrics; "" if none

	log       *slog.Logger
	pool      *pgxpool.Pool
	responses *session.Budget // for buffered responses, shared by all configurations
	current   atomic.Pointer[serving]
	settings  atomic.Pointer[map[string]map[string]string] // role settings, by role
	reload    chan struct{}
	changed   chan struct{}  // the configuration changed
	retired   sync.WaitGroup // retired caches

	listener, admin net.Listener
	http, adminHTTP *http.Server
}

// serving is the state for requests under one configuration.
type serving struct {
	Config
	api   *rest.Server
	cache *rest.Cache
}

// Start creates a server; [Server.Run] serves requests. If the database has settings, Start waits
// for the database until ctx ends.
func Start(ctx context.Context, c Config, log *slog.Logger) (*Server, error) {
	s := &Server{
		log:       log,
		responses: session.NewBudget(session.BudgetSize),
		reload:    make(chan struct{}, 1),
		changed:   make(chan struct{}, 1),
	}
	if err := s.start(ctx, c); err != nil {
		s.close()
		return nil, err
	}

	return s, nil
}

func (s *Server) start(ctx context.Context, c Config) error {
	var err error
	if s.pool, err = openPool(ctx, c); err != nil {
		return err
	}

	if c.inDatabase {
		parameters, err := s.awaitParameters(ctx, c)
		if err != nil {
			return err
		}

		if c, err = c.withParameters(parameters); err != nil {
			return fmt.Errorf("settings in the database: %w", err)
		}
	}

	s.settings.Store(&map[string]map[string]string{})
	s.activate(c)

	if s.listener, err = c.addr.listen(); err != nil {
		return fmt.Errorf("server-host, server-port, server-unix-socket: %w", err)
	}

	s.URL = listenerURL(s.listener)
	s.http = newHTTPServer(httpx.Wrap(s.routes(), httpx.Config{Log: s.log, Panicked: writePanic}), s.log)

	if !c.adminAddr.isSet() {
		return nil
	}

	if s.admin, err = c.adminAddr.listen(); err != nil {
		return fmt.Errorf("admin-server-host, admin-server-port, admin-server-unix-socket: %w", err)
	}

	s.AdminURL = listenerURL(s.admin)
	s.adminHTTP = newHTTPServer(s.adminRoutes(), s.log)
	s.adminHTTP.SetKeepAlivesEnabled(false) // one request per connection, see httpx.StrictListener

	return nil
}

// openPool opens the login's pool. Timestamps have the database's time zone.
func openPool(ctx context.Context, c Config) (*pgxpool.Pool, error) {
	config, err := pg.PoolConfig(c.databaseURL, int32(c.pool))
	if err != nil {
		return nil, fmt.Errorf("db-uri: %w", err)
	}

	delete(config.ConnConfig.RuntimeParams, "timezone")

	if login, err := pgconn.ParseConfig(c.databaseURL); err == nil && login.RuntimeParams["timezone"] != "" {
		config.ConnConfig.RuntimeParams["timezone"] = login.RuntimeParams["timezone"]
	}
	if c.api.Session.NoPreparedStatements {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}

	if !c.api.Session.NoPreparedStatements { // a pooler's PIDs are not PostgreSQL's
		supervisor := pg.NewSupervisor(config.ConnConfig)
		config.BeforeConnect = func(_ context.Context, conn *pgx.ConnConfig) error {
			supervisor.Supervise(conn)
			return nil
		}
	}

	config.MaxConnLifetime, config.MaxConnIdleTime = c.maxLifetime, c.maxIdle
	return pgxpool.NewWithConfig(ctx, config)
}

// role returns the pool and the settings for a role. PostgreSQL decides whether the login may
// assume the role.
func (s *Server) role(name string) (rest.Role, bool) {
	if name == "none" { // means the login itself
		return rest.Role{}, false
	}
	return rest.Role{Pool: s.pool, Settings: (*s.settings.Load())[name]}, true
}

// roleSetting is a role's setting, applied to its requests.
type roleSetting struct{ Role, Name, Value string }

// readRoles reads settings for the roles that the login may assume, such as statement_timeout.
func (s *Server) readRoles(ctx context.Context) {
	all, err := pg.All[roleSetting](ctx, s.pool, `
		select r.rolname::text as role, p.name, pg_catalog.substr(c, pg_catalog.strpos(c, '=') + 1) as value
		from pg_catalog.pg_roles r cross join pg_catalog.unnest(r.rolconfig) c
		join pg_catalog.pg_settings p on pg_catalog.lower(p.name) = pg_catalog.lower(pg_catalog.split_part(c, '=', 1)) and (p.context = 'user' or pg_catalog.has_parameter_privilege(p.name, 'set'))
		where pg_catalog.pg_has_role(r.oid, 'member') and p.name <> 'search_path'`)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Warn("read the settings of roles", "error", err)
		}
		return
	}

	settings := map[string]map[string]string{}
	for _, one := range all {
		if settings[one.Role] == nil {
			settings[one.Role] = map[string]string{}
		}
		settings[one.Role][one.Name] = one.Value
	}

	s.settings.Store(&settings)
}

// Run serves requests until ctx ends, then waits for requests in flight. It returns when everything
// has stopped.
func (s *Server) Run(ctx context.Context) error {
	defer s.close()

	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()

	wg.Go(func() { s.refresh(working) })
	failures := make(chan error, 2)
	serve := func(h *http.Server, l net.Listener) {
		wg.Go(func() {
			if err := h.Serve(httpx.StrictListener(l)); !errors.Is(err, http.ErrServerClosed) {
				failures <- err
			}
		})
	}

	serve(s.http, s.listener)

	if s.admin != nil {
		serve(s.adminHTTP, s.admin)
	}

	var err error
	select {
	case <-ctx.Done():
	case err = <-failures:
	}

	s.log.Info("stopping")

	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()

	if s.http.Shutdown(draining) != nil {
		err = errors.Join(err, s.http.Close())
	}
	if s.admin != nil {
		err = errors.Join(err, s.adminHTTP.Close())
	}

	return err
}

// close closes the listeners and the pool, also after a start that failed.
func (s *Server) close() {
	for _, l := range []net.Listener{s.listener, s.admin} {
		if l != nil {
			_ = l.Close() // already closed if it was served
		}
	}

	if now := s.current.Load(); now != nil {
		now.cache.Close()
	}

	s.retired.Wait()

	if s.pool != nil {
		s.pool.Close()
	}
}
