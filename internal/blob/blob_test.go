package blob

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/blob/blobtest"
	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/fault"
)

const noLimit = 1 << 40

// fileLister returns the names of all files of a storage, finished or not.
type fileLister func(testing.TB) []string

// forEachBackend runs a test on a folder and on S3, which must behave alike.
func forEachBackend(t *testing.T, test func(t *testing.T, s *Store, files fileLister)) {
	t.Helper()

	t.Run("folder", func(t *testing.T) {
		t.Parallel()

		s, dir := open(t)
		test(t, s, folderFiles(dir))
	})

	t.Run("S3", func(t *testing.T) {
		t.Parallel()

		s, service := openService(t)
		test(t, s, bucketFiles(service))
	})
}

// open returns a store in a folder.
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

// openService returns a store in a bucket.
func openService(t *testing.T) (*Store, *blobtest.S3) {
	t.Helper()

	service := blobtest.New(t)
	var c config.Config
	service.Configure(&c)

	return openConfigured(t, c), service
}

func openConfigured(t *testing.T, c config.Config) *Store {
	t.Helper()

	c.DataDir = t.TempDir()
	s, err := OpenConfigured(c)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { s.Close() })
	return s
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

func folderFiles(dir string) fileLister {
	return func(t testing.TB) []string {
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
}

func bucketFiles(service *blobtest.S3) fileLister {
	return func(t testing.TB) []string {
		t.Helper()

		names := []string{}
		for _, path := range service.Objects(t) {
			names = append(names, strings.TrimPrefix(path, filepath.Join(service.Dir, "some/prefix")+"/"))
		}

		return names
	}
}

func wantFiles(t testing.TB, files fileLister, want ...string) {
	t.Helper()

	if diff := cmp.Diff(append([]string{}, want...), files(t)); diff != "" {
		t.Errorf("files of the store (-want +got):\n%s", diff)
	}
}

func TestPut(t *testing.T) {
	t.Parallel()

	forEachBackend(t, func(t *testing.T, s *Store, files fileLister) {
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
				t.Errorf("Open(%q) has %d bytes that differ from the %d stored", key, len(got), len(content))
			}
		}

		wantFiles(t, files, "empty", "large", "projects/0192/files/a_b-c.1")
	})
}

func TestPutLeavesNothing(t *testing.T) {
	t.Parallel()

	errLost := errors.New("connection lost")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()

	for name, tt := range map[string]struct {
		ctx context.Context
		r   func() io.Reader
		ok  func(error) bool
	}{
		"one byte too many": {t.Context(), func() io.Reader { return strings.NewReader("123456") }, isTooLarge},
		"in small pieces": {t.Context(), func() io.Reader {
			return iotest.OneByteReader(strings.NewReader("123456"))
		}, isTooLarge},
		"with its end": {t.Context(), func() io.Reader {
			return iotest.DataErrReader(strings.NewReader("123456"))
		}, isTooLarge},
		"without end": {t.Context(), func() io.Reader { return endless{} }, isTooLarge},
		"reader fails": {t.Context(), func() io.Reader {
			return io.MultiReader(strings.NewReader("123"), iotest.ErrReader(errLost))
		}, isError(errLost)},
		"cut short": {t.Context(), func() io.Reader {
			return io.MultiReader(strings.NewReader("123"), iotest.ErrReader(io.ErrUnexpectedEOF))
		}, isError(io.ErrUnexpectedEOF)},
		"cancelled before": {canceled, func() io.Reader { return strings.NewReader("123") }, isError(context.Canceled)},
		"no space": {t.Context(), func() io.Reader {
			return iotest.ErrReader(syscall.ENOSPC)
		}, isUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			forEachBackend(t, func(t *testing.T, s *Store, files fileLister) {
				if _, err := s.Put(tt.ctx, "a/b", tt.r(), 5); !tt.ok(err) {
					t.Errorf("Put = %v", err)
				}
				wantFiles(t, files)
			})
		})
	}
}

