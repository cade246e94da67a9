package object

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/google/uuid"
)

// errOther says that bytes are not those that were uploaded.
var errOther = errors.New("has other bytes than were uploaded")

// checkedAtOnce is how large a file may be, in bytes, to be checked before any of it is handed out.
const checkedAtOnce = 64 << 10

// Content is the bytes of a file. Whoever reads it from its beginning to its end gets the end only if they are the bytes that were
// uploaded: else the last read fails.
type Content struct {
	io.ReadSeekCloser // the bytes, unchecked
	file              uuid.UUID
	size              int64
	want              []byte

	at, summed int64
	sum        hash.Hash
	err        error
}

// contentOf returns the bytes of a file as they are stored. It fails if the file is small and they are others.
func contentOf(f File, stored io.ReadSeekCloser) (*Content, error) {
	c := &Content{ReadSeekCloser: stored, file: f.UUID, size: f.Size, want: f.SHA256, sum: sha256.New()}
	if f.Size > checkedAtOnce {
		return c, nil
	}
	all, err := io.ReadAll(c)
	if err := errors.Join(err, stored.Close()); err != nil {
		return nil, err
	}
	c.ReadSeekCloser = inMemory{bytes.NewReader(all)}
	_, err = c.Seek(0, io.SeekStart)
	return c, err
}

type inMemory struct{ *bytes.Reader }

// Close does nothing.
func (inMemory) Close() error { return nil }

// Read reads on.
func (c *Content) Read(b []byte) (int, error) {
	n, err := c.ReadSeekCloser.Read(b)
	if c.at == c.summed {
		c.sum.Write(b[:n])
		c.summed += int64(n)
	}
	c.at += int64(n)
	if n > 0 && c.summed == c.size && !bytes.Equal(c.sum.Sum(nil), c.want) {
		c.err = fmt.Errorf("file %s %w", c.file, errOther)
		return 0, c.err
	}
	return n, err
}

// Seek moves the place of the next Read. What is read from another place than the beginning on is not checked.
func (c *Content) Seek(offset int64, whence int) (int64, error) {
	at, err := c.ReadSeekCloser.Seek(offset, whence)
	if c.at = at; at == 0 {
		c.summed = 0
		c.sum.Reset()
	}
	return at, err
}

// Err returns how the check ended: nil if nothing was found.
func (c *Content) Err() error { return c.err }
