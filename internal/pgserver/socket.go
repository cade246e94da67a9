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

// socketName is the socket's file name for libpq and pgx.
var socketName = ".s.PGSQL." + strconv.Itoa(port)

// maxSocketAddress is a bit less than the size of a socket address, with the final NUL: 108 bytes
// on Linux and 104 on macOS.
const maxSocketAddress = 100

// socketDir returns the directory through which clients reach the socket for the PostgreSQL in dir:
// dir itself, or a short directory with a link to the socket where the address would be too long.
// PostgreSQL itself binds the socket by a relative path.
func socketDir(dir string) string {
	if len(filepath.Join(dir, socketName)) <= maxSocketAddress {
		return dir
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("socle-%d-%.6x", os.Geteuid(), sha256.Sum256([]byte(dir))))
}

// linkSocket creates the directory host and the link in it if missing. It does nothing if host is
// dir.
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

	// Anyone can create a directory with this name where temporary files are.
	if !info.IsDir() || info.Mode().Perm() != 0o700 || ownerUID(info) != os.Geteuid() {
		return fmt.Errorf("%s is not a private directory of this user: remove it", host)
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

// unlinkSocket removes the directory that linkSocket created.
func unlinkSocket(dir, host string) error {
	if host == dir {
		return nil
	}
	return os.RemoveAll(host)
}

// ownerUID returns the UID that owns a file.
func ownerUID(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }
