// Package server builds Socle from its configuration. It owns the order of start and stop, the root
// handler with the server's own paths, and the list of application interfaces. It leaves the
// platform API to package api, application requests to package gateway, and the project lifecycle
// to package lifecycle.
package server

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/api"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/build"
	"github.com/socle-dev/socle/internal/bus"
	"github.com/socle-dev/socle/internal/certificate"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/console"
	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fleet"
	"github.com/socle-dev/socle/internal/function"
	"github.com/socle-dev/socle/internal/gateway"
	"github.com/socle-dev/socle/internal/httprequest"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/leaked"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/mail"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/outbound"
	"github.com/socle-dev/socle/internal/outbox"
	"github.com/socle-dev/socle/internal/password"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgproxy"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/queue"
	"github.com/socle-dev/socle/internal/realtime"
	"github.com/socle-dev/socle/internal/realtimeapi"
	"github.com/socle-dev/socle/internal/requestlog"
	"github.com/socle-dev/socle/internal/rest"
	"github.com/socle-dev/socle/internal/rest/session"
	"github.com/socle-dev/socle/internal/submission"
	"github.com/socle-dev/socle/internal/telemetry"
	"github.com/socle-dev/socle/internal/throttle"
	"github.com/socle-dev/socle/internal/tick"
	"github.com/socle-dev/socle/internal/token"
	"github.com/socle-dev/socle/internal/web"
)

const (
	drainTimeout = 30 * time.Second // requests in flight at shutdown
	stopTimeout  = 30 * time.Second // PostgreSQL's stop

	keyringInterval = 15 * time.Second // between checks for a rotated key
)

// Server is a running Socle.
type Server struct {
	URL        string // base URL for clients
	SetupToken string // makes the first user the administrator; "" once there is one

	log           *slog.Logger
	secret        []byte
	lock          *os.File
	database      *Database
	blobs         *blob.Store
	registry      *projectdb.Registry
	replicas      *projectdb.Replicas // nil: none
	notifications *pg.Listener        // notifications from other servers
	servers       *fleet.Servers
	services      *Services
	api           *api.Server
	pages         *web.Pages
	console       *console.Console
	bodies        *fair.Pool      // memory for all request bodies
	responses     *session.Budget // memory for buffered row responses
	gateway       *gateway.Gateway
	events        *event.Logs
	outbox        *outbox.Outbox
	internet      *outbound.Client
	requestsBySQL *httprequest.Sender
	hub           *realtime.Hub
	bus           *bus.Bus
	realtime      *realtimeapi.Server
	functions     *function.Service
	inside        *insideListener
	http          *http.Server
	listener      net.Listener
	certificate   certificate.Source // nil: plain HTTP
	redirect      *redirect
	metrics       *metrics
	telemetry     *telemetry.Telemetry
	requests      *requestlog.Recorder
	proxy         *pgproxy.Proxy
	postgres      *pgproxy.Listener // nil: no PostgreSQL clients but through the API

	readiness readiness
}

// Start builds a server that is ready to serve. It answers requests once [Server.Run] is called. On
// failure it stops everything that it started.
func Start(ctx context.Context, c config.Config, log *slog.Logger) (*Server, error) {
	limitMemory()

	s := &Server{log: slog.New(truncatingHandler{log.Handler()})}
	if err := s.start(ctx, c, log); err != nil {
		return nil, errors.Join(err, s.close())
	}

	return s, nil
}

