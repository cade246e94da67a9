// Package blob keeps bytes under keys: in a folder of this machine, or in a service that speaks S3.
//
// It knows nothing of what the bytes are, who may read them, or which keys are
// in use; that stands in databases, and a row that names a key is committed only
// after [Store.Put] has returned. What Put acknowledged survives a power cut.
package blob

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"
	"syscall"
	"time"

	"socle/internal/config"
	"socle/internal/fault"
)

// Store is where blobs are. Its methods may be called concurrently.
//
// A key is one or more parts of a-z, 0-9, '.', '_' and '-' between slashes, none
// of which begins with a dot: distinct on every file system, whatever its folding.
// Keys are made by us and never by a client; another key is a plain error.
//
// A place that does not answer, or not in time, or takes no more bytes, is Unavailable.
type Store struct {
	place place
	local *folder // for scratch files; maybe the place itself
	sums  *sums
}

// place is where the blobs of a store are. It gets valid keys only.
type place interface {
	put(ctx context.Context, key string, in *incoming) (Object, error)
	open(ctx context.Context, key string) (io.ReadSeekCloser, int64, error)
	remove(ctx context.Context, key string) error
	removeAll(ctx context.Context, prefix string) error
	list(ctx context.Context, prefix string) iter.Seq2[Entry, error]
	folders(ctx context.Context, prefix string) ([]string, error)
	check(ctx context.Context) error
	sweep(ctx context.Context, olderThan time.Duration) (int, error)
	space() (free, total int64, err error)
}

// Object is what [Store.Put] stored.
type Object struct {
	Size   int64  // bytes
	SHA256 []byte // of all bytes
}

// Entry is a blob as [Store.List] finds it.
type Entry struct {
	Key      string
	Size     int64     // bytes
	Modified time.Time // by the clock of the place
}

// OpenConfigured returns the store that the configuration names: a folder, or a bucket, which must be there and is asked for nothing yet.
func OpenConfigured(c config.Config) (*Store, error) {
	s, err := Open(c.StorageDir()) // beside a bucket, the folder has the scratch files
	if err != nil {
		return nil, err
	}

	if s3, ok := c.S3(); ok {
		if s.place, err = openBucket(s3); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}

	return s, nil
}

// Open returns the store in the folder dir, which it makes if it is missing, readable by this account alone. Nothing but
// folders and regular files is ever followed or read in it, and nothing outside of it is touched.
func Open(dir string) (*Store, error) {
	f, err := openFolder(dir)
	if err != nil {
		return nil, err
	}

	return &Store{place: f, local: f, sums: newSums()}, nil
}

// Close releases what the store holds. Readers that are open stay so.
func (s *Store) Close() error { return s.local.close() }

// Put stores everything that r holds under key, which must be new; it uses little
// memory whatever the size. ctx is looked at between two reads. A blob appears whole or not at all, and whatever
// the error, nothing is left under key: more than max bytes are TooLarge, a key that is taken is
// a Conflict, and an error of r or ctx is returned wrapped.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, max int64) (Object, error) {
	if err := valid(key); err != nil {
		return Object{}, err
	}

	object, err := s.place.put(ctx, key, &incoming{r: r, max: max, ended: ctx.Err, hash: sha256.New()})
	if err != nil {
		return Object{}, failed("store", key, err)
	}

	return object, nil
}

// Scratch returns an empty file of this machine for bytes that are needed while it is open: it has no name any more.
func (s *Store) Scratch() (*os.File, error) {
	f, err := s.local.scratch()
	if err != nil {
		return nil, failed("make", "a scratch file", err)
	}

	return f, nil
}

// Space returns how many bytes the store has left, and how many it has in all: 0 if the place has no end that it tells.
func (s *Store) Space() (free, total int64, err error) {
	if free, total, err = s.place.space(); err != nil {
		return 0, 0, unavailable(fmt.Errorf("space of the storage: %w", err))
	}
	return free, total, nil
}

// Open returns a reader of the blob and its size in bytes. A key without a blob is NotFound.
// The caller closes the reader, which outlives ctx; each of its reads ends within a bounded time.
func (s *Store) Open(ctx context.Context, key string) (io.ReadSeekCloser, int64, error) {
	if err := errors.Join(ctx.Err(), valid(key)); err != nil {
		return nil, 0, failed("open", key, err)
	}

	r, size, err := s.place.open(ctx, key)
	if err != nil {
		return nil, 0, failed("open", key, err)
	}

	return r, size, nil
}

