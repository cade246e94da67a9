package blob

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"socle/internal/fault"
)

// receive copies all of r, at most max bytes, into f and onto the disk.
func receive(ctx context.Context, f *os.File, r io.Reader, max int64) (Object, error) {
	hash := sha256.New()
	buffer := make([]byte, 64<<10)
	var size int64
	for {
		if err := ctx.Err(); err != nil {
			return Object{}, err
		}
		n, err := r.Read(buffer)
		if int64(n) > max-size {
			return Object{}, fault.New(fault.TooLarge, "more than %d bytes", max)
		}
		size += int64(n)
		hash.Write(buffer[:n])
		if _, err := f.Write(buffer[:n]); err != nil {
			return Object{}, err
		}
		if err == io.EOF {
			return Object{size, hash.Sum(nil)}, f.Sync()
		}
		if err != nil {
			return Object{}, err
		}
	}
}

// remove calls remove with key if there is something under it.
func (s *Store) remove(ctx context.Context, key string, remove func(string) error) error {
	if err := errors.Join(ctx.Err(), valid(key)); err != nil {
		return failed("delete", key, err)
	}
	_, err := s.lstat(key)
	if err == nil {
		err = remove(key)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failed("delete", key, err)
	}
	return nil
}

// lstat describes what is under key. It fails with fs.ErrNotExist if the way there
// leads over anything but folders: os.Root follows links that stay inside it, and we follow none.
func (s *Store) lstat(key string) (fs.FileInfo, error) {
	for i := range len(key) {
		if key[i] != '/' {
			continue
		}
		if err := s.folder(key[:i]); err != nil {
			return nil, err
		}
	}
	return s.root.Lstat(key)
}

// folder reports whether name is a folder, and no link to one.
func (s *Store) folder(name string) error {
	info, err := s.root.Lstat(name)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a folder: %w", name, fs.ErrNotExist)
	}
	return err
}

// errNotOurs says that what is under a key can't be what a Put left there.
var errNotOurs = fmt.Errorf("not a regular file with one name: %w", fs.ErrNotExist)

// ours reports whether the file can be one that Put made: a regular file with one name.
func ours(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && stat.Nlink == 1
}

// makeFolder makes the folders of name that are missing.
func (s *Store) makeFolder(name string) error {
	var made string
	for part := range strings.SplitSeq(name, "/") {
		made = path.Join(made, part)
		if err := s.root.Mkdir(made, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := s.folder(made); err != nil {
			return err
		}
	}
	return nil
}

// syncUp makes the entries of a folder durable, and those of all folders above it: whoever
// made one of them, another Put perhaps, may not have come to it yet.
func (s *Store) syncUp(name string) error {
	for {
		if err := syncFolder(s.root.Open(name)); err != nil || name == "." {
			return err
		}
		name = path.Dir(name)
	}
}

func syncFolder(f *os.File, err error) error {
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// failed gives err its kind and, for the log, what was done to which key.
func failed(doing, key string, err error) error {
	err = fmt.Errorf("%s blob %s: %w", doing, key, err)
	if _, done := errors.AsType[*fault.Error](err); done {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) && doing == "open" {
		return fault.New(fault.NotFound, "the bytes are not there").Because(err)
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		switch errno {
		case syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.EMFILE, syscall.ENFILE:
			return unavailable(err)
		}
	}
	return err
}

func unavailable(err error) error {
	return &fault.Error{Kind: fault.Unavailable, Detail: "the storage takes no bytes at present", RetryAfter: 10 * time.Second, Err: err}
}
