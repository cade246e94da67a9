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
	// how long a sum is believed that was found once: what spoils without being written is found by the next
	believed = time.Hour
	// how long ago a file was written for the next write to bear another time, on any file system
	settled  = 2 * time.Second
	mostSums = 1 << 14  // that are remembered, of some 100 bytes each
	heldBack = 16 << 10 // bytes at the end of a file that wait for the last look at it
)

// ErrOther says that a blob does not have the bytes that were stored.
var ErrOther = errors.New("has other bytes than were uploaded")

// Witness is what the file system says of an open blob. A blob is written once: while it says the same, the bytes that had a certain sum have it
// still, and can go the kernel's way. Any write changes it, one that puts the file's times back included.
//
// A nil Witness knows nothing: that is what S3 has.
type Witness struct {
	sums *sums
	file *os.File
	seen found
}

// stamp tells a file as it is from the same file after a write, and from any other.
type stamp struct {
	device, inode    uint64
	size             int64
	written, changed int64 // nanoseconds since 1970; nobody but the kernel sets when a file was changed
}

// found is a sum that was found.
type found struct {
	stamp
	sum [sha256.Size]byte
}

// sums remembers which sums were found, and when.
type sums struct {
	mu    sync.Mutex
	when  map[found]time.Time
	clock func() time.Time
}

func newSums() *sums { return &sums{when: map[found]time.Time{}, clock: time.Now} }

// Witness returns what is known of a blob that Open has opened, and that should have this sum.
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

// Found notes that the blob was read since there is the witness, and has the sum.
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
		delete(w.sums.when, other) // any one
	}

	w.sums.when[w.seen] = w.sums.clock()
}

// Holds reports whether the sum was found not long ago, and the blob is what it was then.
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

// Send writes the whole blob, whose reader is at its beginning, in a way that the kernel can take by itself. Its end is sent when it was looked at once
// more; if somebody did something to the file meanwhile, which may have been its removal, the sum decides: of other bytes Send fails with [ErrOther] and
// holds the end back.
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