func isTooLarge(err error) bool    { return fault.Is(err, fault.TooLarge) }
func isUnavailable(err error) bool { return fault.Is(err, fault.Unavailable) }
func isError(want error) func(error) bool {
	return func(err error) bool { return errors.Is(err, want) }
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestPutCanceled(t *testing.T) {
	t.Parallel()

	forEachBackend(t, func(t *testing.T, s *Store, files fileLister) {
		ctx, cancel := context.WithCancel(t.Context())
		r := readerFunc(func(p []byte) (int, error) {
			cancel()
			return len(p), nil
		})
		if _, err := s.Put(ctx, "a", r, noLimit); !errors.Is(err, context.Canceled) {
			t.Errorf("Put = %v, want %v", err, context.Canceled)
		}

		wantFiles(t, files)
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestPutConflict checks that an existing key keeps its bytes: of concurrent Puts exactly one
// succeeds.
func TestPutConflict(t *testing.T) {
	t.Parallel()

	forEachBackend(t, func(t *testing.T, s *Store, files fileLister) {
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
			t.Errorf("got the bytes of %q, want those of %q", got[:1], want[:1])
		}

		wantFiles(t, files, "folder/key")
	})
}

func TestPutConcurrently(t *testing.T) {
	t.Parallel()

	forEachBackend(t, func(t *testing.T, s *Store, files fileLister) {
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
	})
}

func TestOpen(t *testing.T) {
	t.Parallel()

	forEachBackend(t, func(t *testing.T, s *Store, files fileLister) {
		put(t, s, "a/b", "0123456789")
		opening, cancel := context.WithCancel(t.Context())
		r, size, err := s.Open(opening, "a/b")
		cancel() // the reader outlives the context

		if err != nil || size != 10 {
			t.Fatalf("Open = %d, %v, want 10", size, err)
		}

		defer r.Close()

		for _, tt := range []struct {
			offset int64
			whence int
			read   int
			want   string
		}{
			{7, io.SeekStart, 9, "789"}, {0, io.SeekStart, 3, "012"}, {0, io.SeekCurrent, 2, "34"},
			{-2, io.SeekEnd, 9, "89"}, {1, io.SeekStart, 0, ""}, {0, io.SeekEnd, 9, ""}, {5, io.SeekEnd, 9, ""},
			{-8, io.SeekCurrent, 2, "78"},
		} {
			_, err := r.Seek(tt.offset, tt.whence)

			got, readErr := io.ReadAll(io.LimitReader(r, int64(tt.read)))
			if string(got) != tt.want || err != nil || readErr != nil {
				t.Errorf("Seek(%d, %d) and Read = %q, %v, %v, want %q", tt.offset, tt.whence, got, err,
					readErr, tt.want)
			}
		}

		if _, err := r.Seek(-1, io.SeekStart); err == nil {
			t.Error("Seek to before the beginning = nil, want an error")
		}

		for _, key := range []string{"a", "a/b/c", "missing", "a/missing/c", "missing/b"} {
			if _, _, err := s.Open(t.Context(), key); !fault.Is(err, fault.NotFound) {
				t.Errorf("Open(%q) = %v, want NotFound", key, err)
			}
		}
	})
}

func TestList(t *testing.T) {
	t.Parallel()

	forEachBackend(t, func(t *testing.T, s *Store, files fileLister) {
		for _, key := range []string{"a/1", "a/b/2", "a/b-c/3", "ab/4", "c"} {
			put(t, s, key, key)
		}

		for prefix, want := range map[string][]string{
			"a": {"a/1 3", "a/b-c/3 7", "a/b/2 5"}, "a/b": {"a/b/2 5"}, "c": {}, "missing": {}, "a/1": {},
		} {
			got := []string{}
			for e, err := range s.List(t.Context(), prefix) {
				if err != nil {
					t.Fatal(err)
				}

				if age := time.Since(e.Modified); age > time.Minute || age < -time.Minute {
					t.Errorf("%s was modified %s ago, want less than a minute", e.Key, age)
				}

				got = append(got, fmt.Sprint(e.Key, " ", e.Size))
			}

			slices.Sort(got)

			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("List(%q) (-want +got):\n%s", prefix, diff)
			}
		}

		for prefix, want := range map[string][]string{"a": {"b", "b-c"}, "a/b": nil, "c": nil, "missing": nil} {
			got, err := s.Folders(t.Context(), prefix)
			slices.Sort(got)

			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("Folders(%q) = %v (-want +got):\n%s", prefix, err, diff)
			}
		}

		for range s.List(t.Context(), "a") {
			break
		}

		canceled, cancel := context.WithCancel(t.Context())
		cancel()

		for _, err := range s.List(canceled, "a") {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("List = %v, want %v", err, context.Canceled)
			}
		}
	})
}

