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

// configure returns the configuration of a cluster in a directory.
func configure(dir string) (pgserver.Config, error) {
	binaries, err := pgserver.Find(os.Getenv("SOCLE_POSTGRES_BIN"))

	return pgserver.Config{
		Dir: dir, Binaries: binaries, Password: password,
		Settings: map[string]string{
			// The data is temporary, and several test binaries run at once.
			"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off",
			"shared_preload_libraries": "pg_stat_statements,plpgsql", // otherwise every connection loads PL/pgSQL anew
			"max_connections":          "400",
			"shared_buffers":           "32MB", "min_wal_size": "32MB", "max_wal_size": "256MB",
		},
	}, err
}

func startCluster() (*cluster, error) {

	// A new database is 300 new files: 10 ms in memory, up to 300 ms on a disk.
	dir, err := tmpdir.New(stop)
	if err != nil {
		return nil, err
	}

	config, err := configure(filepath.Join(dir.Path, "cluster"))
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}

	c := &cluster{binDir: config.Binaries.Dir, dir: dir}
	started.Store(c)

	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()

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

// pristine is the name of the data directory in the folder SOCLE_TEST_CLUSTER that has no content.
const pristine = "data"

// origin is the name of the directory that this binary's cluster copies; nil: pristine.
var origin atomic.Pointer[string]

// copyData creates a cluster's data directory by copying one in the folder SOCLE_TEST_CLUSTER,
// which the first test binary in a run makes. Without the variable, [pgserver.Start] creates it. A
// copy takes 60 ms of processor time, and initdb 620 ms.
func copyData(ctx context.Context, config pgserver.Config) error {
	return withFolder(func(folder string) error {
		name := pristine
		if o := origin.Load(); o != nil {
			name = *o
		}

		return copyDir(ctx, filepath.Join(folder, name), filepath.Join(config.Dir, "data"))
	})
}

// Seed makes this binary's cluster begin with the content that fill has made once for all test
// binaries of a run. fill gets the address of database postgres. Seed does nothing without the
// folder SOCLE_TEST_CLUSTER, nor once the cluster runs: fill makes only what its caller makes for
// itself where it is missing.
func Seed(name string, fill func(url string) error) error {
	if started.Load() != nil || origin.Load() != nil {
		return nil
	}

	return withFolder(func(folder string) error {
		if err := makeData(folder, name, fill); err != nil {
			return fmt.Errorf("seed the test cluster with %s: %w", name, err)
		}

		origin.Store(&name)
		return nil
	})
}

// withFolder calls f with the folder SOCLE_TEST_CLUSTER, which no other binary uses meanwhile and
// which has the pristine data directory. Without the variable it does nothing.
func withFolder(f func(folder string) error) error {
	folder := os.Getenv("SOCLE_TEST_CLUSTER")
	if folder == "" {
		return nil
	}

	lock, err := os.Create(filepath.Join(folder, "lock"))
	if err != nil {
		return err
	}
	defer lock.Close()

	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}

	if err := makeData(folder, pristine, func(string) error { return nil }); err != nil {
		return err
	}

	return f(folder)
}

// makeData makes a data directory in a folder, unless it exists: fill adds content to a copy of the
// pristine one. It moves the directory when it is complete.
func makeData(folder, name string, fill func(url string) error) error {
	to := filepath.Join(folder, name)
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		return err
	}

	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()

	config, err := configure(filepath.Join(folder, "cluster"))
	if err != nil {
		return err
	}

	data := filepath.Join(config.Dir, "data")
	if err := os.RemoveAll(data); err != nil { // left by a killed binary
		return err
	}
	if name != pristine {
		if err := copyDir(ctx, filepath.Join(folder, pristine), data); err != nil {
			return err
		}
	}

	s, err := pgserver.Start(ctx, config)
	if err != nil {
		return err
	}

	if err := errors.Join(fill(s.URL("postgres")), s.Stop(ctx)); err != nil {
		return err
	}

	return os.Rename(data, to)
}

func copyDir(ctx context.Context, from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}

	out, err := exec.CommandContext(ctx, "cp", "-a", from, to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}

	return nil
}

// endCluster stops the cluster, if there is one, and removes it.
func endCluster() {
	if c := started.Load(); c != nil {
		_ = c.dir.Close()
	}
}
