package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/socle-dev/socle/internal/pgwire"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	dataName    = "data"
	newDataName = "data.new"
)

// cluster is a PostgreSQL directory while it is being started. Only one process at a time has it
// open.
//
// The directory may belong to another OS user. All access therefore goes through root, which does
// not follow links that leave the directory.
type cluster struct {
	config     Config
	root       *os.Root
	lock       *os.File
	credential *syscall.Credential // PostgreSQL's OS user; nil: the current one
	logOffset  int64               // log size before the start
}

// openCluster opens the directory and creates it if it does not exist.
func openCluster(ctx context.Context, config Config) (*cluster, error) {
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, err
	}

	root, err := os.OpenRoot(config.Dir)
	if err != nil {
		return nil, ownershipError(err)
	}

	c := &cluster{config: config, root: root}
	if err := c.prepare(ctx); err != nil {
		c.close()
		return nil, err
	}

	return c, nil
}

func (c *cluster) close() {
	c.root.Close()
	if c.lock != nil {
		c.lock.Close() // also releases the lock
	}
}

func (c *cluster) prepare(ctx context.Context) error {
	var err error
	if c.lock, err = c.root.Open("."); err != nil {
		return err
	}

	for {
		err := syscall.Flock(int(c.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}

		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("lock the directory: %w", err)
		}
		if tick.Pause(ctx, pollInterval) != nil {
			return fmt.Errorf("another process is starting PostgreSQL in the directory: %w", ctx.Err())
		}
	}

	return c.chooseUser()
}

// check returns fs.ErrNotExist if the directory has no data, and a *VersionError if it was created
// by another major version than the binaries'. It refuses data from an unfinished upgrade.
func (c *cluster) check() error {
	pending, err := c.pendingVersion()
	if err != nil {
		return err
	}
	if pending > 0 && !c.config.upgrading {
		return fmt.Errorf("an upgrade of PostgreSQL %d was interrupted: run socle upgrade-postgres again", pending)
	}

	version, err := c.dataVersion()
	if err != nil {
		return err
	}

	if version != c.config.Binaries.Major() {
		return &VersionError{Data: version, Binaries: c.config.Binaries, Installed: Installed()}
	}

	return nil
}

// dataVersion returns the major version that created the data directory.
func (c *cluster) dataVersion() (int, error) {
	text, err := c.root.ReadFile(dataName + "/PG_VERSION")
	if err != nil {
		return 0, err
	}

	version, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("unknown version of the data directory: %w", err)
	}

	return version, nil
}

// chooseUser selects the OS user that PostgreSQL runs as and gives it the directory. PostgreSQL
// refuses to run as root. If Socle runs as root, the user is therefore the data's owner. For new
// data, and for data that root has copied, it is postgres or else nobody.
func (c *cluster) chooseUser() error {
	info, err := c.root.Stat(dataName)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = c.lock.Stat()
	}
	if err != nil {
		return ownershipError(err)
	}

	if os.Geteuid() != 0 {
		if ownerUID(info) != os.Geteuid() {
			return ownershipError(fmt.Errorf("it belongs to user ID %d", ownerUID(info)))
		}
		return c.lock.Chmod(0o700)
	}

	stat := info.Sys().(*syscall.Stat_t)
	c.credential = &syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}
	if stat.Uid == 0 {
		if c.credential, err = unprivilegedUser(); err != nil {
			return err
		}
		if err := c.chownAll(); err != nil {
			return err
		}
	}

	return errors.Join(c.chown(c.lock), c.lock.Chmod(0o700))
}

// unprivilegedUser returns the OS user for new data when Socle runs as root.
func unprivilegedUser() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}

		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, err
		}

		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, err
		}

		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}

	return nil, errors.New(
		"PostgreSQL does not run as root, and there is no user postgres or nobody to run it as: " +
			"add one, or run Socle as another user")
}

// ownershipError wraps an error about another OS user's directory and says what to do.
func ownershipError(err error) error {
	return fmt.Errorf("user ID %d cannot use the directory: run Socle as its owner or as root: %w",
		os.Geteuid(), err)
}

// create runs initdb. The data directory gets its name only when it is complete and on disk. A
// killed process's leftovers are removed.
func (c *cluster) create(ctx context.Context) error {
	c.config.Log.Info("creating a PostgreSQL data directory", "dir", c.config.Dir)
	if err := c.initialize(ctx); err != nil {
		return err
	}

	if err := c.root.Rename(newDataName, dataName); err != nil {
		return fmt.Errorf("%s exists and is not a data directory: %w", filepath.Join(c.config.Dir, dataName), err)
	}

	return errors.Join(c.lock.Sync(), syncDir(filepath.Dir(c.config.Dir)))
}

