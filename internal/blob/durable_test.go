package blob

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/socle-dev/socle/internal/fault"
)

// disk simulates the state after a power failure: the entries that a folder had when it was synced,
// and the bytes that a file had. It assumes the worst that a file system may do.
type disk struct {
	dir     string
	mu      sync.Mutex
	entries map[uint64][]string // by inode of the folder
	bytes   map[uint64]string
	synced  int
}

func watchDisk(s *Store, dir string) *disk {
	d := &disk{dir: dir, entries: map[uint64][]string{}, bytes: map[uint64]string{}}
	s.local.sync = func(f *os.File) error {
		d.mu.Lock()
		defer d.mu.Unlock()

		d.synced++

		info, err := f.Stat()
		if err != nil {
			return err
		}

		if !info.IsDir() {
			content, err := os.ReadFile(f.Name())
			d.bytes[inode(info)] = string(content)

			return err
		}

		d.entries[inode(info)] = nil
		all, err := os.ReadDir(f.Name())
		for _, e := range all {
			d.entries[inode(info)] = append(d.entries[inode(info)], e.Name())
		}

		return err
	}

	return d
}

func inode(info os.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }

// surviving returns the bytes of a blob after a power failure.
func (d *disk) surviving(t *testing.T, key string) (string, bool) {
	t.Helper()

	number := func(name string) uint64 {
		info, err := os.Stat(filepath.Join(d.dir, name))
		if err != nil {
			t.Fatal(err)
		}

		return inode(info)
	}

	d.mu.Lock()
	defer d.mu.Unlock()

	at := "."
	for part := range strings.SplitSeq(key, "/") {
		if !slices.Contains(d.entries[number(at)], part) {
			return at + " has no " + part, false
		}
		at = path.Join(at, part)
	}

	content, ok := d.bytes[number(at)]
	return content, ok
}

// TestDurable checks that stored blobs survive a power failure, even in folders of other processes,
// and that nothing unchanged is synced.
func TestDurable(t *testing.T) {
	t.Parallel()

	s, dir := open(t)
	d := watchDisk(s, dir)

	makeFolder := func(name string) {
		t.Helper()

		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}

	moveAway := func(name string) func() {
		return func() {
			if err := os.Rename(filepath.Join(dir, name), filepath.Join(dir, "away")); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, put := range []struct {
		key   string
		after func()
		syncs int
	}{
		{"projects/a/files/00/1", nil, 6},
		{"projects/a/files/00/2", nil, 2},
		{"projects/a/files/01/3", nil, 3},                                          // a new folder
		{"projects/a/files/02/4", func() { makeFolder("projects/a/files/02") }, 3}, // created by another process
		{"projects/b/files/02/4", func() { makeFolder("projects/b/files/02") }, 5}, // and its parents too
		{"projects/a/files/00/5", moveAway("projects/a"), 5},                       // recreated folders
		{"top", nil, 2},
	} {
		if put.after != nil {
			put.after()
		}

		before := d.synced

		if _, err := s.Put(t.Context(), put.key, strings.NewReader("of "+put.key), noLimit); err != nil {
			t.Fatal(err)
		}

		if got, ok := d.surviving(t, put.key); !ok || got != "of "+put.key {
			t.Errorf("%s: got %q after a power failure, want %q", put.key, got, "of "+put.key)
		}
		if got := d.synced - before; got != put.syncs {
			t.Errorf("%s: synced %d times, want %d", put.key, got, put.syncs)
		}
	}
}

// TestSyncFails checks that a blob that cannot be synced is refused and leaves nothing behind.
func TestSyncFails(t *testing.T) {
	t.Parallel()

	s, dir := open(t)
	for _, why := range []error{syscall.EIO, syscall.ENOSPC} {
		for after := range 3 { // the file, its folder, and the parent folder
			n := 0
			s.local.sync = func(f *os.File) error {
				if n++; n > after {
					return &os.PathError{Op: "sync", Path: f.Name(), Err: why}
				}
				return f.Sync()
			}

			if _, err := s.Put(t.Context(), "a/b", strings.NewReader("x"), noLimit); !fault.Is(err, fault.Unavailable) {
				t.Errorf("Put while sync %d fails with %v = %v, want Unavailable", after+1, why, err)
			}

			wantFiles(t, folderFiles(dir))
		}
	}

	s.local.sync = (*os.File).Sync
	put(t, s, "a/b", "x")
}
