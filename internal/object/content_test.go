package object

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/socle-dev/socle/internal/blob"
)

// fileWriter counts the calls of ReadFrom with an *os.File, which a connection serves with
// sendfile.
type fileWriter struct {
	bytes.Buffer
	files int
}

func (w *fileWriter) ReadFrom(r io.Reader) (int64, error) {
	if part, ok := r.(*io.LimitedReader); ok {
		if _, ok := part.R.(*os.File); ok {
			w.files++
		}
	}

	return w.Buffer.ReadFrom(r)
}

// TestContentSend sends a file of this repository, which is old enough to be remembered: it is
// verified once and sent with sendfile afterwards.
func TestContentSend(t *testing.T) {
	t.Parallel()

	const name = "../../docs/openapi.json"
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}

	sum := sha256.Sum256(want)

	store, err := blob.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()

	send := func(sum []byte, from, n int64) (*fileWriter, *Content, error) {
		t.Helper()

		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()

		c, err := newContent(File{Size: int64(len(want)), SHA256: sum}, f, store.VerifiedFile(f, sum))
		if err != nil {
			t.Fatal(err)
		}

		if _, err := c.Seek(from, io.SeekStart); err != nil {
			t.Fatal(err)
		}

		w := &fileWriter{}
		_, err = c.Send(w, n)
		return w, c, err
	}

	size := int64(len(want))
	for _, asFile := range []bool{false, true, true} {
		w, c, err := send(sum[:], 0, size)
		if err != nil || c.Err() != nil || !bytes.Equal(w.Bytes(), want) || w.files > 0 != asFile {
			t.Errorf("sent %d bytes, %d times with sendfile, want sendfile %v: %v, %v",
				w.Len(), w.files, asFile, err, c.Err())
		}
	}

	if w, _, err := send(sum[:], 5, 10); err != nil || !bytes.Equal(w.Bytes(), want[5:15]) || w.files != 1 {
		t.Errorf("range: sent %q, %d times with sendfile, want %q once: %v", w.Bytes(), w.files, want[5:15], err)
	}

	other := sha256.Sum256(nil)
	w, c, err := send(other[:], 0, size)
	if !errors.Is(err, blob.ErrChecksumMismatch) || !errors.Is(c.Err(), blob.ErrChecksumMismatch) ||
		w.Len() == len(want) {
		t.Errorf("wrong checksum: sent %d of %d bytes, got %v, %v, want %v", w.Len(), size, err, c.Err(),
			blob.ErrChecksumMismatch)
	}
}
