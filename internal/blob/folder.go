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
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/socle-dev/socle/internal/fault"
)

// unfinishedDir holds incomplete files. No key begins with a dot.
const unfinishedDir = ".unfinished"

// writeSize is the write buffer size in bytes.
const writeSize = 64 << 10

// folder stores blobs as files in a local folder.
type folder struct {
	root, unfinished   *os.Root
	dir, unfinishedDir *os.File // the same folders, for system calls
	sync               func(*os.File) error

	mu sync.Mutex
	// folders whose parents' entries are durable, as they were when synced
	durable map[string]fs.FileInfo
}

// maxSyncedFolders limits how many folders are remembered, some 300 bytes each.
const maxSyncedFolders = 1 << 14

func openFolder(dir string) (*folder, error) {
	_, missing := os.Lstat(dir)

	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the storage folder: %w", err)
	}

	if missing != nil {
		parent, err := os.Open(filepath.Dir(dir))
		if err == nil {
			err = errors.Join(parent.Sync(), parent.Close())
		}
		if err != nil {
			return nil, fmt.Errorf("create the storage folder: %w", err)
		}
	}

	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the storage folder: %w", err)
	}

	s := &folder{root: root, sync: (*os.File).Sync, durable: map[string]fs.FileInfo{}}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the storage folder: %w", err), s.close())
	}

	return s, nil
}

func (s *folder) prepare() (err error) {
	if s.dir, err = s.root.Open("."); err != nil {
		return err
	}
	if s.unfinishedDir, err = s.makeFolder(unfinishedDir); err != nil {
		return err
	}
	if s.unfinished, err = s.root.OpenRoot(unfinishedDir); err != nil {
		return err
	}

	return s.removeTempNames()
}

// removeTempNames removes temporary names for files that also have their key, which a power failure
// can restore.
func (s *folder) removeTempNames() error {
	return s.eachUnfinished(func(name string, info fs.FileInfo) error {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && info.Mode().IsRegular() && stat.Nlink > 1 {
			return s.root.Remove(name)
		}
		return nil
	})
}

func (s *folder) close() error {
	err := errors.Join(s.dir.Close(), s.root.Close())
	if s.unfinished != nil {
		err = errors.Join(err, s.unfinishedDir.Close(), s.unfinished.Close())
	}

	return err
}

// scratch returns an empty, unlinked file.
func (s *folder) scratch() (*os.File, error) {
	name := rand.Text()
	f, err := s.unfinished.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}

	if err := s.unfinished.Remove(name); err != nil {
		return nil, errors.Join(err, f.Close())
	}

	return f, nil
}

func (s *folder) put(_ context.Context, key string, in *measuredReader) (Object, error) {
	name := rand.Text()
	f, err := s.unfinished.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return Object{}, err
	}

	err = errors.Join(s.write(f, in), f.Close())
	if err == nil {
		err = s.publish(name, key)
	}
	if err != nil {
		_ = s.unfinished.Remove(name) // Sweep removes leftovers
		return Object{}, err
	}

	return in.object(), nil
}

// write writes a file, durably. It writes whole blocks even if the content arrives in small pieces:
// the page cache then uses larger pages, which makes sending the file cheaper.
func (s *folder) write(f *os.File, in *measuredReader) error {
	w := bufio.NewWriterSize(struct{ io.Writer }{f}, writeSize)
	if _, err := w.ReadFrom(in); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}

	return s.sync(f)
}

// publish moves an unfinished file to its key, durably.
func (s *folder) publish(name, key string) error {
	dir, err := s.makeFolder(path.Dir(key))
	if err != nil {
		return err
	}
	defer dir.Close()

	// A link, unlike a rename, fails if the key exists.
	err = s.link(name, dir, key)
	if errors.Is(err, fs.ErrExist) {
		return fault.New(fault.Conflict, "the key is already in use").WithCause(err)
	}
	if err != nil {
		return err
	}

	// A power failure can restore the temporary name, and Open refuses files with two names.
	// Opening the store removes it again.
	err = s.unfinished.Remove(name)
	if errors.Is(err, fs.ErrNotExist) { // removed by a process that just opened the store
		err = nil
	}

	if err := errors.Join(err, s.sync(dir), s.syncParents(path.Dir(key), dir)); err != nil {
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
	if err == nil && !isBlobFile(info) {
		err = errForeignFile
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}

	return f, info.Size(), nil
}

func (s *folder) remove(_ context.Context, key string) error {
	return s.removeWith(s.root.Remove, key)
}

func (s *folder) removeAll(_ context.Context, prefix string) error {
	return s.removeWith(s.root.RemoveAll, prefix)
}

// removeWith calls remove with key if there is a file or folder under it.
func (s *folder) removeWith(remove func(string) error, key string) error {
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

			if errors.Is(err, fs.ErrNotExist) { // deleted concurrently
				return nil
			}
			if err == nil && isBlobFile(info) && !yield(Entry{name, info.Size(), info.ModTime()}, nil) {
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
	name := rand.Text()
	err := s.unfinished.WriteFile(name, []byte("check"), 0o600)
	if removeErr := s.unfinished.Remove(name); err == nil {
		err = removeErr
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

// eachUnfinished calls f for each unfinished file. Files removed concurrently are ignored.
func (s *folder) eachUnfinished(f func(name string, info fs.FileInfo) error) error {
	dir, err := s.root.Open(unfinishedDir)
	if err != nil {
		return err
	}
	defer dir.Close()

	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}

	for _, name := range names {
		name = path.Join(unfinishedDir, name)
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

// lstat describes the file under key. It fails with fs.ErrNotExist if a parent is not a folder:
// os.Root follows links inside its tree, but the store follows none.
func (s *folder) lstat(key string) (fs.FileInfo, error) {
	for i := range len(key) {
		if key[i] != '/' {
			continue
		}

		if _, err := s.statFolder(key[:i]); err != nil {
			return nil, err
		}
	}

	return s.root.Lstat(key)
}

// statFolder describes a folder. It fails if name is anything else, such as a link to a folder.
func (s *folder) statFolder(name string) (fs.FileInfo, error) {
	info, err := s.root.Lstat(name)
	if err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder: %w", name, fs.ErrNotExist)
	}

	return info, err
}

// errForeignFile reports a file under a key that Put cannot have created.
var errForeignFile = fmt.Errorf("not a regular file with one name: %w", fs.ErrNotExist)

// isBlobFile reports whether Put can have created the file: a regular file with one name.
func isBlobFile(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && stat.Nlink == 1
}

// makeFolder opens the folder name. It creates the folder and the parents if missing.
func (s *folder) makeFolder(name string) (*os.File, error) {
	dir, err := s.openDir(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}

	var current string
	for part := range strings.SplitSeq(name, "/") {
		current = path.Join(current, part)
		if err := s.root.Mkdir(current, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}

		if _, err := s.statFolder(current); err != nil {
			return nil, err
		}
	}

	return s.openDir(name)
}
