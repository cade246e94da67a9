package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"socle/internal/fault"
)

const noLimit = 1 << 40

func open(t *testing.T) (*Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "blobs")
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, dir
}

func put(t *testing.T, s *Store, key, content string) {
	t.Helper()
	if _, err := s.Put(t.Context(), key, strings.NewReader(content), noLimit); err != nil {
		t.Fatalf("Put(%q) = %v", key, err)
	}
}

func get(t *testing.T, s *Store, key string) string {
	t.Helper()
	r, size, err := s.Open(t.Context(), key)
	if err != nil {
		t.Fatalf("Open(%q) = %v", key, err)
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	if err != nil || int64(len(content)) != size {
		t.Fatalf("Open(%q) has %d bytes, want %d (%v)", key, len(content), size, err)
	}
	return string(content)
}

// files returns the names of all files in the store, finished or not.
func files(t *testing.T, dir string) []string {
	t.Helper()
	names := []string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func wantFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), files(t, dir)); diff != "" {
		t.Errorf("files of the store (-want +got):\n%s", diff)
	}
}

func TestPut(t *testing.T) {
	t.Parallel()
	s, dir := open(t)
	for key, content := range map[string]string{
		"empty": "", "projects/0192/files/a_b-c.1": "hello", "large": strings.Repeat("0123456789", 100_000),
	} {
		got, err := s.Put(t.Context(), key, iotest.HalfReader(strings.NewReader(content)), int64(len(content)))
		if err != nil {
			t.Fatalf("Put(%q) = %v", key, err)
		}
		sum := sha256.Sum256([]byte(content))
		if diff := cmp.Diff(Object{int64(len(content)), sum[:]}, got); diff != "" {
			t.Errorf("Put(%q) (-want +got):\n%s", key, diff)
		}
		if got := get(t, s, key); got != content {
			t.Errorf("Open(%q) has %d other bytes, want the %d that were put", key, len(got), len(content))
		}
	}
	wantFiles(t, dir, "empty", "large", "projects/0192/files/a_b-c.1")
	for name, want := range map[string]fs.FileMode{".": 0o700, "projects/0192": 0o700, "empty": 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("mode of %s = %v (%v), want %v", name, info.Mode(), err, want)
		}
	}
}

func TestPutLeavesNothing(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection lost")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		ctx context.Context
		r   io.Reader
		ok  func(error) bool
	}{
		"one byte too many": {t.Context(), strings.NewReader("123456"), tooLarge},
		"in small pieces":   {t.Context(), iotest.OneByteReader(strings.NewReader("123456")), tooLarge},
		"with its end":      {t.Context(), iotest.DataErrReader(strings.NewReader("123456")), tooLarge},
		"without end":       {t.Context(), endless{}, tooLarge},
		"reader fails":      {t.Context(), io.MultiReader(strings.NewReader("123"), iotest.ErrReader(broken)), is(broken)},
		"cut short":         {t.Context(), io.MultiReader(strings.NewReader("123"), iotest.ErrReader(io.ErrUnexpectedEOF)), is(io.ErrUnexpectedEOF)},
		"cancelled before":  {cancelled, strings.NewReader("123"), is(context.Canceled)},
		"no space":          {t.Context(), iotest.ErrReader(syscall.ENOSPC), unavailableFault},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, dir := open(t)
			if _, err := s.Put(tt.ctx, "a/b", tt.r, 5); !tt.ok(err) {
				t.Errorf("Put = %v", err)
			}
			wantFiles(t, dir)
		})
	}
}

