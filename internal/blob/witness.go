package blob

import (
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

const (
	// believed is how long a verified checksum is trusted. Corruption without a write is found
	// afterwards.
	believed = time.Hour
	// settled is the age of a write from which a further write has another time, on any file system
	settled  = 2 * time.Second
	mostSums = 1 << 14  // of some 100 bytes each
	heldBack = 16 << 10 // bytes at the end of a file that are sent after the last check
)

// ErrOther reports that the bytes of a blob do not match its checksum.
var ErrOther = errors.New("has other bytes than were uploaded")

// Witness remembers, by inode and times, that the checksum of an open blob was verified, so that
// the blob can be sent with sendfile. Blobs are written once; any write changes the state of the
// file, even one that restores its modification time.
//
// A nil Witness has no verified checksum; S3 blobs always have nil.
type Witness struct {
	sums *sums
	file *os.File
	seen found
}

// stamp identifies a state of a file: it differs after any write, and for any other file.
type stamp struct {
	device, inode    uint64
	size             int64
	written, changed int64 // nanoseconds since 1970; only the kernel sets the time of change
}

// found is a verified checksum of a file state.
type found struct {
	stamp
	sum [sha256.Size]byte
}

// sums is a bounded cache of verified checksums.
type sums struct {
	mu    sync.Mutex
	when  map[found]time.Time
	clock func() time.Time
}

func newSums() *sums { return &sums{when: map[found]time.Time{}, clock: time.Now} }

// Witness returns the Witness of a blob opened by Open with the expected checksum sum, or nil if
// the blob is not a file or was changed too recently.
func (s *Store) Witness(blob io.ReadSeekCloser, sum []byte) *Witness {
	file, ok := blob.(*os.File)
	if !ok || len(sum) != sha256.Size {
		return nil
	}

	now, ok := stampOf(file)
	if !ok || s.sums.clock().Sub(time.Unix(0, now.changed)) < settled {
		return nil
	}

	return &Witness{s.sums, file, found{now, [sha256.Size]byte(sum)}}
}

// Found records that the checksum was verified by a read since the Witness was created.
func (w *Witness) Found() {
	if w == nil || !w.untouched() {
		return
	}

	w.sums.mu.Lock()
	defer w.sums.mu.Unlock()

	for other := range w.sums.when {
		if len(w.sums.when) < mostSums {
			break
		}
		delete(w.sums.when, other) // an arbitrary one
	}

	w.sums.when[w.seen] = w.sums.clock()
}

// Holds reports whether the checksum was verified recently and the file is unchanged since.
func (w *Witness) Holds() bool {
	if w == nil {
		return false
	}

	w.sums.mu.Lock()
	defer w.sums.mu.Unlock()

	when, known := w.sums.when[w.seen]
	if known && w.sums.clock().Sub(when) < believed {
		return true
	}

	delete(w.sums.when, w.seen)
	return false
}

// Send writes the whole blob to to, with sendfile if possible; the reader must be at its beginning.
// It sends the last bytes after checking the file once more. If the file was changed or removed
// meanwhile, it verifies the checksum. On a mismatch it withholds the end and fails with
// [ErrOther].
func (w *Witness) Send(to io.Writer) (sent int64, err error) {
	end := min(w.seen.size, heldBack)
	if sent, err = io.CopyN(to, w.file, w.seen.size-end); err != nil {
		return sent, err
	}

	if !w.untouched() {
		hash := sha256.New()
		if _, err := io.Copy(hash, io.NewSectionReader(w.file, 0, w.seen.size+1)); err != nil {
			return sent, err
		}

		if [sha256.Size]byte(hash.Sum(nil)) != w.seen.sum {
			return sent, ErrOther
		}
	}

	rest, err := io.CopyN(to, w.file, end)
	return sent + rest, err
}

func (w *Witness) untouched() bool {
	now, ok := stampOf(w.file)
	return ok && now == w.seen.stamp
}