// initialize runs initdb for a data directory with a temporary name.
func (c *cluster) initialize(ctx context.Context) error {
	if err := c.root.RemoveAll(newDataName); err != nil {
		return err
	}

	// initdb stores a verifier as it is. This one has a single iteration: every new session would
	// pay for PostgreSQL's 4096, which only protect a password that can be guessed.
	const passwordName = "password"
	verifier := pgwire.NewVerifier(c.config.Password, 1).String()
	if err := c.write(passwordName, verifier+"\n"); err != nil {
		return err
	}

	ctype := "C.UTF-8"
	if runtime.GOOS == "darwin" {
		ctype = "UTF-8"
	}

	// Sort text by bytes: that is the same on every machine, and no upgrade of the C library or of
	// ICU changes the order under an index. Upper and lower case follow Unicode.
	args := []string{"--pgdata=" + c.path(newDataName), "--username=" + role, "--pwfile=" + c.path(passwordName),
		"--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--lc-ctype=" + ctype, "--data-checksums",
		"--no-instructions"}

	if c.config.Settings["fsync"] == "off" {
		args = append(args, "--no-sync")
	}

	cmd, err := c.command(ctx, "initdb", args...)
	if err != nil {
		return err
	}
	defer closeFiles(cmd)

	out, err := cmd.CombinedOutput()
	if err := errors.Join(err, ctx.Err(), c.root.Remove(passwordName)); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, bytes.TrimSpace(out))
	}

	return nil
}

// syncDir syncs a directory's entries to disk.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()

	return f.Sync()
}

// path returns a file's path in the directory for PostgreSQL's processes. Another OS user may lack
// access to the parent directories (/root, say), so its processes inherit the directory as an open
// file instead.
func (c *cluster) path(name string) string {
	if c.inheritsDir() {
		return "/proc/self/fd/3/" + name
	}
	return filepath.Join(c.config.Dir, name)
}

func (c *cluster) inheritsDir() bool { return c.credential != nil && runtime.GOOS == "linux" }

// command returns a PostgreSQL program that is ready to run as its OS user. It gets none of Socle's
// environment, which may contain secrets and PG* variables. It runs in its own session, beyond the
// terminal's Ctrl-C. The caller closes its files with closeFiles.
func (c *cluster) command(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, c.config.Binaries.Path(name), args...)
	cmd.Dir = "/"
	// With LD_BIND_NOW the postmaster binds the libraries' functions once, instead of each session.
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "LD_BIND_NOW=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: c.credential}

	if c.inheritsDir() {
		dir, err := c.root.Open(".") // not the locked file: a child would keep the lock
		if err != nil {
			return nil, err
		}

		cmd.ExtraFiles = []*os.File{dir}
	}

	return cmd, nil
}

func closeFiles(cmd *exec.Cmd) {
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
}

// findPostmaster returns the data directory's postmaster, or nil if none is running.
func (c *cluster) findPostmaster() (*postmaster, error) {
	data, err := c.root.Stat(dataName)
	if err != nil {
		return nil, err
	}

	text, err := c.root.ReadFile(dataName + "/postmaster.pid")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 1 || !isProcessOf(pid, clusterName(data)) {
		return nil, nil
	}

	return &postmaster{pid: pid, clusterName: clusterName(data)}, nil
}

// start starts PostgreSQL. None may be running on the data directory.
func (c *cluster) start(ctx context.Context) (*postmaster, error) {
	data, err := c.root.Stat(dataName)
	if err != nil {
		return nil, err
	}

	if err := killOrphans(ctx, clusterName(data)); err != nil {
		return nil, err
	}

	// PostgreSQL takes a stale file for a running server's if the PID is in use by its OS user's
	// process.
	for _, stale := range []string{dataName + "/postmaster.pid", socketName, socketName + ".lock"} {
		if err := c.root.RemoveAll(stale); err != nil {
			return nil, err
		}
	}

	if err := c.write(dataName+"/postgresql.conf", settings(c.config.Binaries, c.config.Settings)); err != nil {
		return nil, err
	}

	log, err := c.openLog()
	if err != nil {
		return nil, err
	}
	defer log.Close()

	cmd, err := c.command(context.WithoutCancel(ctx), "postgres", "-D", c.path(dataName), "-c",
		"cluster_name="+clusterName(data))
	if err != nil {
		return nil, err
	}
	defer closeFiles(cmd)

	cmd.Stdout, cmd.Stderr = log, log
	limitMemory(cmd)

	if err := cmd.Start(); err != nil {
		return nil, err
	}

	p := &postmaster{pid: cmd.Process.Pid, clusterName: clusterName(data), done: make(chan struct{})}
	go func() {
		defer close(p.done)

		_ = cmd.Wait() // the log has the reason
	}()

	return p, nil
}

// write creates or replaces a file in the directory that only PostgreSQL's OS user can read.
func (c *cluster) write(name, text string) error {
	if err := c.root.RemoveAll(name); err != nil { // never through a link
		return err
	}

	f, err := c.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}

	_, err = io.WriteString(f, text)
	return errors.Join(err, c.chown(f), f.Close())
}

// chown changes a file's owner to PostgreSQL's OS user.
func (c *cluster) chown(f *os.File) error {
	if c.credential == nil {
		return nil
	}
	return f.Chown(int(c.credential.Uid), int(c.credential.Gid))
}

// chownAll changes the directory's owner, with everything in it, to PostgreSQL's OS user.
func (c *cluster) chownAll() error {
	return fs.WalkDir(c.root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return c.root.Lchown(path, int(c.credential.Uid), int(c.credential.Gid))
	})
}
