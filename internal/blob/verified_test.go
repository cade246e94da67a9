package blob

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// advance advances the clock of the cache.
func (s *sumCache) advance(d time.Duration) {
	s.clock = func() time.Time { return time.Now().Add(d) }
}

// openLater stores content and returns a function that opens it a minute later.
func openLater(t *testing.T, content string) (s *Store, name string, openBlob func() *VerifiedFile) {
	t.Helper()

	s, dir := open(t)
	put(t, s, "a/b", content)
	s.sums.advance(time.Minute)
	sum := sha256.Sum256([]byte(content))

	return s, filepath.Join(dir, "a/b"), func() *VerifiedFile {
		t.Helper()

		r, _, err := s.Open(t.Context(), "a/b")
		if err != nil {
			t.Fatal(err)
		}

		t.Cleanup(func() { r.Close() })
		return s.VerifiedFile(r, sum[:])
	}
}

// flip changes a byte of a file and restores its times.
func flip(t *testing.T, name string, at int64) {
	t.Helper()

	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}

	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}

	_, err = f.WriteAt([]byte("!"), at)
	if err := errors.Join(err, f.Close(), os.Chtimes(name, info.ModTime(), info.ModTime())); err != nil {
		t.Fatal(err)
	}
}

func TestVerifiedFile(t *testing.T) {
	t.Parallel()

	s, name, openBlob := openLater(t, "hello")
	file := openBlob()
	if file == nil || file.IsVerified() {
		t.Fatalf("before a read: got %v, want an unverified file", file)
	}

	file.MarkVerified()

	if file = openBlob(); !file.IsVerified() {
		t.Error("a verified checksum is not remembered")
	}
	if other := s.VerifiedFile(file.file, make([]byte, sha256.Size)); other.IsVerified() {
		t.Error("another checksum counts as verified")
	}

	s.sums.advance(2 * time.Hour)

	if file.IsVerified() {
		t.Error("an expired checksum counts as verified")
	}

	file.MarkVerified()
	flip(t, name, 2)
	s.sums.advance(3 * time.Hour)

	if file = openBlob(); file.IsVerified() {
		t.Error("the checksum of a changed file counts as verified")
	}

	flip(t, name, 3)
	file.MarkVerified() // the read bytes may be older or newer

	if file = openBlob(); file.IsVerified() {
		t.Error("the checksum of a file changed during the read counts as verified")
	}
}

// TestVerifiedFileTooRecent checks that a recent write has no VerifiedFile, since a further write
// could have the same time.
func TestVerifiedFileTooRecent(t *testing.T) {
	t.Parallel()

	s, _, openBlob := openLater(t, "hello")
	for _, d := range []time.Duration{0, -time.Hour} { // the clock may have been set back
		s.sums.advance(d)
		if w := openBlob(); w != nil {
			t.Errorf("%v after the write: got %+v, want nil", d, w)
		}
	}

	var none *VerifiedFile
	if none.MarkVerified(); none.IsVerified() {
		t.Error("nil is verified")
	}
}

func TestVerifiedFileSend(t *testing.T) {
	t.Parallel()

	content := strings.Repeat("0123456789", 10_000)
	for name, tt := range map[string]struct {
		meanwhile func(name string)
		want      error
	}{
		"untouched": {func(string) {}, nil},
		"other rights": {func(name string) {
			if err := os.Chmod(name, 0o400); err != nil {
				t.Error(err)
			}
		}, nil},
		"removed": {func(name string) {
			if err := os.Remove(name); err != nil {
				t.Error(err)
			}
		}, nil},
		"changed": {func(name string) { flip(t, name, 7) }, ErrChecksumMismatch},
		"cut":     {func(name string) { _ = os.Truncate(name, 90_000) }, ErrChecksumMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, path, openBlob := openLater(t, content)
			w := openBlob()

			var got bytes.Buffer
			n, err := w.Send(writerFunc(func(b []byte) (int, error) {
				if got.Len() == 0 {
					tt.meanwhile(path)
				}
				return got.Write(b)
			}))
			if !errors.Is(err, tt.want) || n != int64(got.Len()) {
				t.Errorf("Send = %d, %v after %d bytes, want %v", n, err, got.Len(), tt.want)
			}

			if whole := got.String() == content; whole != (tt.want == nil) {
				t.Errorf("sent %d bytes, complete: %v, want %v", got.Len(), whole, tt.want == nil)
			}
		})
	}
}

// TestSumCacheBound checks that the cache of checksums is bounded.
func TestSumCacheBound(t *testing.T) {
	t.Parallel()

	s, _, openBlob := openLater(t, "hello")
	for i := range maxSums {
		s.sums.entries.Put(verifiedSum{stamp: stamp{inode: uint64(i)}}, struct{}{})
	}

	w := openBlob()
	if w.MarkVerified(); !w.IsVerified() || s.sums.entries.Len() != maxSums {
		t.Errorf("%d checksums cached, including the new one: %v, want %d",
			s.sums.entries.Len(), w.IsVerified(), maxSums)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
