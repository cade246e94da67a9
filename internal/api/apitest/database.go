package apitest

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// connect opens connections of the test's own to the platform database.
func (a *API) connect() *pgxpool.Pool {
	pool, err := pgxpool.New(a.t.Context(), string(a.Config.DatabaseURL))
	if err != nil {
		panic(err) // the server has the same address
	}

	a.t.Cleanup(pool.Close)
	return pool
}

// Exec runs a statement on the platform database, behind the server's back.
func (a *API) Exec(sql string, args ...any) {
	a.t.Helper()

	if err := a.Try(sql, args...); err != nil {
		a.t.Fatalf("%s: %v", sql, err)
	}
}

// Try is [API.Exec] of what may fail.
func (a *API) Try(sql string, args ...any) error {
	_, err := a.platform().Exec(a.t.Context(), sql, args...)
	return err
}

// Value returns what a query of one value finds in the platform database, behind the server's back.
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

// Database returns the name of the database of this API's project.
func (a *API) Database() string { return a.Server.Projects().Database(uuid.MustParse(a.Project)) }

// ProjectDatabase connects to the database of this API's project, as the cluster's superuser. The
// connection is closed when the test ends.
func (a *API) ProjectDatabase() *pgx.Conn {
	a.t.Helper()

	c, err := pgx.ParseConfig(string(a.Config.DatabaseURL))
	if err != nil {
		a.t.Fatal(err)
	}

	c.Database = a.Database()
	conn, err := pgx.ConnectConfig(a.t.Context(), c)
	if err != nil {
		a.t.Fatal(err)
	}

	a.t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}
