package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

// Digest are the size and checksum of a byte sequence.
type Digest struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // lower-case hexadecimal
}

// digest computes the size and SHA-256 of the bytes written.
type digest struct {
	hash hash.Hash
	size int64
}

func newDigest() *digest { return &digest{hash: sha256.New()} }

func (s *digest) Write(b []byte) (int, error) {
	s.size += int64(len(b))
	return s.hash.Write(b)
}

func (s *digest) bytes() Digest { return Digest{s.size, hex.EncodeToString(s.hash.Sum(nil))} }

// verifyingReader reads r and fails at its end unless its size and checksum match want.
type verifyingReader struct {
	r    io.Reader
	sum  *digest
	want Digest
}

func newVerifyingReader(r io.Reader, want Digest) *verifyingReader {
	return &verifyingReader{r, newDigest(), want}
}

func (e *verifyingReader) Read(b []byte) (int, error) {
	n, err := e.r.Read(b)
	_, _ = e.sum.Write(b[:n])
	if err == io.EOF && e.sum.bytes() != e.want {
		err = fmt.Errorf("%w: got %v, want %v", errContentMismatch, e.sum.bytes(), e.want)
	}

	return n, err
}
