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

	"github.com/socle-dev/socle/internal/blob"
)

// maxPreverifiedSize is the maximum size in bytes at which a file is verified before the first byte
// is returned.
const maxPreverifiedSize = 64 << 10

// Content reads the bytes of a file and verifies their checksum. If it is read from start to end
// and the checksum does not match, the last Read fails instead of returning data.
type Content struct {
	source   io.ReadSeekCloser  // unverified
	verified *blob.VerifiedFile // nil if the checksum must be computed
	file     uuid.UUID
	size     int64
	wantSum  []byte

	offset, hashOffset int64
	hash               hash.Hash // nil before the first summed byte
	trusted            bool      // no further verification needed
	err                atomic.Pointer[error]
}

// newContent returns the verified content of f, read from source. It fails if the file is small and
// the checksum does not match. verified may be nil.
func newContent(f File, source io.ReadSeekCloser, verified *blob.VerifiedFile) (*Content, error) {
	c := &Content{source: source, verified: verified, file: f.UUID, size: f.Size, wantSum: f.SHA256}
	if f.Size > maxPreverifiedSize {
		return c, nil
	}

	all, err := io.ReadAll(c)
	if err := errors.Join(err, source.Close()); err != nil {
		return nil, err
	}

	c.source, c.trusted = memoryContent{bytes.NewReader(all)}, true
	_, err = c.Seek(0, io.SeekStart)
	return c, err
}

type memoryContent struct{ *bytes.Reader }

// Close implements io.Closer.
func (memoryContent) Close() error { return nil }

// Read implements io.Reader.
func (c *Content) Read(b []byte) (int, error) {
	n, err := c.source.Read(b)
	if c.offset == c.hashOffset && !c.trusted {
		if c.hash == nil {
			c.hash = sha256.New()
		}

		c.hash.Write(b[:n])
		c.hashOffset += int64(n)
	}

	c.offset += int64(n)
	if n > 0 && c.offset == c.size && c.hashOffset == c.size && !c.trusted {
		if !bytes.Equal(c.hash.Sum(nil), c.wantSum) {
			return 0, c.fail(blob.ErrChecksumMismatch)
		}
		c.verified.MarkVerified()
	}

	return n, err
}

// Seek implements io.Seeker. Content is verified only if it is read from the beginning.
func (c *Content) Seek(offset int64, whence int) (int64, error) {
	at, err := c.source.Seek(offset, whence)
	if c.offset = at; at == 0 {
		c.hashOffset, c.hash = 0, nil
	}

	return at, err
}

// Send writes the next n bytes to w, with sendfile if possible. A range is not verified. A whole
// file is verified, or was within the last hour and is unchanged since; if the checksum does not
// match, the end is withheld.
func (c *Content) Send(w io.Writer, n int64) (sent int64, err error) {
	switch {
	case c.trusted || c.offset != 0 || n != c.size:
		sent, err = io.CopyN(w, c.source, n)
	case c.verified.IsVerified():
		if sent, err = c.verified.Send(w); errors.Is(err, blob.ErrChecksumMismatch) {
			err = c.fail(err)
		}
	default:
		return io.CopyN(w, c, n)
	}

	c.offset += sent
	return sent, err
}

// Close closes the underlying blob.
func (c *Content) Close() error { return c.source.Close() }

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
