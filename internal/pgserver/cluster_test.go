package pgserver

import (
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestStartCreatesPrivateCluster(t *testing.T) {
	t.Parallel()

	c := config(t)
	s := start(t, c)

	got := map[string]string{}
	rows, _ := connect(t, s).
		Query(t.Context(), `select name, setting from pg_settings where name in ('listen_addresses', 'wal_level',
		'data_checksums', 'server_encoding', 'password_encryption', 'max_connections', 'fsync', 'TimeZone')`)

	var name, setting string
	if _, err := pgx.ForEachRow(rows, []any{&name, &setting}, func() error {
		got[name] = setting
		return nil
	}); err != nil {
		t.Fatal(err)
	}

	want := map[string]string{"listen_addresses": "", "wal_level": "logical", "data_checksums": "on",
		"server_encoding": "UTF8", "password_encryption": "scram-sha-256", "max_connections": "200", "fsync": "off",
		"TimeZone": "UTC"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("settings (-got +want):\n%s", diff)
	}

	if got, want := value(t, s,
		"select string_agg(distinct auth_method, ' ') from pg_hba_file_rules"), "scram-sha-256"; got != want {
		t.Errorf("ways to log in: got %q, want %q", got, want)
	}
	if got, want := value(t, s,
		"select substr(rolpassword, 1, 16) from pg_authid where rolname = current_user"), "SCRAM-SHA-256$1:"; got != want {
		t.Errorf("the superuser's verifier: got %q, want %q and one iteration", got, want)
	}
	if got, want := value(t, s,
		"select string_agg(v, '' order by v) || upper('é') from unnest(array['b', 'é', 'a', 'B', '_']) v"),
		"B_abéÉ"; got != want {
		t.Errorf("order and case of text: got %q, want %q", got, want)
	}
	if got := pidFile(t, c)[5]; got != "" { // the address of the first TCP socket
		t.Errorf("PostgreSQL listens on %q", got)
	}

	info, err := os.Stat(c.Dir)
	if err != nil {
		t.Fatal(err)
	}

	if got, want := info.Mode().Perm(), os.FileMode(0o700); got != want {
		t.Errorf("mode of the directory: got %o, want %o", got, want)
	}
	if left, err := os.ReadFile(filepath.Join(c.Dir, "password")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the password is still on disk: %q, %v", left, err)
	}

	process, err := os.Stat(filepath.Join(c.Dir, dataName, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}

	if ownerUID(process) == 0 {
		t.Error("PostgreSQL runs as root")
	}
	if session, err := syscall.Getpgid(s.pid()); err != nil || session != s.pid() {
		t.Errorf("process group of PostgreSQL %d: got %d, %v", s.pid(), session, err)
	}
}

func TestStartAfterACrash(t *testing.T) {
	t.Parallel()

	c := clonedConfig(t)
	s := start(t, c)
	execute(t, s, "create table kept as select 'here' as v")
	kill(t, s.pid())
	<-s.current().done

	// The PID in the file now belongs to another process of PostgreSQL's OS user.
	other := exec.Command("sleep", "1000")

	cl, err := openCluster(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}

	other.SysProcAttr = &syscall.SysProcAttr{Credential: cl.credential}
	lines := pidFile(t, c)

	if err := other.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	})

	lines[0] = strconv.Itoa(other.Process.Pid)
	err = errors.Join(cl.write(dataName+"/postmaster.pid", strings.Join(lines, "\n")),
		cl.write(socketName+".lock", strings.Join(lines, "\n")))

	cl.close()

	if err != nil {
		t.Fatal(err)
	}

	s = start(t, c)
	if got, want := value(t, s, "select v from kept"), "here"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the other process is gone: %v", err)
	}
}

