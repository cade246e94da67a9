package server

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fleet"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/password"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgcluster"
	"github.com/socle-dev/socle/internal/pgserver"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/queue"
	"github.com/socle-dev/socle/internal/token"
)

const (
	migrationLock       = 0x50c1e_0001 // arbitrary key for the advisory lock on platform migrations
	platformPool        = 20           // connections at most; creating, pausing and purging projects take up to eight
	maxPlatformWaiting  = 4096         // callers without a connection
	queuePool           = 2            // connections for short queries, beside River's LISTEN connection
	platformDatabase    = "socle"
	startTimeout        = 60 * time.Second // PostgreSQL's start, including recovery
	signingKeyRetention = 2 * time.Hour    // longer than an access token's TTL
)

// Database is the PostgreSQL behind the platform: a private one, or an existing one.
type Database struct {
	URL       string
	Pool      *pgxpool.Pool
	QueuePool *pgxpool.Pool // the queue's own pool, so that neither pool blocks the other
	Store     *platform.Store
	Binaries  pgserver.Binaries
	places    *fair.Pool       // connections of Pool
	accepted  int              // connections that PostgreSQL accepts, once Registry was called
	projects  projectdb.Config // the registry's configuration, once Registry was called
	private   *pgserver.Server // nil unless PostgreSQL is private
	lock      *os.File         // data folder lock, if a command opened the database
	hasOwner  bool             // another process started PostgreSQL and will stop it
}

// CheckDataDir fails if the private PostgreSQL has no data yet. Only a starting server creates
// them: a check that creates its own subject would say nothing.
func CheckDataDir(c config.Config) error {
	if c.DatabaseURL != "" {
		return nil
	}

	if _, err := os.Stat(filepath.Join(c.DataDir, "postgres")); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there are no data of a server in %s; set SOCLE_DATA_DIR to its data folder", c.DataDir)
	}

	return nil
}

// OpenDatabase opens the database for a command. A server can be running or not.
func OpenDatabase(ctx context.Context, c config.Config, log *slog.Logger) (d *Database, secret []byte, err error) {
	lock, err := lockFolder(c.DataDir)
	busy := errors.Is(err, errBusy)
	if err != nil && !busy {
		return nil, nil, err
	}

	if secret, err = c.LoadSecretKey(); err == nil {
		d, err = openDatabase(ctx, c, secret, !busy, log)
	}

	if err != nil {
		if lock != nil {
			err = errors.Join(err, lock.Close())
		}
		return nil, nil, err
	}

	d.lock, d.hasOwner = lock, busy
	return d, secret, nil
}

// Migrate migrates the platform database and all project databases.
func Migrate(ctx context.Context, c config.Config, log *slog.Logger) error {
	d, secret, err := OpenDatabase(ctx, c, log)
	if err != nil {
		return err
	}

	return errors.Join(d.migrateProjects(ctx, c, secret, log), d.Close(context.WithoutCancel(ctx)))
}

func (d *Database) migrateProjects(ctx context.Context, c config.Config, secret []byte, log *slog.Logger) error {
	registry, err := d.Registry(ctx, secret, log)
	if err != nil {
		return err
	}

	blobs, err := blob.OpenConfigured(c)
	if err != nil {
		return err
	}
	defer blobs.Close()

	return lifecycle.New(lifecycle.Config{Store: d.Store, Registry: registry, Blobs: blobs, Log: log}).Finish(ctx)
}

// openDatabase opens the configured PostgreSQL, or starts the private one, and migrates the
// platform database. Several servers can call it at once. Set exclusive if this process holds the
// data folder lock.
func openDatabase(
	ctx context.Context, c config.Config, secret []byte, exclusive bool, log *slog.Logger,
) (*Database, error) {
	binaries, err := pgserver.Find(c.PostgresBin)
	if err != nil {
		return nil, err
	}

	d := &Database{URL: string(c.DatabaseURL), Binaries: binaries}
	if d.URL == "" {
		if err := d.startPrivate(ctx, c, secret, exclusive, log); err != nil {
			return nil, err
		}
	}

	if err := d.prepare(ctx, c.SignUp, log); err != nil {
		return nil, errors.Join(err, d.Close(context.WithoutCancel(ctx)))
	}

	return d, nil
}

// UpgradePostgres upgrades the private PostgreSQL to the newest installed version. No server may
// use the data folder.
func UpgradePostgres(ctx context.Context, c config.Config, log *slog.Logger) (pgserver.Upgraded, error) {
	if c.DatabaseURL != "" {
		return pgserver.Upgraded{}, errors.New(
			"SOCLE_DATABASE_URL names a PostgreSQL of your own: upgrade it by its own tools")
	}

	lock, err := lockFolder(c.DataDir)
	if err != nil {
		return pgserver.Upgraded{}, err
	}
	defer lock.Close()

	secret, err := c.LoadSecretKey()
	if err != nil {
		return pgserver.Upgraded{}, err
	}

	binaries, err := pgserver.Find(c.PostgresBin)
	if err != nil {
		return pgserver.Upgraded{}, err
	}

	return pgserver.Upgrade(ctx, privateConfig(c, binaries, secret, log), pgserver.Binaries{})
}