func tooLarge(err error) bool         { return fault.Is(err, fault.TooLarge) }
func unavailableFault(err error) bool { return fault.Is(err, fault.Unavailable) }
func is(want error) func(error) bool {
	return func(err error) bool { return errors.Is(err, want) }
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestPutCancelled(t *testing.T) {
	t.Parallel()
	s, dir := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	r := readerFunc(func(p []byte) (int, error) {
		cancel()
		return len(p), nil
	})
	if _, err := s.Put(ctx, "a", r, noLimit); !errors.Is(err, context.Canceled) {
		t.Errorf("Put = %v, want it to end with its context", err)
	}
	wantFiles(t, dir)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A key that is taken keeps its bytes, and of equal requests at one moment one succeeds.
func TestPutConflict(t *testing.T) {
	t.Parallel()
	s, dir := open(t)
	const n = 8
	contents := make(chan string, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			content := strings.Repeat(string(rune('a'+i)), 100_000)
			_, err := s.Put(t.Context(), "folder/key", strings.NewReader(content), noLimit)
			if err == nil {
				contents <- content
			} else if !fault.Is(err, fault.Conflict) {
				t.Errorf("Put = %v, want Conflict", err)
			}
		})
	}
	group.Wait()
	if len(contents) != 1 {
		t.Fatalf("%d of %d Puts of one key succeeded, want 1", len(contents), n)
	}
	if got, want := get(t, s, "folder/key"), <-contents; got != want {
		t.Errorf("the key holds the bytes of %q, want those of %q", got[:1], want[:1])
	}
	wantFiles(t, dir, "folder/key")
}

func TestPutConcurrently(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	var group sync.WaitGroup
	for _, key := range []string{"a/1", "a/2", "a/3", "b/1", "b/c/1", "b/c/2"} {
		group.Go(func() {
			if _, err := s.Put(t.Context(), key, strings.NewReader(key), noLimit); err != nil {
				t.Errorf("Put(%q) = %v", key, err)
				return
			}
			if got := get(t, s, key); got != key {
				t.Errorf("Open(%q) = %q, want %[1]q", key, got)
			}
		})
	}
	group.Wait()
}

