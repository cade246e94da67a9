package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pgserver"
	"github.com/socle-dev/socle/internal/pgtest/tmpdir"
)

// cluster is this test binary's PostgreSQL.
type cluster struct {
	server *pgserver.Server
	binDir string        // PostgreSQL binary directory
	admin  *pgxpool.Pool // superuser's pool
	dir    *tmpdir.Dir
}

// started is the cluster that has a directory; it may have failed to start.
var started atomic.Pointer[cluster]

// stop stops a test binary's PostgreSQL, which outlives the process that started it. The data is
// temporary: it skips the checkpoint.
const stop = `
if read -r pid <"$0/cluster/data/postmaster.pid"; then
	kill -QUIT "$pid"
	rounds=0
	while kill -0 "$pid" && [ $((rounds += 1)) -lt 500 ]; do sleep 0.02; done
fi`

// password is the superuser's. Only the tests' OS user reaches the socket.
const password = "password-of-the-test-clusters"

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

	c := &cluster{binDir: binaries.Dir, dir: dir}
	started.Store(c)

	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()

	config := pgserver.Config{
		Dir: filepath.Join(dir.Path, "cluster"), Binaries: binaries, Password: password,
		Settings: map[string]string{
			// The data is temporary, and several test binaries run at once.
			"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off",
			"shared_preload_libraries": "pg_stat_statements,plpgsql", // otherwise every connection loads PL/pgSQL anew
			"max_connections":          "400",
			"shared_buffers":           "32MB", "min_wal_size": "32MB", "max_wal_size": "256MB",
		},
	}
	if err := copyData(ctx, config); err != nil {
		return nil, fmt.Errorf("copy the data of the test cluster: %w", err)
	}

	if c.server, err = pgserver.Start(ctx, config); err != nil {
		return nil, fmt.Errorf("start the test cluster: %w", err)
	}

	if c.admin, err = pgxpool.New(ctx, c.server.URL("postgres")); err != nil {
		return nil, fmt.Errorf("connect to the test cluster: %w", err)
	}

	return c, nil
}

// copyData creates a cluster's data directory by copying the one in the folder SOCLE_TEST_CLUSTER,
// which the first test binary in a run makes. Without the variable, [pgserver.Start] creates it. A
// copy takes 60 ms of processor time, and initdb 620 ms.
func copyData(ctx context.Context, config pgserver.Config) error {
	source := os.Getenv("SOCLE_TEST_CLUSTER")
	if source == "" {
		return nil
	}

	lock, err := os.Create(filepath.Join(source, "lock"))
	if err != nil {
		return err
	}
	defer lock.Close()

	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}

	original := filepath.Join(source, "data")
	if _, err := os.Stat(original); errors.Is(err, fs.ErrNotExist) {
		if err := makeData(ctx, config, filepath.Join(source, "cluster"), original); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return err
	}

	out, err := exec.CommandContext(ctx, "cp", "-a", original, config.Dir+"/").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}

	return nil
}

// makeData makes a data directory in a folder and moves it when it is complete.
func makeData(ctx context.Context, config pgserver.Config, dir, to string) error {
	config.Dir = dir
	s, err := pgserver.Start(ctx, config)
	if err != nil {
		return err
	}

	if err := s.Stop(ctx); err != nil {
		return err
	}

	return os.Rename(filepath.Join(dir, "data"), to)
}

// endCluster stops the cluster, if there is one, and removes it.
func endCluster() {
	if c := started.Load(); c != nil {
		_ = c.dir.Close()
	}
}
