package operation

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"

	"github.com/socle-dev/socle/internal/fault"
)

// digestedInput is an input whose body is read as it arrives, since it is too large to buffer. An
// Idempotency-Key is stored with the files' digest, and a repeated request must send the same
// files.
type digestedInput interface {
	// startDigest starts to digest everything read from now on.
	startDigest() *bodyDigest
	// rereadBody reads a repeated request's body, with at most limit bytes of its files.
	rereadBody(limit int64) error
}

// digest covers a body's names and file bytes, independent of the multipart encoding.
type digest struct {
	Size   int64
	SHA256 []byte
}

// bodyDigest is a running SHA-256 over names and file bytes. The zero value does nothing.
type bodyDigest struct {
	hash hash.Hash
	size int64
}

func (s *bodyDigest) start() *bodyDigest {
	s.hash = sha256.New()
	return s
}

func (s *bodyDigest) writeBytes(b []byte) {
	if s.hash != nil {
		s.hash.Write(b)
		s.size += int64(len(b))
	}
}

func (s *bodyDigest) writeNames(names ...string) {
	for _, name := range names {
		if s.hash != nil {
			s.hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(name))))
			s.hash.Write([]byte(name))
		}
	}
}

func (s *bodyDigest) digest() *digest { return &digest{s.size, s.hash.Sum(nil)} }

// checkSameFiles fails with Conflict unless a repeated request's body has the first one's digest.
func checkSameFiles(in digestedInput, first *digest) error {
	if first == nil { // stored by a release without digests
		return nil
	}

	running := in.startDigest()
	if err := in.rereadBody(first.Size + 1); err != nil {
		return err
	}

	if sum := running.digest(); sum.Size != first.Size || string(sum.SHA256) != string(first.SHA256) {
		return fault.OnField(fault.Conflict, idempotencyHeader, "idempotency_key_reused",
			"was used for a request with other files")
	}

	return nil
}

func (u *Upload) startDigest() *bodyDigest { return u.digest.start() }

func (u *Upload) rereadBody(limit int64) error {
	if _, _, err := u.Open(); err != nil {
		return err
	}

	_, err := io.Copy(io.Discard, io.LimitReader(u, limit))
	return err
}

func (a *AttachedFiles) startDigest() *bodyDigest { return a.digest.start() }

func (a *AttachedFiles) rereadBody(limit int64) error {
	for a.parts != nil && a.digest.size < limit {
		file, err := a.NextFile()
		if file == nil || err != nil {
			return err
		}

		if _, err := io.Copy(io.Discard, io.LimitReader(file, limit-a.digest.size)); err != nil {
			return err
		}
	}

	return nil
}
