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
)

const (
	dataName   = "data"
	makingName = "data.new"
)

// cluster is a cluster's folder while PostgreSQL is started in it. Only one process at a time has it open.
//
// The folder may belong to another account than ours, so all access goes through
// root: a link that this account planted leads nowhere.
type cluster struct {
	config  Config
	root    *os.Root
	lock    *os.File
	account *syscall.Credential // what PostgreSQL runs as; nil: as we do
	logged  int64               // the log's size before PostgreSQL was started
}

// openCluster opens the cluster's folder, and makes it if there is none.
func openCluster(ctx context.Context, config Config) (*cluster, error) {
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, err
	}

	root, err := os.OpenRoot(config.Dir)
	if err != nil {
		return nil, foreign(err)
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
		c.lock.Close() // and with it goes the lock
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
			return fmt.Errorf("lock the folder: %w", err)
		}
		if !sleep(ctx, pause) {
			return fmt.Errorf("another process is starting PostgreSQL in the folder: %w", ctx.Err())
		}
	}

	return c.settle()
}

// check returns fs.ErrNotExist if there is no cluster, and an error if our binaries can't run it.
func (c *cluster) check() error {
	version, err := c.root.ReadFile(dataName + "/PG_VERSION")
	if err != nil {
		return err
	}

	made, ours := strings.TrimSpace(string(version)), strconv.Itoa(c.config.Binaries.Version/10000)
	if made != ours {
		return fmt.Errorf(
			"the cluster was made by PostgreSQL %s, and %s has the binaries of %s: name the folder of those of %s in "+
				"SOCLE_POSTGRES_BIN, or move the cluster to %s with pg_upgrade", made, c.config.Binaries.Dir,
			ours, made, ours)
	}

	return nil
}

// settle chooses the account that PostgreSQL runs as, and gives it the folder. PostgreSQL refuses to run as root, so
// when we are root it is the account that the cluster belongs to, or for a new cluster
// (and one that root copied) the account postgres or else nobody.
func (c *cluster) settle() error {
	info, err := c.root.Stat(dataName)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = c.lock.Stat()
	}
	if err != nil {
		return foreign(err)
	}

	if os.Geteuid() != 0 {
		if owner(info) != os.Geteuid() {
			return foreign(fmt.Errorf("it belongs to the account number %d", owner(info)))
		}
		return c.lock.Chmod(0o700)
	}

	stat := info.Sys().(*syscall.Stat_t)
	c.account = &syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}
	if stat.Uid == 0 {
		if c.account, err = unprivileged(); err != nil {
			return err
		}
		if err := c.giveAll(); err != nil {
			return err
		}
	}

	return errors.Join(c.give(c.lock), c.lock.Chmod(0o700))
}

// unprivileged returns the account that a new cluster belongs to when we are root.
func unprivileged() (*syscall.Credential, error) {
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
		"PostgreSQL does not run as root, and there is no account named postgres or nobody to run it as: " +
			"add one, or start Socle as another account")
}

// foreign says what to do about a folder that is another account's.
func foreign(err error) error {
	return fmt.Errorf("the account number %d can't use the folder: start Socle as the account that made it, or as root: %w",
		os.Geteuid(), err)
}

// create makes the cluster. It comes under its name only when it is complete and on disk; what a killed process left is removed.
func (c *cluster) create(ctx context.Context) error {
	c.config.Log.Info("a PostgreSQL cluster is made", "dir", c.config.Dir)
	if err := c.root.RemoveAll(makingName); err != nil {
		return err
	}

	const passwordName = "password"
	if err := c.write(passwordName, c.config.Password+"\n"); err != nil {
		return err
	}

	ctype := "C.UTF-8"
	if runtime.GOOS == "darwin" {
		ctype = "UTF-8"
	}

	// Text is ordered by its bytes: every machine agrees on that, and no upgrade of the C library or of ICU changes it
	// under an index. Upper and lower case are those of Unicode.
	args := []string{"--pgdata=" + c.path(makingName), "--username=" + role, "--pwfile=" + c.path(passwordName),
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

	if err := c.root.Rename(makingName, dataName); err != nil {
		return fmt.Errorf("%s is there and is not a cluster: %w", filepath.Join(c.config.Dir, dataName), err)
	}

	return errors.Join(c.lock.Sync(), syncFolder(filepath.Dir(c.config.Dir)))
}

// syncFolder puts the names in a folder on disk.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()

	return f.Sync()
}

// path returns the name by which PostgreSQL's processes reach a file of the folder. As another account they may have no
// way through the folders above it (/root, say), so they are given the folder as an open file instead.
func (c *cluster) path(name string) string {
	if c.handed() {
		return "/proc/self/fd/3/" + name
	}
	return filepath.Join(c.config.Dir, name)
}

func (c *cluster) handed() bool { return c.account != nil && runtime.GOOS == "linux" }

// command returns a program of PostgreSQL that is ready to run: as its account, with nothing of our environment (which may
// hold secrets, and PG* variables that change what the program does) and in a session of its own, out of
// the reach of the terminal's Ctrl-C. The caller closes its files.
func (c *cluster) command(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, c.config.Binaries.Path(name), args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: c.account}

	if c.handed() {
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

// running returns the postmaster that serves the cluster, or nil if there is none.
func (c *cluster) running() (*postmaster, error) {
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
	if err != nil || pid <= 1 || !serves(pid, mark(data)) {
		return nil, nil
	}

	return &postmaster{pid: pid, mark: mark(data)}, nil
}

// start starts PostgreSQL in a cluster that none serves.
func (c *cluster) start(ctx context.Context) (*postmaster, error) {
	data, err := c.root.Stat(dataName)
	if err != nil {
		return nil, err
	}

	if err := expel(ctx, mark(data)); err != nil {
		return nil, err
	}

	// PostgreSQL takes a left file for a running server's if a process of its account has got the number in it.
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
		"cluster_name="+mark(data))
	if err != nil {
		return nil, err
	}
	defer closeFiles(cmd)

	cmd.Stdout, cmd.Stderr = log, log
	boundMemory(cmd)

	if err := cmd.Start(); err != nil {
		return nil, err
	}

	p := &postmaster{pid: cmd.Process.Pid, mark: mark(data), done: make(chan struct{})}
	go func() {
		defer close(p.done)

		_ = cmd.Wait() // the log says why it ended
	}()

	return p, nil
}

// write makes or replaces a file of the folder that only PostgreSQL's account can read.
func (c *cluster) write(name, text string) error {
	if err := c.root.RemoveAll(name); err != nil { // never through a link
		return err
	}

	f, err := c.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}

	_, err = io.WriteString(f, text)
	return errors.Join(err, c.give(f), f.Close())
}

// give makes a file belong to the account that PostgreSQL runs as.
func (c *cluster) give(f *os.File) error {
	if c.account == nil {
		return nil
	}
	return f.Chown(int(c.account.Uid), int(c.account.Gid))
}

// giveAll makes all that is in the folder belong to that account.
func (c *cluster) giveAll() error {
	return fs.WalkDir(c.root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return c.root.Lchown(path, int(c.account.Uid), int(c.account.Gid))
	})
}