func (s *Server) start(ctx context.Context, c config.Config, log *slog.Logger) error {
	if err := checkCertificates(c); err != nil {
		return err
	}

	var err error
	if s.lock, err = lockFolder(c.DataDir); err != nil {
		return err
	}
	if s.secret, err = c.LoadSecretKey(); err != nil {
		return err
	}
	if s.listener, err = net.Listen("tcp", c.Addr); err != nil {
		return fmt.Errorf("%w: choose another address with --addr or SOCLE_ADDR", err)
	}
	if err := bus.CheckAddr(c.ClusterAddr); err != nil {
		return err
	}
	if s.redirect, err = newRedirect(c); err != nil {
		return err
	}

	registry := prometheus.NewRegistry()
	if s.telemetry, err = telemetry.New(ctx, build.Version(), registry, s.log); err != nil {
		return err
	}

	s.log = slog.New(truncatingHandler{s.telemetry.LogHandler(log.Handler())})
	if s.metrics, err = newMetrics(c.MetricsAddr, registry, s.telemetry.ExportsMetrics()); err != nil {
		return err
	}

	s.URL = c.BaseURL(s.listener.Addr())

	if s.blobs, err = openBlobs(ctx, c, s.log); err != nil {
		return err
	}
	if s.database, err = openDatabase(ctx, c, s.secret, true, s.log); err != nil {
		return err
	}
	if s.registry, err = s.database.Registry(ctx, s.secret, s.log); err != nil {
		return err
	}

	if s.replicas, err = s.database.Replicas(c); err != nil {
		return err
	}

	if err := s.registry.TerminateOrphans(ctx, s.database.Pool, s.database.Store.ExistingProjects); err != nil {
		// the watchdog ends those beyond a limit
		s.log.Error("could not end orphaned sessions", "error", err)
	}

	quiet := throttle.New(s.log)
	s.notifications = pg.NewListener(s.database.Pool.Config().ConnConfig, quiet)
	platform.HoldClaims(s.notifications)
	s.servers = fleet.New(fleet.Config{Platform: s.database.Pool, Notifications: s.notifications, Log: quiet})

	return s.assemble(ctx, c)
}

// assemble builds the handlers and the background services, each from those above it.
func (s *Server) assemble(ctx context.Context, c config.Config) error {
	accounts, err := s.newAccounts(ctx, c)
	if err != nil {
		return err
	}

	s.internet = outbound.New(c.OutboundNetworks)
	s.inside = newInsideListener()
	s.functions = s.newFunctions(c, s.internet)
	domains := NewDomains(DomainsConfig{Database: s.database, Projects: s.registry, Blobs: s.blobs,
		Queue: accounts.Queue, Accounts: accounts, Outbound: s.internet, Functions: s.functions,
		Leaked: leaked.New(c.LeakedPasswords), Log: s.log})
	variants := object.NewVariants(s.blobs, domains.Cleaner.Discard)
	s.bodies, s.responses = httpx.NewBodyPool(rest.BodyPoolSize), session.NewSharedBudget(session.BudgetSize)
	s.events = event.NewLogs(s.log)
	s.realtime = s.newRealtime(c)
	s.requestsBySQL = httprequest.NewSender(s.internet, s.log)
	s.outbox = s.newOutbox(domains)
	s.gateway = s.newGateway(domains, c.PublicURL, variants)
	s.registry.Subscribe(s.notifications, s.gateway.Forget)

	s.proxy = pgproxy.New(pgproxy.Config{Projects: s.registry, Platform: s.database.Store.DB(),
		AuditKey: s.registry.AuditKey(), Notifications: s.notifications, Log: s.log})
	s.services = NewServices(ServicesConfig{Domains: domains, Database: s.database,
		Lifecycle: lifecycle.New(lifecycle.Config{Store: s.database.Store, Registry: s.registry, Blobs: s.blobs,
			OnChange: s.projectChanged, Log: s.log}),
		Clients: s.proxy, Outbox: s.outbox, Notifications: s.notifications, Log: s.log})
	s.registry.OnWrite(s.written)
	s.buildInterfaces(c, variants)

	if err := s.listenPostgres(c); err != nil {
		return err
	}

	if err := s.services.Lifecycle.Finish(ctx); err != nil {
		// retried every few seconds; the other projects work
		s.log.Error("could not finish interrupted changes", "error", err)
	}

	if err := s.outbox.Load(ctx); err != nil {
		s.log.Warn("could not load the marks of projects with work", "error", err) // found later, within seconds
	}

	hasAdministrator, err := accounts.Claimed(ctx)
	if err != nil {
		return err
	}
	if !hasAdministrator {
		s.SetupToken = accounts.SetupToken
	}

	if s.certificate, err = s.openCertificate(c); err != nil {
		return err
	}

	s.requests = requestlog.NewRecorder(s.database.Store, s.log)
	s.metrics.watchBackups(s.services.Backups, s.log)
	s.metrics.watchState(s)
	s.http = newHTTPServer(s.telemetry.Middleware(s.newHandler(c), s.URL), s.log)

	return nil
}

