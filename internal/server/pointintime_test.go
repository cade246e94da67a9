package server_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/socle-dev/socle/internal/pgserver"
)

// TestPointInTime follows the manual's section on pgBackRest word for word, except for paths. It
// restores a database and a storage folder to a point in time.
func TestPointInTime(t *testing.T) {
	t.Parallel()

	if _, err := exec.LookPath("pgbackrest"); err != nil {
		t.Fatal("pgBackRest is missing: make pgbackrest")
	}

	c := newOperatorPostgres(t)

	manual := fencedBlocks(t, "### To any point in time")
	if len(manual) != 5 {
		t.Fatalf(
			"the manual has %d blocks, want configuration, settings, commands for backups, for files and to go back",
			len(manual),
		)
	}

	for i := range manual {
		for _, path := range []string{
			"/var/lib/pgbackrest", "/var/lib/postgresql/15/main", "/srv/socle/storage", "/srv/copy",
		} {
			manual[i] = strings.ReplaceAll(manual[i], path, filepath.Join(c.dir, path))
		}
	}

	config, settings, backUp, keep, back := manual[0], manual[1], manual[2], manual[3], manual[4]

	c.run("mkdir -p " + c.data + " var/lib/pgbackrest srv/socle/storage/projects srv/copy log lock")
	c.run("initdb --no-sync --auth=trust --username=postgres " + c.data)
	c.write("pgbackrest.conf", config)

	c.write(c.data+"/postgresql.conf",
		settings+
			fmt.Sprintf(
				"\nlisten_addresses = ''\nunix_socket_directories = '%s'\nfsync = off\nshared_buffers = '16MB'\n",
				c.dir,
			))

	c.write("srv/socle/storage/projects/early", "early")
	c.start()
	c.run(backUp)

	ended := c.sql(`select clock_timestamp()`)
	c.run(keep)
	c.sql(`create table rows as select 'before the moment' as at; select pg_switch_wal()`)
	c.write("srv/socle/storage/projects/file", "before the moment")
	c.run(keep)
	eventually(t, "the backup lies before the moment", func() bool { // its end has a resolution of one second
		return c.sql(`select clock_timestamp() > '`+ended+`'::timestamptz + interval '1.5 seconds'`) == "t"
	})

	moment := c.sql(`select clock_timestamp()`)
	c.sql(`update rows set at = 'after the moment'; create table later (); select pg_switch_wal()`)
	c.run("rm srv/socle/storage/projects/file")
	c.stop()
	c.run(regexp.MustCompile(`--target='[^']*'`).ReplaceAllString(back, "--target='"+moment+"'"))
	c.start()
	eventually(t, "PostgreSQL is done with recovery", func() bool { return c.sql(`select pg_is_in_recovery()`) == "f" })

	if got := c.sql(`select at, to_regclass('later') is null from rows`); got != "before the moment|t" {
		t.Errorf("the database is of %q", got)
	}

	c.sql(`insert into rows values ('anew')`)

	for name, want := range map[string]string{"early": "early", "file": "before the moment"} {
		if got, err := os.ReadFile(filepath.Join(c.dir, "srv/socle/storage/projects", name)); err != nil ||
			string(got) != want {
			t.Errorf("file %s: got %q, %v, want %q", name, got, err, want)
		}
	}
}

// fencedBlocks returns the fenced blocks of a section of the operators' manual.
func fencedBlocks(t *testing.T, heading string) (all []string) {
	t.Helper()

	text, err := os.ReadFile(filepath.Join(root, "docs/operations.md"))
	if err != nil {
		t.Fatal(err)
	}

	_, section, ok := strings.Cut(string(text), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("the manual has no section %q", heading)
	}

	section, _, _ = strings.Cut(section, "\n## ")
	for _, m := range regexp.MustCompile("(?ms)^```\\w*\n(.*?)^```$").FindAllStringSubmatch(section, -1) {
		all = append(all, m[1])
	}

	return all
}

// operatorPostgres is an operator's PostgreSQL in its own folder.
type operatorPostgres struct {
	t         *testing.T
	dir, data string
	user      *syscall.Credential // PostgreSQL refuses to run as root
	env       []string
}

func newOperatorPostgres(t *testing.T) *operatorPostgres {
	t.Helper()

	binaries, err := pgserver.Find(os.Getenv("SOCLE_POSTGRES_BIN"))
	if err != nil {
		t.Fatal(err)
	}

	postgres, err := filepath.EvalSymlinks(binaries.Path("postgres"))
	if err != nil {
		t.Fatal(err)
	}

	dir, err := os.MkdirTemp("", "socle-own-")
	if err != nil {
		t.Fatal(err)
	}

	c := &operatorPostgres{t: t, dir: dir, data: filepath.Join(dir, "var/lib/postgresql/15/main")}
	t.Cleanup(func() {
		_ = c.command("pg_ctl stop -m immediate -D " + c.data).Run() // fails if it is not running
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})

	if os.Geteuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			u, err = user.Lookup("nobody")
		}
		if err != nil {
			t.Fatal(err)
		}

		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		c.user = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}

	c.env = []string{"PATH=" + filepath.Dir(postgres) + ":" + os.Getenv("PATH"), "PGHOST=" + dir, "PGUSER=postgres",
		"PGDATABASE=postgres", "PGBACKREST_CONFIG=" + dir + "/pgbackrest.conf", "PGBACKREST_LOG_PATH=" + dir + "/log",
		"PGBACKREST_LOCK_PATH=" + dir + "/lock", "PGBACKREST_PG1_SOCKET_PATH=" + dir, "PGBACKREST_PG1_USER=postgres"}
	return c
}

func (c *operatorPostgres) command(script string) *exec.Cmd {
	cmd := exec.Command("sh", "-euc", script)
	cmd.Dir, cmd.Env = c.dir, c.env

	if c.user != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.user}
	}

	return cmd
}

// run runs a script as PostgreSQL's user.
func (c *operatorPostgres) run(script string) string {
	c.t.Helper()

	out, err := c.command(script).CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s: %v\n%s", script, err, out)
	}

	return strings.TrimSpace(string(out))
}

// write writes a file as PostgreSQL's user.
func (c *operatorPostgres) write(name, text string) {
	c.t.Helper()

	cmd := c.command("cat >" + name)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("write %s: %v\n%s", name, err, out)
	}
}

func (c *operatorPostgres) start() {
	c.run("pg_ctl start --silent -w -D " + c.data + " -l postgresql.log")
}
func (c *operatorPostgres) stop() { c.run("pg_ctl stop --silent -D " + c.data) }

// sql runs statements in one psql session, and returns the output of the last one.
func (c *operatorPostgres) sql(sql string) string {
	c.t.Helper()

	cmd := c.command("psql --no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1")
	cmd.Stdin = strings.NewReader(sql)

	out, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s: %v\n%s", sql, err, out)
	}

	return strings.TrimSpace(string(out))
}
