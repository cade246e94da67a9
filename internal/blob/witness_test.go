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

// later advances the clock of the cache.
func (s *sums) later(d time.Duration) {
	s.clock = func() time.Time { return time.Now().Add(d) }
}

// watched stores content and returns a function that opens it a minute later.
func watched(t *testing.T, content string) (s *Store, name string, look func() *Witness) {
	t.Helper()

	s, dir := open(t)
	put(t, s, "a/b", content)
	s.sums.later(time.Minute)
	sum := sha256.Sum256([]byte(content))

	return s, filepath.Join(dir, "a/b"), func() *Witness {
		t.Helper()

		r, _, err := s.Open(t.Context(), "a/b")
		if err != nil {
			t.Fatal(err)
		}

		t.Cleanup(func() { r.Close() })
		return s.Witness(r, sum[:])
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

func TestWitness(t *testing.T) {
	t.Parallel()

	s, name, look := watched(t, "hello")
	w := look()
	if w == nil || w.Holds() {
		t.Fatalf("before the bytes were read: %v holds", w)
	}

	w.Found()

	if w = look(); !w.Holds() {
		t.Error("what was found is not remembered")
	}
	if other := s.Witness(w.file, make([]byte, sha256.Size)); other.Holds() {
		t.Error("another sum is taken for found")
	}

	s.sums.later(2 * time.Hour)

	if w.Holds() {
		t.Error("an old sum is believed")
	}

	w.Found()
	flip(t, name, 2)
	s.sums.later(3 * time.Hour)

	if w = look(); w.Holds() {
		t.Error("a byte was changed, and the old sum is believed")
	}

	flip(t, name, 3)
	w.Found() // the read bytes may be older or newer

	if w = look(); w.Holds() {
		t.Error("what was read while the file was written is believed")
	}
}

// TestWitnessOfWhatIsNew checks that a recent write has no Witness, since a further write could
// have the same time.
func TestWitnessOfWhatIsNew(t *testing.T) {
	t.Parallel()

	s, _, look := watched(t, "hello")
	for _, d := range []time.Duration{0, -time.Hour} { // the clock may have been set back
		s.sums.later(d)
		if w := look(); w != nil {
			t.Errorf("%v after it was written: %+v, want nil", d, w)
		}
	}

	var none *Witness
	if none.Found(); none.Holds() {
		t.Error("nil holds")
	}
}

func TestWitnessSend(t *testing.T) {
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
		"changed": {func(name string) { flip(t, name, 7) }, ErrOther},
		"cut":     {func(name string) { _ = os.Truncate(name, 90_000) }, ErrOther},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, path, look := watched(t, content)
			w := look()

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
				t.Errorf("%d bytes were sent, all of them: %v", got.Len(), whole)
			}
		})
	}
}

// TestSumsBound checks that the cache of checksums is bounded.
func TestSumsBound(t *testing.T) {
	t.Parallel()

	s, _, look := watched(t, "hello")
	for i := range mostSums {
		s.sums.when[found{stamp: stamp{inode: uint64(i)}}] = time.Now()
	}

	w := look()
	if w.Found(); !w.Holds() || len(s.sums.when) != mostSums {
		t.Errorf("%d sums are remembered, the new one among them: %v, want %d", len(s.sums.when), w.Holds(), mostSums)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
