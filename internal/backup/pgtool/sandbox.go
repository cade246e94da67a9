package pgtool

import (
	"context"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// pg_dump and pg_restore process untrusted input. They get minimal access to the server: a separate
// environment and, if Socle runs as root, another account that can reach the database.

// Connection is a database's address and password. The zero value means no database.
type Connection struct{ Address, Password string }

// environment returns a program's environment: search path, temporary directory, and libpq's TLS
// settings. Messages are in English, since they are parsed.
func environment() []string {
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"}
	for _, s := range os.Environ() {
		name, _, _ := strings.Cut(s, "=")
		switch {
		case strings.HasPrefix(name, "PGSSL"), name == "PGGSSENCMODE", name == "PGCHANNELBINDING",
			name == "PGREQUIREAUTH", name == "PGKRBSRVNAME",
			name == "HOME", name == "TMPDIR": // libpq looks for certificates in HOME
			env = append(env, s)
		}
	}

	return env
}

// confine runs a command as another account if Socle is root and that account can run the program
// and reach the database.
func (t *Tools) confine(ctx context.Context, cmd *exec.Cmd, to Connection) {
	account := accountFor(to)
	if account == nil || !t.canRunAs(ctx, *account) {
		return
	}

	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: account}
	cmd.Dir = "/"

	// libpq fails if it cannot read HOME. If it is unset, libpq uses the account's home directory.
	cmd.Env = slices.DeleteFunc(cmd.Env, func(s string) bool { return strings.HasPrefix(s, "HOME=") })
}

// accountFor returns the account for a program that uses a connection, or nil for Socle's account.
func accountFor(to Connection) *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}

	nobody := lookup("nobody")
	if to == (Connection{}) || nobody == nil {
		return nobody
	}

	u, err := url.Parse(to.Address)
	if err != nil {
		return nil
	}

	// these files may be readable by root only
	for _, file := range []string{"sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir"} {
		if u.Query().Has(file) || os.Getenv("PG"+strings.ToUpper(file)) != "" {
			return nil
		}
	}

	if home, err := os.UserHomeDir(); err == nil {
		// libpq's default location for these files
		if _, err := os.Stat(filepath.Join(home, ".postgresql")); err == nil {
			return nil
		}
	}

	// The private PostgreSQL's socket is in a directory that only its account can enter.
	accounts := []*syscall.Credential{nobody}
	folders := slices.DeleteFunc(strings.Split(u.Query().Get("host"), ","), func(host string) bool {
		return !filepath.IsAbs(host)
	})
	for _, folder := range folders {
		info, err := os.Stat(folder)
		if err != nil {
			return nil
		}

		stat := info.Sys().(*syscall.Stat_t)
		accounts = append(accounts, &syscall.Credential{Uid: stat.Uid, Gid: stat.Gid})
	}

	for _, a := range accounts {
		if a.Uid != 0 && !slices.ContainsFunc(folders, func(folder string) bool { return !reaches(folder, *a) }) {
			return a
		}
	}

	return nil
}

// reaches reports whether an account can traverse a folder and all its parents.
func reaches(folder string, account syscall.Credential) bool {
	for ; ; folder = filepath.Dir(folder) {
		info, err := os.Stat(folder)
		if err != nil || !passable(info, account) {
			return false
		}
		if folder == filepath.Dir(folder) {
			return true
		}
	}
}

func passable(info fs.FileInfo, account syscall.Credential) bool {
	if info.Sys().(*syscall.Stat_t).Uid == account.Uid {
		return info.Mode()&0o100 != 0
	}
	return info.Mode()&0o001 != 0
}

// lookup returns an account by name, or nil.
func lookup(name string) *syscall.Credential {
	u, err := user.Lookup(name)
	if err != nil {
		return nil
	}

	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil
	}

	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil
	}

	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// probeTimeout limits the check whether an account can run the programs.
const probeTimeout = 10 * time.Second

// canRunAs reports whether an account can run PostgreSQL's programs, and caches the answer. In a
// container root may lack the right to switch accounts.
func (t *Tools) canRunAs(ctx context.Context, account syscall.Credential) bool {
	t.mu.Lock()
	defer t.mu.Unlock()

	if runs, ok := t.canRun[account.Uid]; ok {
		return runs
	}

	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()

	cmd := exec.CommandContext(ctx, t.Binaries.Path("pg_restore"), "--version")
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", environment(), &syscall.SysProcAttr{Credential: &account}
	err := cmd.Run()

	if ctx.Err() != nil {
		return false
	}

	if t.canRun == nil {
		t.canRun = map[uint32]bool{}
	}

	t.canRun[account.Uid] = err == nil

	if err != nil && t.Log != nil {
		t.Log.Warn("PostgreSQL's programs run as Socle's own account", "account", account.Uid, "error", err)
	}

	return err == nil
}