// privateConfig returns the private PostgreSQL's configuration.
func privateConfig(c config.Config, b pgserver.Binaries, secret []byte, log *slog.Logger) pgserver.Config {
	return pgserver.Config{
		Dir: filepath.Join(c.DataDir, "postgres"), Binaries: b, Log: log,
		Password: hex.EncodeToString(token.Derive(secret, "database superuser")),
	}
}

func (d *Database) startPrivate(
	ctx context.Context, c config.Config, secret []byte, exclusive bool, log *slog.Logger,
) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	private, err := pgserver.Start(ctx, privateConfig(c, d.Binaries, secret, log))
	if err != nil {
		return err
	}

	d.private, d.URL = private, private.URL(platformDatabase)

	if err := createPlatformDatabase(ctx, private.URL("postgres"), exclusive); err != nil {
		return errors.Join(fmt.Errorf("private PostgreSQL: %w", err), private.Stop(context.WithoutCancel(ctx)))
	}

	return nil
}

// createPlatformDatabase creates a private PostgreSQL's platform database. If exclusive is set, it
// first ends the sessions of a killed server.
func createPlatformDatabase(ctx context.Context, url string, exclusive bool) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	if exclusive {
		if err := pgcluster.TerminateSessions(ctx, conn); err != nil {
			return err
		}
	}

	exists, err := pg.Value[bool](ctx, conn, `select exists (select from pg_database where datname = $1)`,
		platformDatabase)
	if err != nil {
		return err
	}

	if exists {
		return nil
	}

	_, err = conn.Exec(ctx, "create database "+pg.Quote(platformDatabase))
	return err
}

// prepare opens the pools, and closes and migrates the platform database. signUp is the setting's
// default.
func (d *Database) prepare(ctx context.Context, signUp bool, log *slog.Logger) error {
	pool, err := pg.PrimaryPoolConfig(d.URL, platformPool)
	if err != nil {
		return err
	}

	if d.private == nil {
		if err := pgcluster.CheckFitness(ctx, pool.ConnConfig); err != nil {
			return fmt.Errorf("platform database: %w", err)
		}
	}

	river := pool.Copy()
	river.MaxConns = queuePool

	d.places = fair.New(platformPlaces(platformPool))
	pg.Share(pool, d.places, httpx.Share)
	if d.Pool, err = pgxpool.NewWithConfig(ctx, pool); err != nil {
		return fmt.Errorf("platform database: %w", err)
	}
	if d.QueuePool, err = pgxpool.NewWithConfig(ctx, river); err != nil {
		return fmt.Errorf("platform database: %w", err)
	}

	d.Store = platform.New(d.Pool).WithSignUp(signUp)

	_, err = pg.WithPoolLock(ctx, d.Pool, pg.LockBlocking, migrationLock, func(conn *pgx.Conn) error {
		if err := pgcluster.CloseDatabases(ctx, conn, log, conn.Config().Database); err != nil {
			return err
		}
		if err := platform.Migrate(ctx, conn); err != nil {
			return err
		}
		if err := platform.EnableStatementStats(ctx, conn); err != nil {
			return fmt.Errorf("platform database: %w", err)
		}

		return queue.Migrate(ctx, d.Pool)
	})

	return err
}

// platformPlaces configures the platform database's connection slots. Each account and the server's
// own work leave a fifth to others.
func platformPlaces(connections int) fair.Config {
	return fair.Config{Name: "platform_connections", Capacity: int64(connections), Reserve: int64(connections / 5),
		Waiting: maxPlatformWaiting}
}

// DatabaseNames returns the naming scheme for project databases.
func (d *Database) DatabaseNames(ctx context.Context) (pgcluster.Names, error) {
	key, err := d.Store.NameKey(ctx)
	if err != nil {
		return pgcluster.Names{}, err
	}

	return pgcluster.NewNames(key)
}