// newAccounts returns the account service, with the queue.
func (s *Server) newAccounts(ctx context.Context, c config.Config) (*account.Service, error) {
	mails, err := mail.New(string(c.SMTPURL), c.MailFrom, s.log)
	if err != nil {
		return nil, err
	}

	keyring, err := s.database.Keyring(ctx, s.secret)
	if err != nil {
		return nil, err
	}

	jobs, err := queue.New(queue.Config{Pool: s.database.Pool, River: s.database.QueuePool, Log: throttle.New(s.log),
		Tracer: s.telemetry.Tracer()})
	if err != nil {
		return nil, err
	}

	return account.New(account.Config{
		Store:      s.database.Store,
		RateLimit:  c.RateLimit,
		Passwords:  password.New(c.PasswordMin),
		Keyring:    keyring,
		Queue:      jobs,
		Sender:     mails,
		PublicURL:  s.URL,
		SetupToken: hex.EncodeToString(token.Derive(s.secret, "set-up token")[:16]),
		LinkKey:    token.Derive(s.secret, "one-time links"),
		RefreshKey: token.Derive(s.secret, "refresh tokens"),
		FactorKey:  token.Derive(s.secret, "second factors"),
		Log:        s.log,
	}), nil
}

// buildInterfaces builds the platform API, the pages and the console.
func (s *Server) buildInterfaces(c config.Config, variants *object.Variants) {
	d, auditKey := s.database, s.registry.AuditKey()
	submissions := submission.New(submission.Config{Platform: d.Store, Projects: s.registry, Blobs: s.blobs, Log: s.log,
		Attempts: s.services.Accounts.Attempts, Accounts: s.services.Accounts, Notifier: s.services.Notifier})

	s.api = api.New(api.Config{Variants: variants, Platform: d.Store, Accounts: s.services.Accounts, Bodies: s.bodies,
		Projects: s.registry, Blobs: s.blobs, Lifecycle: s.services.Lifecycle, Queue: s.services.Queue,
		Backups: s.services.Backups, Cleaner: s.services.Cleaner, TableJobs: s.services.TableJobs,
		Submissions: submissions, Migrations: s.services.Migrations, EndUsers: s.services.EndUsers, PublicURL: s.URL,
		Schedules: s.services.Schedules, Webhooks: s.services.Webhooks, Functions: s.functions, Realtime: s.realtime,
		Proxy: s.proxy, AuditKey: auditKey, AnswerKey: token.Derive(s.secret, "kept answers"),
		SigningKey: token.Derive(s.secret, "signed URLs"), Settings: c.Shown(),
		Requests: s.services.Requests, Log: s.log, ClaimHolder: s.notifications.PID, DescribeRows: s.describeRows})

	s.pages = web.New(web.Config{Accounts: s.services.Accounts, Submissions: submissions, Bodies: s.bodies,
		EndUsers: s.services.EndUsers, PublicURL: s.URL, AuditKey: auditKey})
	s.console = console.New(console.Config{Accounts: s.services.Accounts, PublicURL: s.URL, AuditKey: auditKey})
}

// listenPostgres listens for PostgreSQL clients, if that is configured.
func (s *Server) listenPostgres(c config.Config) error {
	if c.PostgresAddr == "" {
		return nil
	}

	var err error
	if s.postgres, err = s.proxy.Listen(c.PostgresAddr, c.PostgresTLSCert, c.PostgresTLSKey); err != nil {
		return fmt.Errorf("listen for PostgreSQL clients: %w", err)
	}

	return nil
}

// PostgresAddr returns the address for PostgreSQL clients, or nil.
func (s *Server) PostgresAddr() net.Addr {
	if s.postgres == nil {
		return nil
	}
	return s.postgres.Addr()
}

