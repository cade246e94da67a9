package blob

import (
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"time"

	"github.com/socle-dev/socle/internal/cache"
)

const (
	// sumTTL is how long a verified checksum is trusted. Corruption without a write is found
	// afterwards.
	sumTTL = time.Hour
	// minUnchangedAge is the age from which a write's time differs from that of any later write, on
	// any file system
	minUnchangedAge = 2 * time.Second
	maxSums         = 1 << 14  // entries, some 100 bytes each
	tailSize        = 16 << 10 // bytes at the file's end that are sent after the last check
)

// ErrChecksumMismatch reports that a blob's bytes do not match its checksum.
var ErrChecksumMismatch = errors.New("does not match its checksum")

// VerifiedFile remembers, by inode and times, that an open blob's checksum was verified, so that
// the blob can be sent with sendfile. Blobs are written once; any write changes the file's state,
// even one that restores the modification time.
//
// A nil VerifiedFile has no verified checksum; S3 blobs always have nil.
type VerifiedFile struct {
	sums *sumCache
	file *os.File
	want verifiedSum
}

// stamp identifies a file's state: it differs after any write, and for any other file.
type stamp struct {
	device, inode uint64
	size          int64
	mtime, ctime  int64 // nanoseconds since 1970; only the kernel sets the change time
}

// verifiedSum is a verified checksum for a file state.
type verifiedSum struct {
	stamp
	sum [sha256.Size]byte
}

// sumCache caches verified checksums.
type sumCache struct {
	clock   func() time.Time
	entries *cache.Cache[verifiedSum, struct{}]
}

func newSumCache() *sumCache {
	s := &sumCache{clock: time.Now}
	s.entries = cache.New[verifiedSum, struct{}](cache.Limits{Entries: maxSums, TTL: sumTTL,
		Now: func() time.Time { return s.clock() }})

	return s
}

// VerifiedFile returns the VerifiedFile for a blob opened by Open with the expected checksum sum,
// or nil if the blob is not a file or was changed too recently.
func (s *Store) VerifiedFile(blob io.ReadSeekCloser, sum []byte) *VerifiedFile {
	file, ok := blob.(*os.File)
	if !ok || len(sum) != sha256.Size {
		return nil
	}

	current, ok := readStamp(file)
	if !ok || s.sums.clock().Sub(time.Unix(0, current.ctime)) < minUnchangedAge {
		return nil
	}

	return &VerifiedFile{s.sums, file, verifiedSum{current, [sha256.Size]byte(sum)}}
}

// MarkVerified records that the checksum was verified by a read since the VerifiedFile was created.
func (v *VerifiedFile) MarkVerified() {
	if v == nil || !v.isUnchanged() {
		return
	}

	v.sums.entries.Put(v.want, struct{}{})
}

// IsVerified reports whether the checksum was verified recently and the file is unchanged since.
func (v *VerifiedFile) IsVerified() bool {
	if v == nil {
		return false
	}

	_, ok := v.sums.entries.Get(v.want)
	return ok
}

// Send writes the whole blob to to, with sendfile if possible; the reader must be at the beginning.
// It sends the last bytes after checking the file once more. If the file was changed or removed
// meanwhile, it verifies the checksum. On a mismatch it withholds the end and fails with
// [ErrChecksumMismatch].
func (v *VerifiedFile) Send(to io.Writer) (sent int64, err error) {
	end := min(v.want.size, tailSize)
	if sent, err = io.CopyN(to, v.file, v.want.size-end); err != nil {
		return sent, err
	}

	if !v.isUnchanged() {
		hash := sha256.New()
		if _, err := io.Copy(hash, io.NewSectionReader(v.file, 0, v.want.size+1)); err != nil {
			return sent, err
		}

		if [sha256.Size]byte(hash.Sum(nil)) != v.want.sum {
			return sent, ErrChecksumMismatch
		}
	}

	rest, err := io.CopyN(to, v.file, end)
	return sent + rest, err
}

func (v *VerifiedFile) isUnchanged() bool {
	current, ok := readStamp(v.file)
	return ok && current == v.want.stamp
}
