package object

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync/atomic"

	"github.com/google/uuid"

	"socle/internal/blob"
)

// checkedAtOnce is the size in bytes up to which a file is verified before any of it is returned.
const checkedAtOnce = 64 << 10

// Content reads the bytes of a file and verifies their checksum. If it is read from start to end
// and the checksum does not match, the last Read fails instead of returning data.
type Content struct {
	stored  io.ReadSeekCloser // unverified
	witness *blob.Witness     // nil if the checksum must be computed
	file    uuid.UUID
	size    int64
	want    []byte

	at, summed int64
	sum        hash.Hash // nil before the first summed byte
	checked    bool      // no further verification needed
	err        atomic.Pointer[error]
}

// contentOf returns the verified content of f, read from stored. It fails if the file is small and
// its checksum does not match. witness may be nil.
func contentOf(f File, stored io.ReadSeekCloser, witness *blob.Witness) (*Content, error) {
	c := &Content{stored: stored, witness: witness, file: f.UUID, size: f.Size, want: f.SHA256}
	if f.Size > checkedAtOnce {
		return c, nil
	}

	all, err := io.ReadAll(c)
	if err := errors.Join(err, stored.Close()); err != nil {
		return nil, err
	}

	c.stored, c.checked = inMemory{bytes.NewReader(all)}, true
	_, err = c.Seek(0, io.SeekStart)
	return c, err
}

type inMemory struct{ *bytes.Reader }

// Close implements io.Closer.
func (inMemory) Close() error { return nil }

// Read implements io.Reader.
func (c *Content) Read(b []byte) (int, error) {
	n, err := c.stored.Read(b)
	if c.at == c.summed && !c.checked {
		if c.sum == nil {
			c.sum = sha256.New()
		}

		c.sum.Write(b[:n])
		c.summed += int64(n)
	}

	c.at += int64(n)
	if n > 0 && c.at == c.size && c.summed == c.size && !c.checked {
		if !bytes.Equal(c.sum.Sum(nil), c.want) {
			return 0, c.fail(blob.ErrOther)
		}
		c.witness.Found()
	}

	return n, err
}

// Seek implements io.Seeker. Content is verified only if it is read from the beginning.
func (c *Content) Seek(offset int64, whence int) (int64, error) {
	at, err := c.stored.Seek(offset, whence)
	if c.at = at; at == 0 {
		c.summed, c.sum = 0, nil
	}

	return at, err
}

// Send writes the next n bytes to w, with sendfile if possible. A range is not verified. A whole
// file is verified, or was within the last hour and is unchanged since; if the checksum does not
// match, the end is withheld.
func (c *Content) Send(w io.Writer, n int64) (sent int64, err error) {
	switch {
	case c.checked || c.at != 0 || n != c.size:
		sent, err = io.CopyN(w, c.stored, n)
	case c.witness.Holds():
		if sent, err = c.witness.Send(w); errors.Is(err, blob.ErrOther) {
			err = c.fail(err)
		}
	default:
		return io.CopyN(w, c, n)
	}

	c.at += sent
	return sent, err
}

// Close closes the underlying blob.
func (c *Content) Close() error { return c.stored.Close() }

func (c *Content) fail(err error) error {
	err = fmt.Errorf("file %s %w", c.file, err)
	c.err.Store(&err)

	return err
}

// Err returns the verification error, or nil if no mismatch was found so far.
func (c *Content) Err() error {
	if err := c.err.Load(); err != nil {
		return *err
	}
	return nil
}
