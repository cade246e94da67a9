// Package platform owns the platform database: its handle and migrations, the install's settings
// and keys, projects, and the form index. Each entity has one file with its SQL. Users and
// organizations belong to package account, backup and restore rows to package backup, project
// content to package projectdb, the audit log to package audit.
package platform

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/pg"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Schema is the schema that holds the platform's tables.
const Schema = "platform"

// Migrate migrates the platform database, to which conn is connected. The caller holds the
// migration lock.
func Migrate(ctx context.Context, conn *pgx.Conn) error {
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}

	return pg.Migrate(ctx, conn, Schema, dir)
}

// Store runs operations on the platform database, or in one transaction in it.
type Store struct {
	defaults Settings // settings without an override by an administrator

	db *DB
	q  pg.Querier
	b  pg.Beginner
}

// New returns the store on pool's database.
func New(pool *pgxpool.Pool) *Store {
	s := &Store{defaults: defaultSettings}
	return s.In(NewDB(pool))
}

// WithSignUp returns the store with another default for the setting sign_up.
func (s *Store) WithSignUp(open bool) *Store {
	other := *s
	other.defaults.SignUp = open

	return &other
}

// In returns the store on another handle, such as a transaction's.
func (s *Store) In(db *DB) *Store {
	return &Store{defaults: s.defaults, db: db, q: db.Querier(), b: db.Beginner()}
}

// DB returns the store's handle on the platform database.
func (s *Store) DB() *DB { return s.db }

// InTx is [DB.InTx] with the store in the transaction.
func (s *Store) InTx(ctx context.Context, f func(tx *Store) error) error {
	return s.db.InTx(ctx, func(tx *DB) error { return f(s.In(tx)) })
}

// WithTx returns the store in a transaction that the caller has begun and ends.
func (s *Store) WithTx(tx pgx.Tx) *Store { return s.In(s.db.WithTx(tx)) }

// Audit returns a page of the platform's audit log and the count that matches the filter.
func (s *Store) Audit(ctx context.Context, f audit.Filter, page pg.Page) ([]audit.Recorded, int64, error) {
	return audit.List(ctx, s.q, f, page)
}

// ChainAudit chains pending entries in the platform's audit log, see [audit.Chain].
func (s *Store) ChainAudit(ctx context.Context, key []byte) error {
	return audit.Chain(ctx, s.db.Beginner(), key)
}

// AuditPosition returns the platform's audit log position.
func (s *Store) AuditPosition(ctx context.Context) (audit.Position, error) {
	return audit.PositionOf(ctx, s.q)
}

// Tx returns the store's transaction, see [DB.PgxTx].
func (s *Store) Tx() pgx.Tx { return s.db.PgxTx() }

// Ping fails unless the platform database completes a transaction that takes a lock and is
// committed to disk, as requests do.
func (s *Store) Ping(ctx context.Context) error {
	err := s.InTx(ctx, func(tx *Store) error {
		_, err := pg.Value[bool](ctx, tx.q, `
			select one from platform.instance cross join pg_current_xact_id()
			cross join pg_advisory_xact_lock_shared(hashtextextended('socle readiness ' || pg_backend_pid(), 0))`)
		return err
	})
	if err != nil {
		return fmt.Errorf("platform database: %w", err)
	}

	return nil
}

// ServerVersion returns the PostgreSQL server version and the query's duration.
func (s *Store) ServerVersion(ctx context.Context) (string, time.Duration, error) {
	start := time.Now()
	version, err := pg.Value[string](ctx, s.q, `select current_setting('server_version')`)
	return version, time.Since(start), err
}