// Delete removes the blob under key. That there is none is no error.
func (s *Store) Delete(ctx context.Context, key string) error {
	return s.remove(ctx, key, s.place.remove)
}

// DeleteAll removes every blob whose key begins with the parts of prefix.
// That there is none is no error. A Put under prefix meanwhile may fail or survive.
func (s *Store) DeleteAll(ctx context.Context, prefix string) error {
	return s.remove(ctx, prefix, s.place.removeAll)
}

func (s *Store) remove(ctx context.Context, key string, remove func(context.Context, string) error) error {
	if err := errors.Join(ctx.Err(), valid(key)); err != nil {
		return failed("delete", key, err)
	}
	if err := remove(ctx, key); err != nil {
		return failed("delete", key, err)
	}

	return nil
}

// List yields the blobs whose keys begin with the parts of prefix and go on after them, in no certain order. A blob that is stored or deleted
// meanwhile may be among them or not. After an error it ends.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := errors.Join(ctx.Err(), valid(prefix)); err != nil {
			yield(Entry{}, failed("list", prefix, err))
			return
		}

		for e, err := range s.place.list(ctx, prefix) {
			if err != nil {
				yield(Entry{}, failed("list", prefix, err))
				return
			}

			if !yield(e, nil) {
				return
			}
		}
	}
}

// Folders returns the parts that follow after the parts of prefix in keys that go on after them.
func (s *Store) Folders(ctx context.Context, prefix string) ([]string, error) {
	if err := errors.Join(ctx.Err(), valid(prefix)); err != nil {
		return nil, failed("list", prefix, err)
	}

	names, err := s.place.folders(ctx, prefix)
	if err != nil {
		return nil, failed("list", prefix, err)
	}

	return names, nil
}

// Check reports, by writing a few bytes, whether the store takes any; if not, the fault is Unavailable. What only the operator can put right
// is a [Mistake] besides.
func (s *Store) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.place.check(ctx); err != nil {
		return unavailable(err)
	}

	return nil
}

// Sweep removes what a Put left unfinished when its process died: what nobody
// has written to for olderThan. It returns how many there were.
func (s *Store) Sweep(ctx context.Context, olderThan time.Duration) (int, error) {
	n, err := s.place.sweep(ctx, olderThan)
	if err != nil {
		return n, fmt.Errorf("sweep unfinished blobs: %w", err)
	}

	return n, nil
}

// incoming is the content of a blob on its way in: it is measured while it is read, and fails as [Store.Put] says.
type incoming struct {
	r     io.Reader
	max   int64 // bytes
	ended func() error
	size  int64 // bytes so far
	hash  hash.Hash
}

// Read reads on.
func (in *incoming) Read(p []byte) (int, error) {
	if err := in.ended(); err != nil {
		return 0, err
	}

	n, err := in.r.Read(p)
	if int64(n) > in.max-in.size {
		return 0, fault.New(fault.TooLarge, "more than %d bytes", in.max)
	}

	in.size += int64(n)
	in.hash.Write(p[:n])

	return n, err
}

// object is what was read.
func (in *incoming) object() Object { return Object{in.size, in.hash.Sum(nil)} }

// valid reports a key that is not in the form that [Store] describes.
func valid(key string) error {
	for part := range strings.SplitSeq(key, "/") {
		if part == "" || part[0] == '.' || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
			return fmt.Errorf("blob key %q is malformed", key)
		}
	}

	return nil
}

// failed gives err its kind and, for the log, what was done to which key.
func failed(doing, key string, err error) error {
	err = fmt.Errorf("%s blob %s: %w", doing, key, err)
	if _, done := errors.AsType[*fault.Error](err); done {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) && doing == "open" {
		return fault.New(fault.NotFound, "the bytes are not there").Because(err)
	}

	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		switch errno {
		case syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EROFS, syscall.EACCES, syscall.EIO, syscall.EMFILE,
			syscall.ENFILE:
			return unavailable(err)
		}
	}

	return err
}

func unavailable(err error) error {
	return &fault.Error{
		Kind:       fault.Unavailable,
		Detail:     "the storage can't be used at present",
		RetryAfter: 10 * time.Second,
		Err:        err,
	}
}
