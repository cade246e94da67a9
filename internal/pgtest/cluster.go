package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgserver"
)

// cluster is the PostgreSQL of this test binary.
type cluster struct {
	server     *pgserver.Server
	binDir     string        // directory of the programs
	admin      *pgxpool.Pool // of the superuser
	guard      *exec.Cmd
	guardInput io.Closer // standard input of guard
}

// started is the cluster whose guard is running; it may have failed to start.
var started atomic.Pointer[cluster]

// guard stops the PostgreSQL of a test binary and removes its directory. It waits for the end of
// its input, which comes when the binary closes it or ends in any way (a panic, a timeout, kill
// -9). PostgreSQL outlives the process that started it, so cleanup needs a process that outlives
// the test binary. The data is temporary: it skips the checkpoint.
const guard = `
cat >/dev/null
if read -r pid <"$0/cluster/data/postmaster.pid"; then
	kill -QUIT "$pid"
	rounds=0
	while kill -0 "$pid" && [ $((rounds += 1)) -lt 500 ]; do sleep 0.02; done
fi
rm -rf -- "$0"
`

func startCluster() (*cluster, error) {
	binaries, err := pgserver.Find(os.Getenv("SOCLE_POSTGRES_BIN"))
	if err != nil {
		return nil, err
	}

	dir, err := os.MkdirTemp(parentDir(), "socle-pgtest-")
	if err != nil {
		return nil, err
	}

	key := rand.Text()
	c := &cluster{binDir: binaries.Dir, guard: exec.Command("sh", "-c", guard, dir)}
	c.guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // out of reach of the terminal's Ctrl-C
	if c.guardInput, err = c.guard.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.guard.Start(); err != nil {
		return nil, fmt.Errorf("start the guard of the test cluster: %w", err)
	}

	started.Store(c)

	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()

	c.server, err = pgserver.Start(ctx, pgserver.Config{
		Dir: filepath.Join(dir, "cluster"), Binaries: binaries, Password: key,
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

// endCluster makes the guard stop the cluster, if there is one, and waits for it.
func endCluster() {
	if c := started.Load(); c != nil {
		_ = c.guardInput.Close()
		_ = c.guard.Wait()
	}
}

// parentDir returns the parent directory of the cluster: in memory if there is room for many
// databases of some 8 MB, else "" for the directory of temporary files. A new database is 300 new
// files: 10 ms in memory, up to 300 ms on a disk.
func parentDir() string {
	const memory, room = "/dev/shm", 4 << 30
	var s syscall.Statfs_t
	if err := syscall.Statfs(memory, &s); err != nil || s.Bavail*uint64(s.Bsize) < room {
		return ""
	}

	return memory
}
