package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// upgradeErrors matches errors in the logs that pg_upgrade's programs write.
var upgradeErrors = regexp.MustCompile(`(?m)^.*(?:error|ERROR|FATAL|could not).*(?:\n.*)?$`)

// maxReport limits pg_upgrade's output in an error, in bytes.
const maxReport = 8 << 10

// ErrUpToDate is [Upgrade]'s failure if the data have the binaries' version.
var ErrUpToDate = errors.New("the data directory has this version already")

// Upgraded is a finished upgrade.
type Upgraded struct {
	From, To  Binaries
	Databases int
	Kept      string // the previous data directory, which nothing uses any more
}

// Upgrade upgrades the data directory to c.Binaries' major version, by pg_upgrade. Both versions
// must be installed; old may be the zero value, then it is found. No server may use the directory.
//
// pg_upgrade copies the data. Upgrade compares the objects in all databases before and after,
// collects statistics for the planner, and keeps the previous data directory. If it fails, the
// directory is as before.
func Upgrade(ctx context.Context, c Config, old Binaries) (Upgraded, error) {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return Upgraded{}, fmt.Errorf("upgrade PostgreSQL: %w", err)
	}

	c.Dir = dir
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}

	upgraded, err := upgrade(ctx, c, old)
	if err != nil {
		return Upgraded{}, fmt.Errorf("upgrade PostgreSQL in %s: %w", dir, err)
	}

	return upgraded, nil
}

func upgrade(ctx context.Context, c Config, old Binaries) (Upgraded, error) {
	if err := recoverInterrupted(ctx, c); err != nil {
		return Upgraded{}, err
	}

	old, err := findOld(ctx, c, old)
	if err != nil {
		return Upgraded{}, err
	}

	c.upgrading = true
	previous := c
	previous.Binaries = old

	var closed []string
	var before map[string]string
	err = withServer(ctx, previous, func(s *Server) (err error) { // also recovers from a crash: pg_upgrade does not
		if closed, err = s.openClosed(ctx); err != nil {
			return err
		}

		before, err = s.inventory(ctx)
		return err
	})
	if err != nil {
		return Upgraded{}, err
	}

	if err := replaceData(ctx, c, old); err != nil {
		return Upgraded{}, errors.Join(err, recoverInterrupted(context.WithoutCancel(ctx), c))
	}

	var after map[string]string
	err = withServer(ctx, c, func(s *Server) (err error) {
		if after, err = s.inventory(ctx); err != nil {
			return err
		}

		return errors.Join(compareInventories(before, after), s.allowConnections(ctx, closed, false))
	})
	if err != nil {
		return Upgraded{}, errors.Join(err, recoverInterrupted(context.WithoutCancel(ctx), c))
	}

	if err := commitUpgrade(ctx, c, old); err != nil {
		return Upgraded{}, err
	}

	if err := analyze(ctx, c); err != nil {
		// queries are slow until it is repeated, and the data are complete
		c.Log.Warn("could not collect statistics: run vacuumdb --all --analyze-only", "error", err)
	}

	return Upgraded{
		From: old, To: c.Binaries, Databases: len(after), Kept: filepath.Join(c.Dir, keptName(old.Major())),
	}, nil
}

// recoverInterrupted undoes an upgrade that was not committed: it returns the previous data
// directory to its place. Nobody has written to the new one: Start refuses it.
func recoverInterrupted(ctx context.Context, c Config) error {
	cl, err := openCluster(ctx, c)
	if err != nil {
		return err
	}
	defer cl.close()

	pending, err := cl.pendingVersion()
	if err != nil || pending == 0 {
		return err
	}

	return errors.Join(cl.root.RemoveAll(dataName), cl.root.Rename(pendingName(pending), dataName), cl.lock.Sync())
}

// The previous data directory is data.15.upgrading until the upgrade is complete, then data.15.
func pendingName(version int) string { return keptName(version) + ".upgrading" }
func keptName(version int) string    { return dataName + "." + strconv.Itoa(version) }

var pendingNames = regexp.MustCompile(`^` + dataName + `\.(\d+)\.upgrading$`)

// pendingVersion returns the version in the data directory that an unfinished upgrade has put
// aside, 0 without one.
func (c *cluster) pendingVersion() (int, error) {
	entries, err := fs.ReadDir(c.root.FS(), ".")
	if err != nil {
		return 0, err
	}

	for _, e := range entries {
		if m := pendingNames.FindStringSubmatch(e.Name()); m != nil {
			return strconv.Atoi(m[1])
		}
	}

	return 0, nil
}

