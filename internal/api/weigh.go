package api

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"

	"socle/internal/fault"
)

// weighed is an input whose body is read as it arrives, since it is too large to buffer. For an
// Idempotency-Key the digest of its files is stored, and a repeated request must send the same
// files.
type weighed interface {
	// weigh starts the digest of everything read from now on.
	weigh() *scale
	// again reads the body of a repeated request, with at most most bytes of its files.
	again(most int64) error
}

// weight is the digest of a body: of its names and file bytes, independent of the multipart
// encoding.
type weight struct {
	Size   int64
	SHA256 []byte
}

// scale is a running SHA-256 of names and file bytes. The zero scale does nothing.
type scale struct {
	hash hash.Hash
	size int64
}

func (s *scale) weigh() *scale {
	s.hash = sha256.New()
	return s
}

func (s *scale) bytes(b []byte) {
	if s.hash != nil {
		s.hash.Write(b)
		s.size += int64(len(b))
	}
}

func (s *scale) names(names ...string) {
	for _, name := range names {
		if s.hash != nil {
			s.hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(name))))
			s.hash.Write([]byte(name))
		}
	}
}

func (s *scale) weight() *weight { return &weight{s.size, s.hash.Sum(nil)} }

// same fails with Conflict unless the body of a repeated request has the digest of the first one.
func same(in weighed, first *weight) error {
	if first == nil { // stored by a release without digests
		return nil
	}

	s := in.weigh()

	if err := in.again(first.Size + 1); err != nil {
		return err
	}

	if now := s.weight(); now.Size != first.Size || string(now.SHA256) != string(first.SHA256) {
		return fault.OnField(fault.Conflict, keyHeader, "idempotency_key_reused",
			"was used for a request with other files")
	}

	return nil
}

func (u *Upload) weigh() *scale { return u.scale.weigh() }

func (u *Upload) again(most int64) error {
	if _, _, err := u.open(); err != nil {
		return err
	}

	_, err := io.Copy(io.Discard, io.LimitReader(u, most))
	return err
}

func (u *DataUpload) again(most int64) error {
	if u.media == "" {
		return u.Upload.again(most)
	}

	_, err := io.Copy(io.Discard, io.LimitReader(u, most))
	return err
}

func (a *Attached) weigh() *scale { return a.scale.weigh() }

func (a *Attached) again(most int64) error {
	for a.parts != nil && a.scale.size < most {
		part, err := a.next()
		if part == nil || err != nil {
			return err
		}

		if _, err := io.Copy(io.Discard, io.LimitReader(whole{part, &a.scale}, most-a.scale.size)); err != nil {
			return err
		}
	}

	return nil
}