func TestMalformedKey(t *testing.T) {
	t.Parallel()

	forEachBackend(t, func(t *testing.T, s *Store, files fileLister) {
		put(t, s, "a", "kept")

		for _, key := range []string{
			"", ".", "..", "/", "a/", "/a", "a//b", "../a", "a/../a", "a/./b", ".unfinished", ".unfinished/x", "a/.b",
			"A", "ä", "a\x00b", "a b", "a\\b", "a\n", "a:b", filepath.Join(t.TempDir(), "a"),
		} {
			_, putErr := s.Put(t.Context(), key, strings.NewReader("x"), noLimit)
			_, _, openErr := s.Open(t.Context(), key)
			for op, err := range map[string]error{
				"Put": putErr, "Open": openErr,
				"Delete": s.Delete(t.Context(), key), "DeleteAll": s.DeleteAll(t.Context(), key),
			} {
				if !fault.Is(err, fault.Internal) {
					t.Errorf("%s(%q) = %v, want an internal error", op, key, err)
				}
			}
		}

		wantFiles(t, files, "a")
	})
}

func TestDelete(t *testing.T) {
	t.Parallel()

	forEachBackend(t, func(t *testing.T, s *Store, files fileLister) {
		for _, key := range []string{"a/1", "a/b/2", "a/b/3", "ab/4", "c"} {
			put(t, s, key, key)
		}

		if err := s.Delete(t.Context(), "c"); err != nil {
			t.Errorf("Delete = %v", err)
		}

		wantFiles(t, files, "a/1", "a/b/2", "a/b/3", "ab/4")
		if err := s.DeleteAll(t.Context(), "a/b"); err != nil {
			t.Errorf("DeleteAll = %v", err)
		}

		wantFiles(t, files, "a/1", "ab/4")
		if err := s.DeleteAll(t.Context(), "a"); err != nil {
			t.Errorf("DeleteAll = %v", err)
		}

		wantFiles(t, files, "ab/4")

		for _, key := range []string{"a", "a/1", "c", "x/y/z", "ab/4/5"} {
			if err := errors.Join(s.Delete(t.Context(), key), s.DeleteAll(t.Context(), key)); err != nil {
				t.Errorf("delete of missing %q = %v, want nil", key, err)
			}
		}

		wantFiles(t, files, "ab/4")
		put(t, s, "a/1", "again")
	})
}

func TestCheck(t *testing.T) {
	t.Parallel()

	forEachBackend(t, func(t *testing.T, s *Store, files fileLister) {
		if err := s.Check(t.Context()); err != nil {
			t.Errorf("Check = %v", err)
		}
		wantFiles(t, files)
	})
}

func TestScratch(t *testing.T) {
	t.Parallel()

	forEachBackend(t, func(t *testing.T, s *Store, files fileLister) {
		f, err := s.Scratch()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()

		if _, err := f.WriteString("scratch"); err != nil {
			t.Error(err)
		}

		wantFiles(t, files)

		if free, total, err := s.Space(); err != nil || free > total {
			t.Errorf("Space = %d, %d, %v", free, total, err)
		}
	})
}
