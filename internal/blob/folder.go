package blob

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"socle/internal/fault"
)

// unfinished is the folder for bytes that are still arriving. No key begins with a dot.
const unfinished = ".unfinished"

// folder is a place in a folder of this machine.
type folder struct {
	root *os.Root
	dir  *os.File // the same
}

func openFolder(dir string) (*folder, error) {
	_, missing := os.Lstat(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the storage folder: %w", err)
	}
	if missing != nil {
		if err := syncFolder(os.Open(filepath.Dir(dir))); err != nil {
			return nil, fmt.Errorf("make the storage folder: %w", err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the storage folder: %w", err)
	}
	at, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the storage folder: %w", err), root.Close())
	}
	s := &folder{root, at}
	if err := s.makeFolder(unfinished); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the storage folder: %w", err), s.close())
	}
	return s, nil
}

func (s *folder) close() error { return errors.Join(s.dir.Close(), s.root.Close()) }

// scratch returns an empty file that has no name any more.
func (s *folder) scratch() (*os.File, error) {
	name := path.Join(unfinished, rand.Text())
	f, err := s.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := s.root.Remove(name); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (s *folder) put(_ context.Context, key string, in *incoming) (Object, error) {
	name := path.Join(unfinished, rand.Text())
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return Object{}, err
	}
	defer s.root.Remove(name) // in vain after success; what stays in spite of it is for Sweep
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, in, make([]byte, 64<<10))
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return Object{}, err
	}
	if err := s.publish(name, key); err != nil {
		return Object{}, err
	}
	return in.object(), nil
}

// publish moves the finished file to its key, durably.
func (s *folder) publish(name, key string) error {
	if err := s.makeFolder(path.Dir(key)); err != nil {
		return err
	}
	// A link, unlike a rename, fails if the key is taken.
	err := s.root.Link(name, key)
	if errors.Is(err, fs.ErrExist) {
		return fault.New(fault.Conflict, "this is stored already").Because(err)
	}
	if err != nil {
		return err
	}
	// Both folders are synced, lest the file come back under two names, which Open refuses.
	if err := errors.Join(s.root.Remove(name), s.syncUp(path.Dir(key)), s.syncUp(unfinished)); err != nil {
		return errors.Join(err, s.root.Remove(key))
	}
	return nil
}

func (s *folder) open(_ context.Context, key string) (io.ReadSeekCloser, int64, error) {
	f, err := s.openFile(key)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !ours(info) {
		err = errNotOurs
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

func (s *folder) remove(_ context.Context, key string) error {
	return s.removeBy(s.root.Remove, key)
}

func (s *folder) removeAll(_ context.Context, prefix string) error {
	return s.removeBy(s.root.RemoveAll, prefix)
}

// removeBy calls remove with key if there is something under it.
func (s *folder) removeBy(remove func(string) error, key string) error {
	_, err := s.lstat(key)
	if err == nil {
		err = remove(key)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (s *folder) list(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if info, err := s.lstat(prefix); err != nil || !info.IsDir() {
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				yield(Entry{}, err)
			}
			return
		}
		err := fs.WalkDir(s.root.FS(), prefix, func(name string, d fs.DirEntry, err error) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err == nil && d.IsDir() {
				return nil
			}
			var info fs.FileInfo
			if err == nil {
				info, err = d.Info()
			}
			if errors.Is(err, fs.ErrNotExist) { // somebody was quicker
				return nil
			}
			if err == nil && ours(info) && !yield(Entry{name, info.Size(), info.ModTime()}, nil) {
				return fs.SkipAll
			}
			return err
		})
		if err != nil {
			yield(Entry{}, err)
		}
	}
}

func (s *folder) folders(_ context.Context, prefix string) ([]string, error) {
	var names []string
	info, err := s.lstat(prefix)
	if err == nil && info.IsDir() {
		var entries []fs.DirEntry
		entries, err = fs.ReadDir(s.root.FS(), prefix)
		for _, e := range entries {
			if e.IsDir() {
				names = append(names, e.Name())
			}
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return names, err
}

func (s *folder) check(context.Context) error {
	name := path.Join(unfinished, rand.Text())
	err := s.root.WriteFile(name, []byte("check"), 0o600)
	if removed := s.root.Remove(name); err == nil {
		err = removed
	}
	return err
}

func (s *folder) sweep(ctx context.Context, olderThan time.Duration) (int, error) {
	dir, err := s.root.Open(unfinished)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return 0, err
	}
	swept, before := 0, time.Now().Add(-olderThan)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return swept, err
		}
		name = path.Join(unfinished, name)
		info, err := s.root.Lstat(name)
		if err == nil && info.ModTime().Before(before) {
			if err = s.root.RemoveAll(name); err == nil {
				swept++
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // its Put, or another sweep, was quicker
			return swept, err
		}
	}
	return swept, nil
}

// lstat describes what is under key. It fails with fs.ErrNotExist if the way there
// leads over anything but folders: os.Root follows links that stay inside it, and we follow none.
func (s *folder) lstat(key string) (fs.FileInfo, error) {
	for i := range len(key) {
		if key[i] != '/' {
			continue
		}
		if err := s.isFolder(key[:i]); err != nil {
			return nil, err
		}
	}
	return s.root.Lstat(key)
}

// isFolder reports whether name is a folder, and no link to one.
func (s *folder) isFolder(name string) error {
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
func (s *folder) makeFolder(name string) error {
	var made string
	for part := range strings.SplitSeq(name, "/") {
		made = path.Join(made, part)
		if err := s.root.Mkdir(made, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := s.isFolder(made); err != nil {
			return err
		}
	}
	return nil
}

// syncUp makes the entries of a folder durable, and those of all folders above it: whoever
// made one of them, another Put perhaps, may not have come to it yet.
func (s *folder) syncUp(name string) error {
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
