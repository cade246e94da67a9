package apitest

import (
	"context"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pgtest"
)

// connect returns a separate connection pool for the platform database.
func (a *API) connect() *pgxpool.Pool {
	pool, err := pgxpool.New(a.t.Context(), string(a.Config.DatabaseURL))
	if err != nil {
		panic(err) // the server parsed the same address
	}

	a.t.Cleanup(pool.Close)
	return pool
}

// Exec runs a statement on the platform database, bypassing the server.
func (a *API) Exec(sql string, args ...any) {
	a.t.Helper()

	if err := a.TryExec(sql, args...); err != nil {
		a.t.Fatalf("%s: %v", sql, err)
	}
}

// TryExec is like [API.Exec], but returns the error.
func (a *API) TryExec(sql string, args ...any) error {
	_, err := a.platform().Exec(a.t.Context(), sql, args...)
	return err
}

// Value returns the single value from a query on the platform database, bypassing the server.
func Value[T any](a *API, sql string, args ...any) T {
	a.t.Helper()

	rows, err := a.platform().Query(a.t.Context(), sql, args...)
	if err != nil {
		a.t.Fatalf("%s: %v", sql, err)
	}

	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		a.t.Fatalf("%s: %v", sql, err)
	}

	return v
}

// DatabaseName returns the project's database name.
func (a *API) DatabaseName() string { return a.Server.Projects().Database(uuid.MustParse(a.Project)) }

// ConnectProject connects to the project's database as superuser. The connection closes when the
// test ends.
func (a *API) ConnectProject() *pgx.Conn {
	a.t.Helper()

	c, err := pgx.ParseConfig(string(a.Config.DatabaseURL))
	if err != nil {
		a.t.Fatal(err)
	}

	c.Database = a.DatabaseName()
	conn, err := pgx.ConnectConfig(a.t.Context(), c)
	if err != nil {
		a.t.Fatal(err)
	}

	a.t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// ProjectPool returns a separate pool, as superuser, for the project's database. It lasts until the
// test ends, and dials anew after sessions were terminated, as by a restore. A test that holds
// locks or changes its session uses [API.ConnectProject].
func (a *API) ProjectPool() *pgxpool.Pool {
	a.t.Helper()

	pool, err := a.projects.pool(string(a.Config.DatabaseURL), a.DatabaseName())
	if err != nil {
		a.t.Fatal(err)
	}

	return pool
}

// projectPools are the test's own pools by database.
type projectPools struct {
	mu    sync.Mutex
	pools map[string]*pgxpool.Pool
}

func (p *projectPools) pool(url, database string) (*pgxpool.Pool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if pool := p.pools[database]; pool != nil {
		return pool, nil
	}

	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}

	c.ConnConfig.Database = database
	c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec // tests change the tables
	c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return true }

	pool, err := pgxpool.NewWithConfig(context.Background(), c)
	if err != nil {
		return nil, err
	}

	if p.pools == nil {
		p.pools = map[string]*pgxpool.Pool{}
	}

	p.pools[database] = pool
	return pool, nil
}

func (p *projectPools) close() {
	p.mu.Lock()
	defer p.mu.Unlock()

	for _, pool := range p.pools {
		pool.Close()
	}
}

// dropProjects drops project databases with their logins. A server's watchdog reads all logins in
// the PostgreSQL that a binary's tests share.
func dropProjects(ctx context.Context, databases []string) error {
	if err := pgtest.Drop(ctx, databases...); err != nil {
		return err
	}

	for _, name := range databases {
		if err := pgtest.DropRoles(ctx, name+"_"); err != nil {
			return err
		}
	}

	return nil
}
