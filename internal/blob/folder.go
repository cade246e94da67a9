package blob

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"socle/internal/fault"
)

// unfinished is the folder for bytes that are still arriving. No key begins with a dot.
const unfinished = ".unfinished"

// block is how many bytes of a file are written at a time.
const block = 64 << 10

// folder is a place in a folder of this machine.
type folder struct {
	root *os.Root
	dir  *os.File // the same
	sync func(*os.File) error

	mu sync.Mutex
	// folders that a power cut leaves where they are, as they were when that was seen to
	anchored map[string]fs.FileInfo
}

// mostAnchored is how many folders are remembered, of some 300 bytes each.
const mostAnchored = 1 << 14

func openFolder(dir string) (*folder, error) {
	_, missing := os.Lstat(dir)

	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the storage folder: %w", err)
	}

	if missing != nil {
		above, err := os.Open(filepath.Dir(dir))
		if err == nil {
			err = errors.Join(above.Sync(), above.Close())
		}
		if err != nil {
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

	s := &folder{root: root, dir: at, sync: (*os.File).Sync, anchored: map[string]fs.FileInfo{}}
	if err = s.makeFolder(unfinished); err == nil {
		err = s.unname()
	}

	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the storage folder: %w", err), s.close())
	}

	return s, nil
}

// unname takes their first name from files that have their key, too, as a power cut may leave them.
func (s *folder) unname() error {
	return s.eachUnfinished(func(name string, info fs.FileInfo) error {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() && stat.Nlink > 1 {
			return s.root.Remove(name)
		}
		return nil
	})
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

	// However little comes at a time, the file is written in whole blocks: a cache that keeps it in larger pieces sends it for less.
	w := bufio.NewWriterSize(struct{ io.Writer }{f}, block)
	if _, err = w.ReadFrom(in); err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = s.sync(f)
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
	into := path.Dir(key)
	if err := s.makeFolder(into); err != nil {
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

	// After a power cut the first name may be back, with which Open would refuse the file: whoever opens the store next removes it.
	err = s.root.Remove(name)
	if errors.Is(err, fs.ErrNotExist) { // somebody who has just opened the store was quicker
		err = nil
	}

	if err := errors.Join(err, s.syncFolder(into), s.anchor(into)); err != nil {
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
	swept, before := 0, time.Now().Add(-olderThan)
	err := s.eachUnfinished(func(name string, info fs.FileInfo) error {
		if err := ctx.Err(); err != nil || !info.ModTime().Before(before) {
			return err
		}

		err := s.root.RemoveAll(name)
		if err == nil {
			swept++
		}

		return err
	})

	return swept, err
}

// eachUnfinished calls f with what is unfinished. That it is gone by then is no error: its Put, or somebody else, was quicker.
func (s *folder) eachUnfinished(f func(name string, info fs.FileInfo) error) error {
	dir, err := s.root.Open(unfinished)
	if err != nil {
		return err
	}
	defer dir.Close()

	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}

	for _, name := range names {
		name = path.Join(unfinished, name)
		info, err := s.root.Lstat(name)
		if err == nil {
			err = f(name, info)
		}

		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}

	return nil
}

// lstat describes what is under key. It fails with fs.ErrNotExist if the way there
// leads over anything but folders: os.Root follows links that stay inside it, and we follow none.
func (s *folder) lstat(key string) (fs.FileInfo, error) {
	for i := range len(key) {
		if key[i] != '/' {
			continue
		}

		if _, err := s.isFolder(key[:i]); err != nil {
			return nil, err
		}
	}

	return s.root.Lstat(key)
}

// isFolder describes a folder. It fails if name is none, or a link to one.
func (s *folder) isFolder(name string) (fs.FileInfo, error) {
	info, err := s.root.Lstat(name)
	if err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder: %w", name, fs.ErrNotExist)
	}

	return info, err
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
	if info, err := s.lstat(name); err == nil && info.IsDir() {
		return nil
	}

	var made string
	for part := range strings.SplitSeq(name, "/") {
		made = path.Join(made, part)
		if err := s.root.Mkdir(made, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}

		if _, err := s.isFolder(made); err != nil {
			return err
		}
	}

	return nil
}

// anchor makes durable that a folder is where it is, and those above it: whoever made one of them, which may have been another process, may not have come
// to that yet. Once is enough, for no folder is moved, and one that is removed with all that is in it, as that of a project that is gone, is not made
// anew; if it should be, it is mostly another file.
func (s *folder) anchor(name string) error {
	found := map[string]fs.FileInfo{}
	for at := name; at != "."; at = path.Dir(at) {
		info, err := s.isFolder(at)
		if err != nil {
			return err
		}

		if s.isAnchored(at, info) {
			break
		}

		if err := s.syncFolder(path.Dir(at)); err != nil {
			return err
		}

		found[at] = info
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	for other := range s.anchored {
		if len(s.anchored) < mostAnchored {
			break
		}
		delete(s.anchored, other) // any one
	}

	maps.Copy(s.anchored, found)
	return nil
}

func (s *folder) isAnchored(name string, is fs.FileInfo) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	known := s.anchored[name]
	return known != nil && os.SameFile(known, is)
}

// syncFolder makes the entries of a folder durable.
func (s *folder) syncFolder(name string) error {
	f, err := s.root.Open(name)
	if err != nil {
		return err
	}

	return errors.Join(s.sync(f), f.Close())
}
