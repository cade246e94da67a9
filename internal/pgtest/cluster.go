package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgserver"
	"github.com/socle-dev/socle/internal/pgtest/tmpdir"
)

// cluster is the PostgreSQL of this test binary.
type cluster struct {
	server *pgserver.Server
	binDir string        // directory of the programs
	admin  *pgxpool.Pool // of the superuser
	dir    *tmpdir.Dir
}

// started is the cluster that has a directory; it may have failed to start.
var started atomic.Pointer[cluster]

// stop stops the PostgreSQL of a test binary, which outlives the process that started it. The data
// is temporary: it skips the checkpoint.
const stop = `
if read -r pid <"$0/cluster/data/postmaster.pid"; then
	kill -QUIT "$pid"
	rounds=0
	while kill -0 "$pid" && [ $((rounds += 1)) -lt 500 ]; do sleep 0.02; done
fi`

func startCluster() (*cluster, error) {
	binaries, err := pgserver.Find(os.Getenv("SOCLE_POSTGRES_BIN"))
	if err != nil {
		return nil, err
	}

	// A new database is 300 new files: 10 ms in memory, up to 300 ms on a disk.
	dir, err := tmpdir.New(stop)
	if err != nil {
		return nil, err
	}

	key := rand.Text()
	c := &cluster{binDir: binaries.Dir, dir: dir}
	started.Store(c)

	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()

	c.server, err = pgserver.Start(ctx, pgserver.Config{
		Dir: filepath.Join(dir.Path, "cluster"), Binaries: binaries, Password: key,
		Settings: map[string]string{
			// The data is temporary, and several test binaries run at once.
			"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off",
			"shared_preload_libraries": "pg_stat_statements,plpgsql", // otherwise every connection loads PL/pgSQL anew
			"max_connections":          "400",
			"shared_buffers":           "32MB", "min_wal_size": "32MB", "max_wal_size": "256MB",
		},
	})
	if err != nil {
		return nil, fmt.Errorf("start the test cluster: %w", err)
	}

	if c.admin, err = pgxpool.New(ctx, c.server.URL("postgres")); err != nil {
		return nil, fmt.Errorf("connect to the test cluster: %w", err)
	}

	// Tests connect very often: make that as cheap as for a project's logins.
	return c, c.exec(ctx, "alter role current_user password "+pg.Literal(pg.SCRAMVerifier(key)))
}

// endCluster stops the cluster, if there is one, and removes it.
func endCluster() {
	if c := started.Load(); c != nil {
		_ = c.dir.Close()
	}
}
