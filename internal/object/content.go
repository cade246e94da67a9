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

// checkedAtOnce is how large a file may be, in bytes, to be checked before any of it is handed out.
const checkedAtOnce = 64 << 10

// Content is the bytes of a file. Whoever reads it from its beginning to its end gets the end only if they are the bytes that were
// uploaded: else the last read fails.
type Content struct {
	stored  io.ReadSeekCloser // the bytes, unchecked
	witness *blob.Witness     // of what is known of them
	file    uuid.UUID
	size    int64
	want    []byte

	at, summed int64
	sum        hash.Hash // nil: nothing was summed yet
	checked    bool      // it need not be summed any more
	err        atomic.Pointer[error]
}

// contentOf returns the bytes of a file as they are stored. It fails if the file is small and they are others. witness may be nil.
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

// Close does nothing.
func (inMemory) Close() error { return nil }

// Read reads on.
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

// Seek moves the place of the next Read. What is read from another place than the beginning on is not checked.
func (c *Content) Seek(offset int64, whence int) (int64, error) {
	at, err := c.stored.Seek(offset, whence)
	if c.at = at; at == 0 {
		c.summed, c.sum = 0, nil
	}

	return at, err
}

// Send writes the next n bytes to w, if it can in a way that the kernel takes by itself. A part says nothing of the whole and is not checked; of the whole
// the end is written if they are the bytes that were uploaded, as they are if they were an hour ago and nobody has touched them.
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

// Close ends the reading.
func (c *Content) Close() error { return c.stored.Close() }

func (c *Content) fail(err error) error {
	err = fmt.Errorf("file %s %w", c.file, err)
	c.err.Store(&err)

	return err
}

// Err returns how the check ended: nil if nothing was found.
func (c *Content) Err() error {
	if err := c.err.Load(); err != nil {
		return *err
	}
	return nil
}