// Handler returns the root handler.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// Projects returns the project registry, for benchmarks.
func (s *Server) Projects() *projectdb.Registry { return s.registry }

// Services returns the services, for tests that do the periodic work at once.
func (s *Server) Services() *Services { return s.services }

// Run serves until ctx ends or a service fails. It then drains the requests in flight and stops
// everything else in dependency order. It returns when all is stopped.
func (s *Server) Run(ctx context.Context) error {
	working, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()

	// The first failure stops the server, so later ones are dropped.
	failures := make(chan error, 1)
	fail := func(name string, err error) {
		select {
		case failures <- fmt.Errorf("%s: %w", name, err):
		default:
		}
	}

	var wg sync.WaitGroup
	run := func(name string, f func(context.Context) error) {
		wg.Go(func() {
			if err := f(working); err != nil && working.Err() == nil {
				fail(name, err)
			}
		})
	}

	run("queue", s.services.Queue.Run)
	run("projects", s.registry.Run)
	run("replicas", s.runReplicas)
	run("watchdog", s.registry.Watch)
	run("sizes", s.services.Lifecycle.WatchSizes)
	run("audit", s.registry.WatchAudit)
	run("listener", s.notifications.Run)
	run("servers", s.bus.Run)
	run("connections", s.divide)
	run("keys", s.refreshKeyring)
	run("requests", s.requests.Run)
	run("schedules", s.services.Schedules.Run)
	run("webhooks", s.services.Webhooks.Run)
	run("functions", s.functions.Run)
	run("metrics", s.metrics.run)
	run("redirect", s.redirect.run)
	run("telemetry", s.telemetry.Run)

	if s.postgres != nil {
		run("PostgreSQL clients", s.postgres.Run)
	}

	listener := httpx.StrictListener(s.listener)
	if s.certificate != nil {
		run("certificate", s.certificate.Run)
		listener = httpx.StrictTLSListener(s.listener, s.certificate.TLSConfig())
	}

	run("http", func(context.Context) error { return s.serveHTTP(listener) })
	run("http of functions", func(context.Context) error { return s.serveHTTP(httpx.StrictListener(s.inside)) })

	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWatching()

	var watch sync.WaitGroup
	watch.Go(func() {
		if err := s.database.Run(watching); err != nil && watching.Err() == nil {
			fail("PostgreSQL", err)
		}
	})

	var err error
	select {
	case <-ctx.Done():
	case err = <-failures:
	}
	s.log.Info("stopping")
	err = errors.Join(err, s.stopServing(ctx))
	stopWork()
	wg.Wait()
	stopWatching()
	watch.Wait()

	return errors.Join(err, s.close())
}

// serveHTTP serves the connections of a listener until the server stops.
func (s *Server) serveHTTP(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}

	return nil
}

// stopServing ends the client connections. Requests have drainTimeout to end.
func (s *Server) stopServing(ctx context.Context) error {
	draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()

	s.realtime.Close() // clients connect to another server at once

	var err error
	if s.http.Shutdown(draining) != nil {
		err = s.http.Close()
	}
	s.events.Close()
	s.outbox.Close()
	s.requestsBySQL.Close()

	if s.postgres != nil {
		err = errors.Join(err, s.postgres.Close())
	}

	s.proxy.Close()
	s.gateway.Close()

	return err
}

// refreshKeyring loads signing keys rotated by other servers.
func (s *Server) refreshKeyring(ctx context.Context) error {
	for range tick.Every(ctx, keyringInterval) {
		keyring, err := s.database.Keyring(ctx, s.secret)
		if err != nil {
			s.log.Warn("could not reload signing keys", "error", err) // the current keys stay valid
			continue
		}

		s.services.Accounts.SetKeyring(keyring)
	}

	return nil
}

// close releases everything that Start has acquired so far.
func (s *Server) close() error {
	var errs []error
	if s.listener != nil {
		if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}

	if s.postgres != nil {
		if err := s.postgres.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}

	if s.database != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()

		errs = append(errs, s.database.Close(ctx))
	}

	if s.blobs != nil {
		errs = append(errs, s.blobs.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}

	return errors.Join(errs...)
}
