package projectdb

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
)

// poolKind describes a project's connections for one purpose.
type poolKind struct {
	login    pgcluster.Login
	size     int32             // connections per project
	settings map[string]string // at the start of a session
	execMode pgx.QueryExecMode // for pools with user code

	runsUserCode bool // in its sessions, see [Project.guard]
	reset        bool // each session is reset before the next use; otherwise the user does that
	writes       bool // each use may be a write, see [Registry.OnWrite]
}

const (
	poolSize     = 4
	rowsPoolSize = 10              // for each rows API login
	resetTimeout = 5 * time.Second // for resetting a session

	// trustedLockTimeout bounds the platform statements' wait for a lock: the project's owner may
	// lock storage.objects, and so the files below it, for as long as the watchdog allows.
	trustedLockTimeout = "30s"
)

// RequestPath is the initial search_path for the request and service logins.
const RequestPath = `"public", "extensions"`

// User code could replace a named prepared statement, so pools that run it have none.
var (
	trustedPool = &poolKind{login: pgcluster.Trusted, size: poolSize,
		settings: map[string]string{"lock_timeout": trustedLockTimeout}}

	ownerPool = &poolKind{login: pgcluster.Owner, size: poolSize,
		execMode: pgx.QueryExecModeDescribeExec, runsUserCode: true, reset: true, writes: true}

	// The rows API resets the session in the request's round trip.
	requestPool = &poolKind{login: pgcluster.Request, size: rowsPoolSize,
		settings: map[string]string{"search_path": RequestPath},
		execMode: pgx.QueryExecModeDescribeExec, runsUserCode: true}
	servicePool = &poolKind{login: pgcluster.Service, size: rowsPoolSize,
		settings: map[string]string{"search_path": RequestPath},
		execMode: pgx.QueryExecModeDescribeExec, runsUserCode: true}

	// Questions about rights reset the session in the statement's round trip.
	questionsPool = &poolKind{login: pgcluster.Request, size: poolSize,
		execMode: pgx.QueryExecModeDescribeExec, runsUserCode: true}

	// SQL of developers as a caller of the application. It has connections of its own, so that long
	// statements leave those of the rows API alone.
	callerPool = &poolKind{login: pgcluster.Request, size: poolSize,
		execMode: pgx.QueryExecModeDescribeExec, runsUserCode: true, reset: true, writes: true}

	// All statements on end users are written in this tree, so pgx keeps their descriptions. No
	// project function or operator is found without a schema.
	authPool = &poolKind{login: pgcluster.Auth, size: poolSize,
		settings: map[string]string{"search_path": "auth"},
		execMode: pgx.QueryExecModeCacheDescribe, runsUserCode: true, reset: true}
)

// newPool returns a pool for the project. It connects on demand.
func (p *Project) newPool(k *poolKind) *pgxpool.Pool {
	c := p.cluster.PoolConfig(p.cluster.Config(p.UUID, k.login), &p.open, p.Key)
	c.MaxConns = k.size

	switch {
	case k.runsUserCode:
		c.ConnConfig.DefaultQueryExecMode = k.execMode
		p.guard(c)
	case !p.inactive:
		rejectClosed(c)
	}

	if k.reset {
		c.AfterRelease = resetSession
	}

	if k.writes {
		c.ConnConfig.Tracer = writeTracer{c.ConnConfig.Tracer, p}
	}

	maps.Copy(c.ConnConfig.RuntimeParams, k.settings)
	p.gate.attach(c)

	pool, err := pgxpool.NewWithConfig(context.Background(), c) // connects lazily, so only an invalid config fails
	if err != nil {
		panic("projectdb: pool: " + err.Error())
	}

	return pool
}

// resetSession resets a session after user code, and reports whether it can be used again.
func resetSession(conn *pgx.Conn) bool {
	ctx, cancel := context.WithTimeout(context.Background(), resetTimeout)
	defer cancel()

	return pg.Reset(ctx, conn) == nil
}

// guardSettings take precedence over a login's own settings.
var guardSettings = map[string]string{
	"client_encoding": "UTF8", "standard_conforming_strings": "on",
	"default_transaction_read_only": "off", "synchronous_commit": "on",
	"statement_timeout": "0", "lock_timeout": "0",
	"idle_in_transaction_session_timeout": "0", "idle_session_timeout": "0",
	"tcp_user_timeout": "0", "client_connection_check_interval": "0",
}

// guard protects a project login's pool from user code, which can change the session and the
// login's own password and settings. If a session cannot begin, for a wrong password or a missing
// library, all project logins are reset before the next one. The same happens when the watchdog
// finds changed settings.
func (p *Project) guard(c *pgxpool.Config) {
	maps.Copy(c.ConnConfig.RuntimeParams, guardSettings)

	report := c.ConnConfig.OnPgError
	c.ConnConfig.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		if err.SeverityUnlocalized == "FATAL" && !isServerState(err.Code) {
			p.loginsAltered.Store(true)
		}

		return report(conn, err)
	}

	connect := c.BeforeConnect
	c.BeforeConnect = func(ctx context.Context, conn *pgx.ConnConfig) error {
		if err := p.resetAltered(ctx); err != nil {
			return err
		}
		return connect(ctx, conn)
	}
}

// resetAltered resets the project's logins if one was altered or rejected. A standby gets that from
// the primary.
func (p *Project) resetAltered(ctx context.Context) error {
	if p.registry.standby || !p.loginsAltered.CompareAndSwap(true, false) {
		return nil
	}

	p.registry.log.Warn("resetting altered or rejected logins of a project", "project", p.UUID)

	if err := p.cluster.ResetLogins(ctx, p.UUID); err != nil {
		p.loginsAltered.Store(true)
		return err
	}

	return nil
}

// rejectClosed makes the platform login's connections fail on a closed database, too: a request
// that began earlier must not continue in a paused project. Resuming, upgrading and removing a
// project uses no pool.
func rejectClosed(c *pgxpool.Config) {
	prepare := c.AfterConnect
	c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if err := prepare(ctx, conn); err != nil {
			return err
		}

		isClosed, err := pg.Value[bool](ctx, conn,
			`select datconnlimit = 0 from pg_database where datname = current_database()`)
		if err == nil && isClosed {
			err = ErrClosed
		}

		return err
	}
}

// serverStates are the SQLSTATEs for FATAL errors that come from the server, a closed database or a
// terminated session, not from a changed login.
var serverStates = []string{
	"53300", // too_many_connections
	"55000", // object_not_in_prerequisite_state: the database takes no connections
	"3D000", // invalid_catalog_name
	"57P01", // admin_shutdown
	"57P02", // crash_shutdown
	"57P03", // cannot_connect_now
}

func isServerState(code string) bool { return slices.Contains(serverStates, code) }
