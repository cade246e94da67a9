package pgserver

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// socketName is the name that libpq and pgx give the socket in its folder.
var socketName = ".s.PGSQL." + strconv.Itoa(port)

// A socket's address holds 108 bytes on Linux and 104 on macOS, with the NUL at its end.
const longestAddress = 100

// socketFolder returns the folder by which clients reach the socket of the cluster in dir: dir
// itself or, where that makes the address too long, a short one that holds a link to the socket.
// PostgreSQL itself is not concerned: it binds the socket by a relative path.
func socketFolder(dir string) string {
	if len(filepath.Join(dir, socketName)) <= longestAddress {
		return dir
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("socle-%d-%.6x", os.Geteuid(), sha256.Sum256([]byte(dir))))
}

// linkSocket makes the folder host and the link in it, unless host is the cluster's own folder or they are there.
func linkSocket(dir, host string) error {
	if host == dir {
		return nil
	}
	if err := os.Mkdir(host, 0o700); err != nil && !os.IsExist(err) {
		return err
	}

	info, err := os.Lstat(host)
	if err != nil {
		return err
	}

	// Anyone may make a folder of this name where temporary files are.
	if !info.IsDir() || info.Mode().Perm() != 0o700 || owner(info) != os.Geteuid() {
		return fmt.Errorf("%s is not a folder that only we can reach: remove it", host)
	}

	link, target := filepath.Join(host, socketName), filepath.Join(dir, socketName)
	if now, err := os.Readlink(link); err == nil && now == target {
		return nil
	}

	if err := os.RemoveAll(link); err != nil {
		return err
	}

	return os.Symlink(target, link)
}

// unlinkSocket removes what linkSocket made.
func unlinkSocket(dir, host string) error {
	if host == dir {
		return nil
	}
	return os.RemoveAll(host)
}

// owner returns the number of the account that a file belongs to.
func owner(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }
