package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

// Digest holds the size and checksum of some bytes.
type Digest struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // lower-case hexadecimal
}

// NewDigest returns the digest of size bytes with a SHA-256 sum.
func NewDigest(size int64, sum []byte) Digest { return Digest{size, hex.EncodeToString(sum)} }

// sum returns the checksum bytes. It fails with ErrDamaged unless the checksum is canonical and the
// size is not negative.
func (d Digest) sum() ([]byte, error) {
	sum, err := hex.DecodeString(d.SHA256)
	if err != nil || len(sum) != sha256.Size || hex.EncodeToString(sum) != d.SHA256 || d.Size < 0 {
		return nil, fmt.Errorf("%w: invalid content %v", ErrDamaged, d)
	}

	return sum, nil
}

// Hasher computes the digest of the bytes written to it.
type Hasher struct {
	hash hash.Hash
	size int64
}

// NewHasher returns an empty Hasher.
func NewHasher() *Hasher { return &Hasher{hash: sha256.New()} }

// Write never fails.
func (h *Hasher) Write(b []byte) (int, error) {
	h.size += int64(len(b))
	return h.hash.Write(b)
}

// Digest returns the digest of the bytes written so far.
func (h *Hasher) Digest() Digest { return NewDigest(h.size, h.hash.Sum(nil)) }

// Verify returns a reader that reads r and fails with ErrMismatch at the end unless the bytes match
// want.
func Verify(r io.Reader, want Digest) io.Reader { return &verifyingReader{r, NewHasher(), want} }

type verifyingReader struct {
	r    io.Reader
	sum  *Hasher
	want Digest
}

func (v *verifyingReader) Read(b []byte) (int, error) {
	n, err := v.r.Read(b)
	_, _ = v.sum.Write(b[:n])
	if err == io.EOF && v.sum.Digest() != v.want {
		err = fmt.Errorf("%w: got %v, want %v", ErrMismatch, v.sum.Digest(), v.want)
	}

	return n, err
}
