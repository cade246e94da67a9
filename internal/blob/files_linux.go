package blob

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// readStamp returns f's stamp. ok is false if the file system does not provide one.
func readStamp(f *os.File) (stamp, bool) {
	info, err := f.Stat()
	if err != nil {
		return stamp{}, false
	}

	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}, false
	}

	return stamp{uint64(s.Dev), s.Ino, s.Size, s.Mtim.Nano(), s.Ctim.Nano()}, true
}

// openFile opens the file under key for reading. It follows no links and does not block on pipes.
func (s *folder) openFile(key string) (*os.File, error) {
	return s.openWith(key, syscall.O_NONBLOCK|syscall.O_NOCTTY)
}

// openDir opens a folder. It follows no links.
func (s *folder) openDir(name string) (*os.File, error) { return s.openWith(name, syscall.O_DIRECTORY) }

// openWith opens a file or a folder with flags. It replaces os.Root and lstat, which need five
// times as many system calls and slow down small files.
func (s *folder) openWith(name string, flags int) (*os.File, error) {
	conn, err := s.dir.SyscallConn()
	if err != nil {
		return nil, err
	}

	var fd int
	var openErr error
	if err := errors.Join(conn.Control(func(root uintptr) { fd, openErr = openAt(int(root), name, flags) }),
		openErr); err != nil {
		return nil, err
	}

	return os.NewFile(uintptr(fd), filepath.Join(s.root.Name(), name)), nil
}

// link gives an unfinished file a key, in the key's folder, opened as dir. It fails with
// fs.ErrExist if the key exists.
func (s *folder) link(name string, dir *os.File, key string) error {
	err := unix.Linkat(int(s.unfinishedDir.Fd()), name, int(dir.Fd()), path.Base(key), 0)
	if err != nil {
		return &fs.PathError{Op: "linkat", Path: key, Err: err}
	}

	return nil
}

// openAt opens the file or folder under key, relative to the open folder root.
func openAt(root int, key string, last int) (int, error) {
	at, rest, name := root, key, ""
	for {
		var more bool
		name, rest, more = strings.Cut(rest, "/")
		flags := syscall.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_CLOEXEC | last
		if more {
			flags = unix.O_PATH | syscall.O_DIRECTORY | syscall.O_NOFOLLOW | syscall.O_CLOEXEC
		}

		next, err := syscall.Openat(at, name, flags, 0)
		for err == syscall.EINTR {
			next, err = syscall.Openat(at, name, flags, 0)
		}

		if at != root {
			_ = syscall.Close(at)
		}

		switch {
		case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENXIO):
			return 0, &fs.PathError{Op: "openat", Path: key, Err: errForeignFile} // a link or a socket
		case err != nil:
			return 0, &fs.PathError{Op: "openat", Path: key, Err: err}
		case !more:
			return next, nil
		}

		at = next
	}
}