// findOld returns the binaries for the version that created the data.
func findOld(ctx context.Context, c Config, old Binaries) (Binaries, error) {
	cl, err := openCluster(ctx, c)
	if err != nil {
		return old, err
	}
	defer cl.close()

	version, err := cl.dataVersion()
	if err != nil {
		return old, err
	}

	if old.Dir != "" {
		return old, nil
	}

	switch {
	case version == c.Binaries.Major():
		return old, fmt.Errorf("PostgreSQL %d: %w", version, ErrUpToDate)
	case version > c.Binaries.Major():
		return old, fmt.Errorf("the data are of PostgreSQL %d, newer than %d in %s", version, c.Binaries.Major(),
			c.Binaries.Dir)
	}

	for _, b := range Installed() {
		if b.Major() == version {
			return b, nil
		}
	}

	return old, fmt.Errorf("the data can only be read by PostgreSQL %d, which is not installed: install it beside %d "+
		"(Debian: postgresql-%d), or import backups of the projects into a new install", version, c.Binaries.Major(),
		version)
}

// withServer starts PostgreSQL, calls f, and stops it.
func withServer(ctx context.Context, c Config, f func(s *Server) error) error {
	s, err := Start(ctx, c)
	if err != nil {
		return err
	}

	return errors.Join(f(s), s.Stop(context.WithoutCancel(ctx)))
}

// openClosed allows connections to all databases, which pg_upgrade needs, and returns those that
// allowed none before. After a failed upgrade they stay open: Socle closes the one that it needs
// closed, its template, by making it anew.
func (s *Server) openClosed(ctx context.Context) ([]string, error) {
	closed, err := s.databases(ctx,
		`select datname from pg_database where not datallowconn and datname <> 'template0'`)
	if err != nil {
		return nil, err
	}

	return closed, s.allowConnections(ctx, closed, true)
}

// databases returns the names that a query returns.
func (s *Server) databases(ctx context.Context, query string) ([]string, error) {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	rows, _ := conn.Query(ctx, query) // CollectRows has the error
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// allowConnections allows or refuses connections to databases.
func (s *Server) allowConnections(ctx context.Context, names []string, allow bool) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	for _, name := range names {
		statement := fmt.Sprintf("alter database %s allow_connections %t", pgx.Identifier{name}.Sanitize(), allow)
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}

	return nil
}

// inventory counts the objects in each database, in words.
func (s *Server) inventory(ctx context.Context) (map[string]string, error) {
	names, err := s.databases(ctx, `select datname from pg_database where datallowconn`)
	if err != nil {
		return nil, err
	}

	counts := map[string]string{}
	for _, name := range names {
		if counts[name], err = s.countObjects(ctx, name); err != nil {
			return nil, fmt.Errorf("count the objects of database %s: %w", name, err)
		}
	}

	return counts, nil
}

// countObjects counts the users' and the platform's objects in a database, and the roles. Not-null
// constraints are objects from PostgreSQL 18 on. TOAST tables can differ.
func (s *Server) countObjects(ctx context.Context, database string) (counts string, err error) {
	conn, err := pgx.Connect(ctx, s.URL(database))
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))

	err = conn.QueryRow(ctx, `
		with user_schemas as (select oid from pg_namespace where nspname <> 'information_schema' and nspname !~ '^pg_')
		select format('%s relations, %s columns, %s functions, %s types, %s constraints, %s policies, %s triggers, %s extensions, %s roles, %s settings of roles',
			(select count(*) from pg_class where relnamespace in (select oid from user_schemas)),
			(select count(*) from pg_attribute a join pg_class c on c.oid = attrelid
				where relnamespace in (select oid from user_schemas) and attnum > 0 and not attisdropped),
			(select count(*) from pg_proc where pronamespace in (select oid from user_schemas)),
			(select count(*) from pg_type where typnamespace in (select oid from user_schemas)),
			(select count(*) from pg_constraint where connamespace in (select oid from user_schemas) and contype <> 'n'),
			(select count(*) from pg_policy), (select count(*) from pg_trigger where not tgisinternal),
			(select count(*) from pg_extension), (select count(*) from pg_roles where rolname !~ '^pg_'),
			(select count(*) from pg_db_role_setting))`).Scan(&counts)

	return counts, err
}

// compareInventories returns an error that names the first database with other objects.
func compareInventories(before, after map[string]string) error {
	for name, want := range before {
		if got, ok := after[name]; !ok || got != want {
			return fmt.Errorf("database %s had %s, and has %s after the upgrade", name, want, got)
		}
	}

	return nil
}

// replaceData makes a new data directory from the old one, which it puts aside.
func replaceData(ctx context.Context, c Config, old Binaries) error {
	cl, err := openCluster(ctx, c)
	if err != nil {
		return err
	}
	defer cl.close()

	c.Log.Info("upgrading PostgreSQL", "from", old.Version, "to", c.Binaries.Version)
	if err := cl.initialize(ctx); err != nil {
		return err
	}

	for _, check := range []bool{true, false} {
		if err := cl.runUpgrade(ctx, old, check); err != nil {
			return errors.Join(err, cl.root.RemoveAll(newDataName))
		}
	}

	for _, step := range []func() error{
		func() error { return cl.root.Rename(dataName, pendingName(old.Major())) },
		func() error { return cl.root.Rename(newDataName, dataName) },
		cl.lock.Sync,
	} {
		if err := step(); err != nil {
			return err
		}
	}

	return nil
}

// runUpgrade runs pg_upgrade. If check is set, it only checks whether an upgrade is possible.
func (c *cluster) runUpgrade(ctx context.Context, old Binaries, check bool) error {
	dir, err := c.makeWorkDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	args := []string{"--old-bindir=" + old.Dir, "--new-bindir=" + c.config.Binaries.Dir,
		"--old-datadir=" + c.path(dataName), "--new-datadir=" + c.path(newDataName), "--username=" + role,
		"--socketdir=" + dir}
	if check {
		args = append(args, "--check")
	}
	if c.config.Settings["fsync"] == "off" {
		args = append(args, "--no-sync")
	}

	cmd, err := c.command(ctx, "pg_upgrade", args...)
	if err != nil {
		return err
	}
	defer closeFiles(cmd)

	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "PGPASSWORD="+c.config.Password)

	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("pg_upgrade: %w: %s", err, c.upgradeReport(out))
	}

	return nil
}

// makeWorkDir creates a directory for pg_upgrade's scripts and both servers' sockets. It is none of
// the cluster's: PostgreSQL's OS user must reach it by its path, which must be short.
func (c *cluster) makeWorkDir() (string, error) {
	dir, err := os.MkdirTemp("", "socle-upgrade-")
	if err != nil || c.credential == nil {
		return dir, err
	}

	return dir, os.Chown(dir, int(c.credential.Uid), int(c.credential.Gid))
}

// upgradeReport returns the last part of pg_upgrade's output, the object lists that it has written
// into files, and the errors in its logs.
func (c *cluster) upgradeReport(out []byte) string {
	text := bytes.TrimSpace(out)
	report := string(text[max(0, len(text)-maxReport):])

	_ = fs.WalkDir(c.root.FS(), newDataName+"/pg_upgrade_output.d", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}

		content, err := c.root.ReadFile(path)
		if !strings.HasSuffix(path, ".txt") {
			content = bytes.Join(upgradeErrors.FindAll(content, 10), []byte("\n"))
		}
		if len(content) > 0 {
			report += "\n" + filepath.Base(path) + ": " + string(content[:min(len(content), maxReport)])
		}

		return err
	})

	return report
}

// commitUpgrade makes the new data directory the only one, by giving the old one its final name.
func commitUpgrade(ctx context.Context, c Config, old Binaries) error {
	cl, err := openCluster(ctx, c)
	if err != nil {
		return err
	}
	defer cl.close()

	target := keptName(old.Major())
	if err := cl.root.RemoveAll(target); err != nil { // copy from an earlier upgrade, after a return to the old version
		return err
	}
	if err := cl.root.Rename(pendingName(old.Major()), target); err != nil {
		return err
	}

	return cl.lock.Sync()
}

// analyze collects statistics for all databases, which pg_upgrade does not take over.
func analyze(ctx context.Context, c Config) error {
	c.Log.Info("collecting statistics of all databases")

	return withServer(ctx, c, func(s *Server) error { return s.analyze(ctx) })
}

func (s *Server) analyze(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, s.config.Binaries.Path("vacuumdb"), "--all", "--analyze-only", "--quiet",
		"--host="+s.host, "--port="+strconv.Itoa(port), "--username="+role)
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "PGPASSWORD=" + s.config.Password}

	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("vacuumdb: %w: %s", err, bytes.TrimSpace(out))
	}

	return nil
}
