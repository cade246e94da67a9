package pg

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Prepared executes statements that run no user code, on a pool whose connections [Reset] resets
// after each use. They are prepared, and leave their connection unchanged. Its transactions, and
// everything except Exec and Query, are the pool's own.
type Prepared struct{ *pgxpool.Pool }

// Keys in a connection's custom data.
const (
	hasPrepared = "socle.has_prepared" // it has prepared statements
	isUnchanged = "socle.is_unchanged" // its current use runs no user code
)

// Exec executes a statement and waits for a connection as [Exec] does.
func (p Prepared) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	ctx, cancel := withQueryTimeout(ctx, p.Pool)
	defer cancel()

	conn, err := p.acquire(ctx)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	defer conn.Release()

	return conn.Exec(ctx, sql, asPrepared(args)...)
}

// Query executes a statement. Closing the rows releases the connection.
func (p Prepared) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	conn, err := p.acquire(ctx)
	if err != nil {
		return nil, err
	}

	rows, err := conn.Query(ctx, sql, asPrepared(args)...)
	if err != nil {
		conn.Release()
		return nil, err
	}

	return &pooledRows{Rows: rows, conn: conn}, nil
}

func (p Prepared) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	conn, err := Acquire(ctx, p.Pool)
	if err == nil {
		data := conn.Conn().PgConn().CustomData()
		data[hasPrepared], data[isUnchanged] = true, true
	}

	return conn, err
}

func asPrepared(args []any) []any { return append([]any{pgx.QueryExecModeCacheStatement}, args...) }
