package pg

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

// Migrate applies the pending migrations in fsys to conn's database, in one transaction each, and
// records them in the schema's table migrations. The caller must hold a lock against concurrent
// migrations. It does nothing to a database that a newer release migrated: both releases run on it.
func Migrate(ctx context.Context, conn *pgx.Conn, schema string, fsys fs.FS) error {
	current, err := isMigrated(ctx, conn, schema, fsys)
	if err != nil || current {
		return err
	}

	return MigrateTo(ctx, conn.Config(), schema, fsys, math.MaxInt64)
}

// isMigrated reports whether all migrations in fsys are applied. Nearly always they are, which
// takes one statement to find out; goose reads all files and opens another connection.
func isMigrated(ctx context.Context, conn *pgx.Conn, schema string, fsys fs.FS) (bool, error) {
	versions, err := Versions(fsys)
	if err != nil {
		return false, err
	}

	count, err := Value[int](ctx, conn,
		"select count(distinct version_id) from "+Quote(schema, "migrations")+
			" where is_applied and version_id = any($1)", versions)
	// undefined_table, invalid_schema_name: a new database
	if state := State(err); state == "42P01" || state == "3F000" {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("migrate: %w", err)
	}

	return count == len(versions), nil
}

// Versions returns the migration versions in fsys in ascending order. They are the numbers, with
// equal width, at the start of the file names.
func Versions(fsys fs.FS) (versions []int64, err error) {
	files, err := fs.Glob(fsys, "*.sql")
	if err != nil {
		return nil, err
	}

	for _, name := range files {
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("migrate: file name %s: %w", name, err)
		}

		versions = append(versions, version)
	}

	return versions, nil
}

// MigrateTo applies the pending migrations up to version to c's database.
func MigrateTo(ctx context.Context, c *pgx.ConnConfig, schema string, fsys fs.FS, version int64) error {
	db := stdlib.OpenDB(*c)
	defer db.Close()

	if _, err := db.ExecContext(ctx, "create schema if not exists "+Quote(schema)); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}

	p, err := goose.NewProvider(goose.DialectPostgres, db, fsys,
		goose.WithTableName(schema+".migrations"), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}

	if _, err := p.UpTo(ctx, version); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}

	return nil
}

// WithLock runs f while it holds an advisory lock, and waits for the lock first. f receives the
// connection that holds the lock.
func WithLock(ctx context.Context, c *pgx.ConnConfig, key int64, f func(*pgx.Conn) error) error {
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return Fault(err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) // also releases the lock

	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", key); err != nil {
		return Fault(err)
	}

	return f(conn)
}

// Statements that take an advisory lock: LockBlocking waits until the lock is free, LockTry does
// not.
const (
	LockBlocking = `select pg_advisory_lock($1) is not null`
	LockTry      = `select pg_try_advisory_lock($1)`
)

// unlockTimeout bounds the release of an advisory lock. After it the connection is closed, which
// releases the lock too.
const unlockTimeout = 5 * time.Second

// WithPoolLock runs f while a pool connection holds an advisory lock. lock is the statement that
// takes it: [LockBlocking] or [LockTry]. f receives the connection. With LockTry, it returns false
// without running f if the lock is held elsewhere.
func WithPoolLock(
	ctx context.Context, pool *pgxpool.Pool, lock string, key int64, f func(*pgx.Conn) error,
) (locked bool, err error) {
	conn, err := Acquire(ctx, pool)
	if err != nil {
		return false, err
	}
	defer conn.Release()

	if locked, err = Value[bool](ctx, conn, lock, key); err != nil || !locked {
		return false, err
	}

	defer func() {
		unlockCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTimeout)
		defer cancel()

		if _, err := conn.Exec(unlockCtx, "select pg_advisory_unlock($1)", key); err != nil {
			_ = conn.Conn().Close(unlockCtx)
		}
	}()

	return true, f(conn.Conn())
}
