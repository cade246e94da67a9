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

// Migrate brings the database of conn up to the newest of the migrations in fsys, one
// transaction each, and notes them in schema's table migrations. The caller holds a lock that keeps others
// from doing the same at the same time. It refuses a database that is ahead of these migrations by
// leaving it alone: a newer release made it, and what that release added must not disturb this one.
func Migrate(ctx context.Context, conn *pgx.Conn, schema string, fsys fs.FS) error {
	done, err := migrated(ctx, conn, schema, fsys)
	if err != nil || done {
		return err
	}

	return MigrateTo(ctx, conn.Config(), schema, fsys, math.MaxInt64)
}

// migrated reports whether the database has all these migrations. Nearly always it has, which one statement tells; to find it out by
// going through them takes reading all of them, and another connection.
func migrated(ctx context.Context, conn *pgx.Conn, schema string, fsys fs.FS) (bool, error) {
	versions, err := Versions(fsys)
	if err != nil {
		return false, err
	}

	count, err := Value[int](ctx, conn,
		"select count(distinct version_id) from "+Quote(schema, "migrations")+
			" where is_applied and version_id = any($1)", versions)
	if state := State(err); state == "42P01" || state == "3F000" { // undefined_table, invalid_schema_name: it is new
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("migrate: %w", err)
	}

	return count == len(versions), nil
}

// Versions returns the numbers of the migrations in fsys, from the oldest to the newest: what their names begin with, in one width.
func Versions(fsys fs.FS) (versions []int64, err error) {
	files, err := fs.Glob(fsys, "*.sql")
	if err != nil {
		return nil, err
	}

	for _, name := range files {
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("migrate: the name %s: %w", name, err)
		}

		versions = append(versions, version)
	}

	return versions, nil
}

// MigrateTo is [Migrate] up to one migration, on the database that c connects to.
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

// Locked runs f while it holds the advisory lock of that key, waiting for whoever holds it now.
// f gets the connection that holds the lock.
func Locked(ctx context.Context, c *pgx.ConnConfig, key int64, f func(*pgx.Conn) error) error {
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return Fault(err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) // ends the session, and the lock with it

	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", key); err != nil {
		return Fault(err)
	}

	return f(conn)
}

// The statements that take an advisory lock: one waits for whoever holds it, the other leaves it to them.
const (
	Waiting = `select pg_advisory_lock($1) is not null`
	Leaving = `select pg_try_advisory_lock($1)`
)

// unlockTime is how long giving a lock back may take, after which the connection is closed, and the lock ends with it.
const unlockTime = 5 * time.Second

// LockedIn runs f while a connection of the pool holds the advisory lock of that key, which lock takes: [Waiting] or [Leaving].
// f gets the connection. It is not run, and mine is false, if the lock is left to whoever holds it.
func LockedIn(
	ctx context.Context, pool *pgxpool.Pool, lock string, key int64, f func(*pgx.Conn) error,
) (mine bool, err error) {
	conn, err := Acquire(ctx, pool)
	if err != nil {
		return false, err
	}
	defer conn.Release()

	if mine, err = Value[bool](ctx, conn, lock, key); err != nil || !mine {
		return false, err
	}

	defer func() {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), unlockTime)
		defer cancel()

		if _, err := conn.Exec(after, "select pg_advisory_unlock($1)", key); err != nil {
			_ = conn.Conn().Close(after)
		}
	}()

	return true, f(conn.Conn())
}