func TestStartReplacesIncompleteCluster(t *testing.T) {
	t.Parallel()

	c := config(t)
	half := filepath.Join(c.Dir, newDataName)
	if err := os.MkdirAll(filepath.Join(half, "base"), 0o700); err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(filepath.Join(half, "PG_VERSION"), []byte("15\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	s := start(t, c)
	if got, want := value(t, s, "select 'ready'"), "ready"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	if _, err := os.Stat(half); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the incomplete data directory still exists: %v", err)
	}
}

func TestStartFromACopy(t *testing.T) {
	t.Parallel()

	c := clonedConfig(t)
	s := start(t, c)
	execute(t, s, "create table kept as select 'here' as v; checkpoint")

	// A copy contains the PID file and the socket of a running PostgreSQL and belongs to the OS
	// user that made it.
	copied := c
	copied.Dir += "-copy"
	if out, err := exec.Command("cp", "-R", c.Dir, copied.Dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	other := start(t, copied)
	if s.pid() == other.pid() {
		t.Fatal("the PostgreSQL of another directory was adopted")
	}

	if got, want := value(t, other, "select v from kept"), "here"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAnotherPassword(t *testing.T) {
	t.Parallel()

	c := clonedConfig(t)
	s := start(t, c)
	wrong := c
	wrong.Password = "another"

	check := func(err error) {
		t.Helper()

		if err == nil || !strings.Contains(err.Error(), "another password") ||
			strings.Contains(err.Error(), wrong.Password+`"`) {
			t.Errorf("got %v", err)
		}
	}

	_, err := Start(t.Context(), wrong)
	check(err)

	if !s.current().alive() {
		t.Error("a PostgreSQL that another server started was stopped")
	}

	stop(t, s)
	_, err = Start(t.Context(), wrong)
	check(err)

	if _, err := os.Stat(filepath.Join(c.Dir, dataName, "postmaster.pid")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("PostgreSQL was left running: %v", err)
	}

	for _, bad := range []string{"", "a\nb", "a\x00b"} {
		c.Password = bad
		if _, err := Start(t.Context(), c); err == nil {
			t.Errorf("password %q was accepted", bad)
		}
	}
}

func TestStartErrors(t *testing.T) {
	t.Parallel()

	c := clonedConfig(t)
	stop(t, start(t, c))

	tests := map[string]struct {
		change func(c *Config)
		want   string
	}{
		"an invalid setting": {func(c *Config) {
			c.Settings = map[string]string{"wal_level": "nonsense"}
		}, `invalid value for parameter "wal_level"`},
		"binaries of another major": {func(c *Config) {
			c.Binaries.Version += 10000
		}, "created by PostgreSQL " + strconv.Itoa(c.Binaries.Version/10000)},
		"a file in the way": {func(c *Config) { c.Dir = filepath.Join(c.Dir, logName) }, "not a directory"},
		"another thing named data": {func(c *Config) {
			c.Dir = t.TempDir()
			if err := os.MkdirAll(filepath.Join(c.Dir, dataName, "other"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, "is not a data directory"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := c
			test.change(&c)

			s, err := Start(t.Context(), c)
			if err == nil {
				stop(t, s)
			}

			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	t.Parallel()

	c := clonedConfig(t)
	stop(t, start(t, c))

	held, err := openCluster(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 10*pollInterval)
	defer cancel()

	_, err = Start(ctx, c)
	held.close()

	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}

	ctx, cancel = context.WithCancel(t.Context())
	cancel()

	for _, dir := range []string{c.Dir, c.Dir + "-new"} {
		c := c
		c.Dir = dir
		if s, err := Start(ctx, c); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
			if err == nil {
				stop(t, s)
			}
		}
	}

	if _, err := os.Stat(filepath.Join(c.Dir, dataName, "postmaster.pid")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("PostgreSQL was left running: %v", err)
	}
}

func TestPasswordRequired(t *testing.T) {
	t.Parallel()

	s := start(t, clonedConfig(t))
	u, err := url.Parse(s.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}

	u.User = url.UserPassword(role, "guess")
	_, err = pgx.Connect(t.Context(), u.String())
	if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "28P01" {
		t.Errorf("got %v, want 28P01", err)
	}
}