// Registry opens the registry for the projects in this PostgreSQL.
func (d *Database) Registry(ctx context.Context, secret []byte, log *slog.Logger) (*projectdb.Registry, error) {
	accepted, err := pgcluster.AcceptedConnections(ctx, d.Pool)
	if err != nil {
		return nil, err
	}

	others, err := fleet.Running(ctx, d.Pool)
	if err != nil {
		return nil, err
	}

	d.accepted = accepted
	share := fleet.First(accepted, others, d.private == nil)
	d.resize(ctx, share.Platform)

	names, err := d.DatabaseNames(ctx)
	if err != nil {
		return nil, err
	}

	server, err := pg.PrimaryPoolConfig(d.URL, platformPool)
	if err != nil {
		return nil, err
	}

	d.projects = projectdb.Config{Server: server, Secret: secret, Names: names, Connections: share.Projects,
		FindAccount: d.Store.AccountOf, Log: log}
	if d.private != nil {
		d.projects.Memory = pgcluster.MemoryLimit{Bytes: pgserver.ProjectMemoryLimit(),
			OfProcess: pgserver.PrivateMemory}
	}

	r := projectdb.NewRegistry(d.projects)
	if err := pgcluster.CloseDatabases(ctx, d.Pool, log, pgcluster.InitdbDatabases...); err != nil {
		return nil, err
	}

	if ready, err := lifecycle.Prepared(ctx, d.Pool); err != nil || ready {
		return r, err
	}

	return r, lifecycle.Prepare(ctx, r.Platform())
}

// Replicas returns the standbys that answer reads, nil if there are none. Call Registry before.
func (d *Database) Replicas(c config.Config) (*projectdb.Replicas, error) {
	if c.ReplicaURL == "" {
		return nil, nil
	}

	standbys, err := projectdb.ReplicaConfigs(string(c.ReplicaURL))
	if err != nil {
		return nil, fmt.Errorf("SOCLE_REPLICA_URL: %w", err)
	}

	return projectdb.NewReplicas(projectdb.ReplicasConfig{Config: d.projects, Standbys: standbys}), nil
}

// resize changes the maximum number of connections to the platform database, and returns how many
// are open, which can be more for a while.
func (d *Database) resize(ctx context.Context, connections int) (open int) {
	d.places.Resize(platformPlaces(connections))
	return pg.Shrink(ctx, d.Pool, connections)
}

// Keyring returns the keys for access tokens. The first server generates the first key. It fails if
// the install's secret does not open a stored key, since a replacement would end every session.
func (d *Database) Keyring(ctx context.Context, secret []byte) (*token.Keyring, error) {
	ring, err := d.storedKeys(ctx, secret)
	if err != nil || ring != nil {
		return ring, err
	}

	err = pg.WithLock(ctx, d.Pool.Config().ConnConfig, migrationLock, func(*pgx.Conn) error {
		if ring, err = d.storedKeys(ctx, secret); err != nil || ring != nil {
			return err
		}

		key, err := d.newSigningKey(ctx, secret)
		ring = token.NewKeyring(key)

		return err
	})

	return ring, err
}

// storedKeys returns the stored keys, nil if there are none.
func (d *Database) storedKeys(ctx context.Context, secret []byte) (*token.Keyring, error) {
	rows, err := d.Store.SigningKeys(ctx, signingKeyRetention)
	if err != nil || len(rows) == 0 {
		return nil, err
	}

	keys := make([]token.Key, len(rows))
	for i, k := range rows {
		if keys[i], err = token.OpenKey(k.ID, k.Sealed, secret); err != nil {
			return nil, fmt.Errorf(
				"wrong secret key for this install (SOCLE_SECRET_KEY, or secret.key in the data folder): %w", err,
			)
		}
	}

	return token.NewKeyring(keys[0], keys[1:]...), nil
}

// RotateKey generates a new signing key for access tokens. Tokens signed with the previous keys
// stay valid until they expire.
func (d *Database) RotateKey(ctx context.Context, secret []byte) error {
	return pg.WithLock(ctx, d.Pool.Config().ConnConfig, migrationLock, func(*pgx.Conn) error {
		_, err := d.newSigningKey(ctx, secret)
		return err
	})
}

// CreateAdministrator creates an administrator, whose password needs at least minimum characters.
func (d *Database) CreateAdministrator(
	ctx context.Context, minimum int, username, email, secret string,
) (account.User, error) {
	accounts := account.New(account.Config{Store: d.Store, Passwords: password.New(minimum)})
	return accounts.CreateAdministrator(ctx, username, email, secret)
}

func (d *Database) newSigningKey(ctx context.Context, secret []byte) (token.Key, error) {
	key, err := token.NewKey()
	if err != nil {
		return key, err
	}

	ciphertext, err := key.Seal(secret)
	if err != nil {
		return key, err
	}

	return key, d.Store.RotateSigningKey(ctx, key.ID, ciphertext)
}

// Run supervises the private PostgreSQL until ctx ends.
func (d *Database) Run(ctx context.Context) error {
	if d.private == nil {
		<-ctx.Done()
		return nil
	}

	return d.private.Run(ctx)
}

// Close closes the pools, stops the private PostgreSQL and releases the data folder lock.
func (d *Database) Close(ctx context.Context) error {
	for _, pool := range []*pgxpool.Pool{d.QueuePool, d.Pool} {
		if pool != nil {
			pool.Close()
		}
	}

	var err error
	if d.private != nil && !d.hasOwner {
		err = d.private.Stop(ctx)
	}
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
	}

	return err
}
