// Package pgcluster manages one PostgreSQL server with project databases: the address and the
// platform's login, the connection budget, project names and logins, the access to other databases,
// and the session watchdog.
//
// It knows projects by their UUID only. Package projectdb owns a project's pools, package lifecycle
// creates and removes databases.
package pgcluster

import (
	"context"
	"encoding/hex"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/token"
)

// ID identifies a cluster within an install.
type ID string

// Default is the cluster with the platform database.
const Default ID = "default"

// Config configures a [Cluster].
type Config struct {
	Server      *pgxpool.Config // the platform's login, see [pg.PrimaryPoolConfig]
	Secret      []byte          // derives login passwords
	Names       Names
	Connections int         // maximum number of open connections to all project databases together
	Memory      MemoryLimit // zero: none

	// Evict closes an idle connection to make room for an owner. It reports false if there is none.
	Evict func(owner fair.Key) bool
	// Altered is called for each project with a login that has changed its own settings.
	Altered func(project uuid.UUID)
	Log     *slog.Logger
}

// Cluster is a PostgreSQL server with project databases. It is safe for concurrent use.
type Cluster struct {
	Names

	server     *pgxpool.Config
	secret     []byte
	budget     *budget
	sessions   *fair.Pool     // client sessions; the rest of the budget is for requests
	supervisor *pg.Supervisor // terminates project logins' abandoned sessions
	watchdog   watchdog
	onAltered  func(project uuid.UUID)
	log        *slog.Logger

	mu      sync.Mutex
	changes map[uuid.UUID]bool // projects with a login that changed its own settings, at the last check
}

// New returns a cluster. It does not connect.
func New(c Config) *Cluster {
	cluster := &Cluster{Names: c.Names, server: c.Server, secret: c.Secret,
		sessions: fair.New(sessionsConfig(c.Connections)), supervisor: pg.NewSupervisor(c.Server.ConnConfig),
		watchdog: watchdog{memory: c.Memory}, onAltered: c.Altered, log: c.Log}
	cluster.budget = newBudget(c.Connections, c.Evict, cluster.EndReason)

	return cluster
}

// Config returns the configuration for connections to a project's database under a login. The
// session is not supervised: see [Cluster.Connect] and [Cluster.Attach].
func (c *Cluster) Config(project uuid.UUID, l Login) *pgx.ConnConfig {
	config := c.TrustedConfig(c.Database(project))
	if l.name != "" {
		config.User = c.Login(project, l)
		config.Password = c.password(config.User)
	}

	return config
}

// TrustedConfig returns the configuration for the platform login's connections to a database.
func (c *Cluster) TrustedConfig(database string) *pgx.ConnConfig {
	config := c.PlatformConfig()
	config.Database = database

	return config
}

// PlatformConfig returns the configuration for connections to the platform database.
func (c *Cluster) PlatformConfig() *pgx.ConnConfig { return c.server.ConnConfig.Copy() }

// PoolConfig returns the configuration for a pool whose connections are configured by config. Each
// takes a slot in the budget, see [Cluster.Attach].
func (c *Cluster) PoolConfig(
	config *pgx.ConnConfig, open *atomic.Int32, owner func(context.Context) fair.Key,
) *pgxpool.Config {
	pool := c.server.Copy()
	pool.ConnConfig = config
	pool.BeforeConnect = func(_ context.Context, config *pgx.ConnConfig) error {
		c.Attach(config, open, owner)
		return nil
	}

	return pool
}

// Attach makes a connection configured by config count in an owner's budget and in open. Its
// session is terminated when it is abandoned, and errors have the watchdog's reason.
func (c *Cluster) Attach(config *pgx.ConnConfig, open *atomic.Int32, owner func(context.Context) fair.Key) {
	report := config.OnPgError
	config.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		c.explain(conn, err)
		return report(conn, err)
	}

	c.supervisor.Supervise(config)
	c.budget.attach(config, open, owner) // outermost: the slot is returned after the session has ended
}

// Connect connects outside the budget, under a project login. The caller closes the connection; an
// abandoned session is terminated.
func (c *Cluster) Connect(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	c.supervisor.Supervise(config)
	return connect(ctx, config)
}

// ConnectTrusted connects to a database under the platform's login. The caller closes the
// connection.
func (c *Cluster) ConnectTrusted(ctx context.Context, database string) (*pgx.Conn, error) {
	return connect(ctx, c.TrustedConfig(database))
}

func connect(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	return conn, pg.Fault(err)
}

// WithConn runs f on a connection of its own to the platform database.
func (c *Cluster) WithConn(ctx context.Context, f func(*pgx.Conn) error) error {
	conn, err := connect(ctx, c.PlatformConfig())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	return pg.Fault(f(conn))
}

// ProgramAddress returns config's connection URI for a PostgreSQL client program, and the password,
// which belongs in a file rather than in a command's arguments.
func (c *Cluster) ProgramAddress(config *pgx.ConnConfig) (address, password string) {
	return pg.ProgramAddress(config, c.server.ConnString(), "-c lock_timeout=30s"), config.Password
}

// Probe opens and closes a connection within the budget. It fails if a request to a project without
// open connections could not connect.
func (c *Cluster) Probe(ctx context.Context) error {
	config := c.PlatformConfig()
	var open atomic.Int32
	c.Attach(config, &open, func(context.Context) fair.Key { return fair.Key{Account: "readiness"} })

	conn, err := connect(ctx, config)
	if err != nil {
		return err
	}

	return conn.Close(ctx)
}

// Connections returns the places for connections to project databases, closing ones included.
func (c *Cluster) Connections() *fair.Pool { return c.budget.places }

// Resize changes the maximum number of open connections. It returns how many are open, which can
// be more for a while: the caller repeats it.
func (c *Cluster) Resize(connections int) (open int) {
	if places := c.budget.places.Stats(); places.Capacity != int64(connections) || places.InUse > places.Capacity {
		c.budget.resize(connections)
		c.sessions.Resize(sessionsConfig(connections))
	}

	return int(c.budget.places.Stats().InUse)
}

// Sessions returns the places for client sessions.
func (c *Cluster) Sessions() *fair.Pool { return c.sessions }

// Pools returns the pools that accounts share, for metrics.
func (c *Cluster) Pools() []*fair.Pool {
	return []*fair.Pool{c.budget.places, c.budget.starts, c.sessions}
}

// Cancel cancels the running statement in a project login's session.
func (c *Cluster) Cancel(ctx context.Context, login string, pid uint32) error {
	return c.supervisor.Cancel(ctx, login, pid)
}

// password derives a login's password from the install's secret, so that no copy is stored
// anywhere.
func (c *Cluster) password(login string) string {
	return hex.EncodeToString(token.Derive(c.secret, "database role "+login))
}

// AcceptedConnections returns how many connections PostgreSQL accepts of logins without privileges.
func AcceptedConnections(ctx context.Context, q pg.Querier) (int, error) {
	return pg.Value[int](ctx, q, `
		select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
			- coalesce(current_setting('reserved_connections', true)::int, 0)`)
}

// ServerVersion returns PostgreSQL's server_version_num, such as 150018.
func ServerVersion(ctx context.Context, q pg.Querier) (int, error) {
	return pg.Value[int](ctx, q, `select current_setting('server_version_num')::int`)
}
