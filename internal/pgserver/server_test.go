package pgserver

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pgtest/tmpdir"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	testTimeout = 3 * time.Minute
	password    = `a secret: /?#'"\`
)

// noSync are settings that skip syncing, which matters only after a power failure.
var noSync = map[string]string{"fsync": "off", "shared_buffers": "16MB"}

// config returns the configuration of a new PostgreSQL.
func config(t *testing.T) Config {
	t.Helper()

	binaries, err := Find(os.Getenv("SOCLE_POSTGRES_BIN"))
	if err != nil {
		t.Fatal(err)
	}

	return Config{Dir: filepath.Join(t.TempDir(), "pg"), Binaries: binaries, Password: password,
		Settings: noSync, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

// testDir is a directory for the duration of the tests.
var testDir string

func TestMain(m *testing.M) {
	dir, err := tmpdir.New("")
	if err != nil {
		panic(err)
	}

	defer dir.Close()

	testDir = dir.Path
	dir.Use()

	m.Run() // its exit code becomes the binary's when TestMain returns
}

// templateCluster creates the data directory that tests copy.
var templateCluster = sync.OnceValues(func() (dir string, err error) {
	dir = filepath.Join(testDir, "original")

	binaries, err := Find(os.Getenv("SOCLE_POSTGRES_BIN"))
	if err != nil {
		return "", err
	}

	c, err := openCluster(context.Background(), Config{
		Dir:      dir,
		Binaries: binaries,
		Password: password,
		Settings: noSync,
		Log:      slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return "", err
	}
	defer c.close()

	return dir, c.create(context.Background())
})

// clonedConfig returns a configuration with a copy of a data directory, for tests not about
// creating one. Copying takes a tenth of the time of initdb.
func clonedConfig(t *testing.T) Config {
	t.Helper()

	c := config(t)

	dir, err := templateCluster()
	if err != nil {
		t.Fatal(err)
	}

	if out, err := exec.Command("cp", "-Rp", dir, c.Dir).CombinedOutput(); err != nil {
		t.Fatalf("copy the cluster: %v: %s", err, out)
	}

	return c
}

// start starts a server that is stopped when the test ends.
func start(t *testing.T, c Config) *Server {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()

	s, err := Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *Server) {
	t.Helper()

	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()

	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// runServer runs a server's Run until the test ends.
func runServer(t *testing.T, s *Server) {
	t.Helper()

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()

	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func connect(t *testing.T, s *Server) *pgx.Conn {
	t.Helper()

	conn, err := pgx.Connect(t.Context(), s.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func execute(t *testing.T, s *Server, sql string) {
	t.Helper()

	if _, err := connect(t, s).Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// value returns the single text of a query.
func value(t *testing.T, s *Server, sql string) string {
	t.Helper()

	var v string
	if err := connect(t, s).QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}

	return v
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()

	for !holds() {
		if tick.Pause(ctx, pollInterval) != nil {
			t.Fatalf("timeout waiting for: %s", what)
		}
	}
}

func (s *Server) pid() int { return s.current().pid }

func pidFile(t *testing.T, c Config) []string {
	t.Helper()

	text, err := os.ReadFile(filepath.Join(c.Dir, dataName, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}

	return strings.Split(string(text), "\n")
}

func TestStartAgain(t *testing.T) {
	t.Parallel()

	c := clonedConfig(t)
	s := start(t, c)
	execute(t, s, "create table kept as select 'here' as v")
	stop(t, s)
	stop(t, s)

	if s.current().alive() {
		t.Fatal("PostgreSQL runs after Stop")
	}

	s = start(t, c)
	if got, want := value(t, s, "select v from kept"), "here"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStartAdopts(t *testing.T) {
	t.Parallel()

	c := clonedConfig(t)
	first := start(t, c)

	second := start(t, c)
	if first.pid() != second.pid() {
		t.Fatalf("a second PostgreSQL was started: %d beside %d", second.pid(), first.pid())
	}

	execute(t, second, "create table kept as select 'here' as v")

	runServer(t, second)
	kill(t, second.pid())
	eventually(t, "the adopted PostgreSQL is back", func() bool { return second.pid() != first.pid() })

	if got, want := value(t, second, "select v from kept"), "here"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	third := start(t, c)
	stop(t, third)

	if third.current().alive() {
		t.Error("the adopted PostgreSQL runs after Stop")
	}
}

func kill(t *testing.T, pid int) {
	t.Helper()

	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func TestRunRestarts(t *testing.T) {
	t.Parallel()

	c := clonedConfig(t)
	s := start(t, c)
	runServer(t, s)
	execute(t, s, "create table kept as select 'here' as v")

	// A backend that computes does not notice that the postmaster is gone, and PostgreSQL does not
	// start beside it.
	busy := connect(t, s)
	backend := int(busy.PgConn().PID())
	computing := make(chan error, 1)

	go func() {
		_, err := busy.Exec(context.Background(), "do $$ begin loop end loop; end $$")
		computing <- err
	}()

	eventually(t, "the backend computes", func() bool {
		return value(t, s, "select state from pg_stat_activity where pid = "+strconv.Itoa(backend)) == "active"
	})

	before := s.pid()
	kill(t, before)
	eventually(t, "PostgreSQL is back", func() bool { return s.pid() != before })

	if err := <-computing; err == nil {
		t.Error("the endless statement succeeded")
	}

	if got, want := value(t, s, "select v from kept"), "here"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestRunRestartsReplaced updates the package of a running PostgreSQL.
func TestRunRestartsReplaced(t *testing.T) {
	t.Parallel()

	c := clonedConfig(t)
	c.Binaries.Dir = copyPrograms(t, c.Binaries)
	c.replacementTime = time.Nanosecond
	s := start(t, c)
	execute(t, s, "create table kept as select 'here' as v")
	before := s.pid()
	program := c.Binaries.Path("postgres")

	if err := os.Rename(program, program+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(program + ".old"); err != nil {
		t.Fatal(err)
	}
	if !s.current().isReplaced() {
		t.Error("the program is not known to be replaced")
	}
	s.endReplaced(t.Context(), s.current())
	if !s.current().alive() {
		t.Fatal("PostgreSQL ended though there is no program to start")
	}

	copyFile(t, program, filepath.Join(filepath.Dir(program), "original"))
	runServer(t, s)
	eventually(t, "the new program runs", func() bool { return s.pid() != before })

	if got := value(t, s, "select v from kept"); got != "here" || s.current().isReplaced() {
		t.Errorf("got %q, want what was kept, from the new program", got)
	}
}

// copyPrograms returns a directory with PostgreSQL's programs, postgres as a copy, for PostgreSQL's
// user.
func copyPrograms(t *testing.T, b Binaries) string {
	t.Helper()

	dir, err := os.MkdirTemp("/var/tmp", "socle-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}

	for _, name := range programs {
		if err := os.Symlink(b.Path(name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(filepath.Join(dir, "postgres"), filepath.Join(dir, "original")); err != nil {
		t.Fatal(err)
	}
	copyFile(t, filepath.Join(dir, "postgres"), filepath.Join(dir, "original"))

	return dir
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()

	if out, err := exec.Command("cp", "-L", from, to).CombinedOutput(); err != nil {
		t.Fatalf("copy %s: %v: %s", from, err, out)
	}
}

func TestRunCreatesNoCluster(t *testing.T) {
	t.Parallel()

	c := clonedConfig(t)
	var log buffer
	c.Log = slog.New(slog.NewTextHandler(&log, nil))

	s := start(t, c)
	runServer(t, s)

	if err := os.Rename(filepath.Join(c.Dir, dataName), filepath.Join(c.Dir, "away")); err != nil {
		t.Fatal(err)
	}

	kill(t, s.pid())
	eventually(t, "the loss is logged", func() bool {
		return strings.Contains(log.String(), "the data directory is missing")
	})

	if _, err := os.Stat(filepath.Join(c.Dir, dataName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a new data directory was created: %v", err)
	}

	if err := os.Rename(filepath.Join(c.Dir, "away"), filepath.Join(c.Dir, dataName)); err != nil {
		t.Fatal(err)
	}

	eventually(t, "PostgreSQL is back", func() bool { return s.current().alive() })
	execute(t, s, "select")
}

// buffer is a log buffer that is safe for concurrent use.
type buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.text.String()
}

func TestStopEndsRun(t *testing.T) {
	t.Parallel()

	s := start(t, clonedConfig(t))
	done := make(chan error, 1)
	go func() { done <- s.Run(context.Background()) }()

	stop(t, s)
	if err := <-done; err != nil {
		t.Error(err)
	}

	if s.current().alive() {
		t.Error("PostgreSQL runs after Stop")
	}
}

func TestStopAtDeadline(t *testing.T) {
	t.Parallel()

	s := start(t, clonedConfig(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}

	if s.current().alive() {
		t.Error("PostgreSQL runs after Stop")
	}
}

func TestStartsAtOnce(t *testing.T) {
	t.Parallel()

	c := config(t)
	servers := make([]*Server, 3)

	var wg sync.WaitGroup
	for i := range servers {
		wg.Go(func() {
			var err error
			if servers[i], err = Start(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	}

	wg.Wait()

	for _, s := range servers {
		if s == nil {
			continue
		}

		defer stop(t, s)

		if got, want := s.pid(), servers[0].pid(); got != want {
			t.Errorf("more than one PostgreSQL: %d beside %d", got, want)
		}
	}
}