func TestOpen(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	put(t, s, "a/b", "0123456789")
	r, _, err := s.Open(t.Context(), "a/b")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := s.Delete(t.Context(), "a/b"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Seek(7, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); string(got) != "789" || err != nil {
		t.Errorf("read of a blob that is gone meanwhile = %q, %v, want 789", got, err)
	}
	for _, key := range []string{"a/b", "a", "missing", "a/missing/c", "missing/b"} {
		if _, _, err := s.Open(t.Context(), key); !fault.Is(err, fault.NotFound) {
			t.Errorf("Open(%q) = %v, want NotFound", key, err)
		}
	}
}

func TestMalformedKey(t *testing.T) {
	t.Parallel()
	s, dir := open(t)
	put(t, s, "a", "kept")
	for _, key := range []string{
		"", ".", "..", "/", "a/", "/a", "a//b", "../a", "a/../a", "a/./b", ".unfinished", ".unfinished/x", "a/.b",
		"A", "ä", "a\x00b", "a b", "a\\b", "a\n", "a:b", filepath.Join(dir, "a"),
	} {
		_, putErr := s.Put(t.Context(), key, strings.NewReader("x"), noLimit)
		_, _, openErr := s.Open(t.Context(), key)
		for op, err := range map[string]error{
			"Put": putErr, "Open": openErr, "Delete": s.Delete(t.Context(), key), "DeleteAll": s.DeleteAll(t.Context(), key),
		} {
			if !fault.Is(err, fault.Internal) {
				t.Errorf("%s(%q) = %v, want an internal error", op, key, err)
			}
		}
	}
	wantFiles(t, dir, "a")
}

func TestDelete(t *testing.T) {
	t.Parallel()
	s, dir := open(t)
	for _, key := range []string{"a/1", "a/b/2", "a/b/3", "ab/4", "c"} {
		put(t, s, key, key)
	}
	if err := s.Delete(t.Context(), "c"); err != nil {
		t.Errorf("Delete = %v", err)
	}
	wantFiles(t, dir, "a/1", "a/b/2", "a/b/3", "ab/4")
	if err := s.DeleteAll(t.Context(), "a/b"); err != nil {
		t.Errorf("DeleteAll = %v", err)
	}
	wantFiles(t, dir, "a/1", "ab/4")
	if err := s.DeleteAll(t.Context(), "a"); err != nil {
		t.Errorf("DeleteAll = %v", err)
	}
	wantFiles(t, dir, "ab/4")
	for _, key := range []string{"a", "a/1", "c", "x/y/z", "ab/4/5"} {
		if err := errors.Join(s.Delete(t.Context(), key), s.DeleteAll(t.Context(), key)); err != nil {
			t.Errorf("delete of %q, which is not there, = %v", key, err)
		}
	}
	wantFiles(t, dir, "ab/4")
	put(t, s, "a/1", "again")
}

// What someone else put into the folder is neither followed nor read, nor waited for.
func TestPlanted(t *testing.T) {
	t.Parallel()
	s, dir := open(t)
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("not ours"), 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, s, "victim/blob", "another's")
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.Symlink(outside, at("link-out")),
		os.Symlink("victim/blob", at("link-in")),
		os.Symlink("victim", at("folder-link")),
		os.Symlink(filepath.Dir(outside), at("folder-out")),
		os.Symlink("nowhere", at("dangling")),
		os.Link(outside, at("hard-link")),
		syscall.Mkfifo(at("fifo"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)

	for _, key := range []string{"link-out", "link-in", "folder-link/blob", "folder-out/outside", "dangling", "hard-link", "fifo", "victim", "fifo/x"} {
		if r, _, err := s.Open(t.Context(), key); !fault.Is(err, fault.NotFound) {
			t.Errorf("Open(%q) = %v, %v, want NotFound", key, r, err)
		}
	}
	for _, key := range []string{"link-out", "dangling", "folder-link/new", "folder-out/new", "folder-link", "fifo"} {
		if _, err := s.Put(t.Context(), key, strings.NewReader("x"), noLimit); err == nil {
			t.Errorf("Put(%q) = nil, want an error", key)
		}
	}
	for _, key := range []string{"folder-link/blob", "folder-out/outside"} {
		if err := errors.Join(s.Delete(t.Context(), key), s.DeleteAll(t.Context(), key)); err != nil {
			t.Errorf("delete of %q = %v", key, err)
		}
	}
	wantFiles(t, dir, before...)

	for _, key := range []string{"link-out", "link-in", "folder-link", "folder-out", "dangling", "hard-link", "fifo"} {
		if err := s.DeleteAll(t.Context(), key); err != nil {
			t.Errorf("DeleteAll(%q) = %v", key, err)
		}
	}
	wantFiles(t, dir, "victim/blob")
	if got, err := os.ReadFile(outside); string(got) != "not ours" || err != nil {
		t.Errorf("the file outside = %q, %v, want it untouched", got, err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	s, dir := open(t)
	if err := s.Check(t.Context()); err != nil {
		t.Errorf("Check = %v", err)
	}
	wantFiles(t, dir)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Check of a folder that is gone = %v, want Unavailable", err)
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	s, dir := open(t)
	put(t, s, "kept", "finished and old")
	long := time.Now().Add(-time.Hour)
	for name, touched := range map[string]time.Time{"kept": long, unfinished + "/old": long, unfinished + "/new": time.Now()} {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(name, []byte("x"), 0o600), os.Chtimes(name, touched, touched)); err != nil {
			t.Fatal(err)
		}
	}
	// An upload that is still under way survives a sweep and ends well.
	arriving := make(chan struct{})
	finish := make(chan struct{})
	done := make(chan error)
	go func() {
		_, err := s.Put(t.Context(), "arriving", io.MultiReader(strings.NewReader("some"), readerFunc(func([]byte) (int, error) {
			close(arriving)
			<-finish
			return 0, io.EOF
		})), noLimit)
		done <- err
	}()
	<-arriving
	n, err := s.Sweep(t.Context(), time.Minute)
	if n != 1 || err != nil {
		t.Errorf("Sweep = %d, %v, want 1", n, err)
	}
	close(finish)
	if err := <-done; err != nil {
		t.Errorf("Put during a sweep = %v", err)
	}
	wantFiles(t, dir, unfinished+"/new", "arriving", "kept")
}

func TestOpenStore(t *testing.T) {
	t.Parallel()
	s, dir := open(t)
	put(t, s, "a", "still here")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got, want := get(t, again, "a"), "still here"; got != want {
		t.Errorf("after opening the store again: %q, want %q", got, want)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, bytes.Repeat([]byte("x"), 3), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		if _, err := Open(dir); err == nil {
			t.Errorf("Open(%q) = nil, want an error: it can't be a folder", dir)
		}
	}
}
