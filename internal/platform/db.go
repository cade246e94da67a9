package platform

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/pg"
)

// DB is a handle on the platform database, or on one transaction in it. The packages that own
// tables in the database share it. It is safe for concurrent use outside a transaction.
type DB struct {
	pool *pgxpool.Pool // nil in a transaction
	tx   pgx.Tx        // nil outside a transaction
}

// NewDB returns the handle on pool's database.
func NewDB(pool *pgxpool.Pool) *DB { return &DB{pool: pool} }

// WithTx returns the handle on a transaction that the caller has begun and ends.
func (db *DB) WithTx(tx pgx.Tx) *DB { return &DB{tx: tx} }

// InTx runs f in a transaction that ends with an entry in the audit log, see [audit.Write]. Within
// a transaction, f runs in a savepoint.
func (db *DB) InTx(ctx context.Context, f func(tx *DB) error) error {
	return audit.Write(ctx, db.Beginner(), func(tx pgx.Tx) error { return f(db.WithTx(tx)) })
}

// Querier returns the transaction, or the pool outside one.
func (db *DB) Querier() pg.Querier {
	if db.tx != nil {
		return db.tx
	}
	return db.pool
}

// Beginner begins transactions without an audit entry, nested ones inside a transaction.
func (db *DB) Beginner() pg.Beginner {
	if db.tx != nil {
		return db.tx
	}
	return db.pool
}

// PgxTx returns the transaction, for enqueuing jobs in it. It is nil outside a transaction.
func (db *DB) PgxTx() pgx.Tx { return db.tx }

// LockProject locks a project's row until the transaction ends, so that concurrent transactions
// count the project's rows one after the other.
func (db *DB) LockProject(ctx context.Context, project uuid.UUID) error {
	_, err := pg.Exec(ctx, db.Querier(), `select from platform.projects where uuid = @project for no key update`,
		pgx.StrictNamedArgs{"project": project})
	return err
}

// WithLock is [pg.WithPoolLock] for the platform database. Like [DB.WithConn], it needs a handle
// outside a transaction.
func (db *DB) WithLock(ctx context.Context, lock string, key int64, f func() error) (acquired bool, err error) {
	return pg.WithPoolLock(ctx, db.pool, lock, key, func(*pgx.Conn) error { return f() })
}

// WithConn runs f on a connection to the platform database.
func (db *DB) WithConn(ctx context.Context, f func(*pgx.Conn) error) error {
	conn, err := pg.Acquire(ctx, db.pool)
	if err != nil {
		return err
	}
	defer conn.Release()

	return f(conn.Conn())
}
