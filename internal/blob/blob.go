// Package blob stores bytes under keys, in a local folder or in an S3 bucket.
//
// It knows neither the meaning of the bytes nor access rights nor which keys are in use; databases
// record that. A row that refers to a key is committed only after [Store.Put] has returned. Stored
// blobs survive a power failure.
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

	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/fault"
)

// Store stores blobs. Its methods may be called concurrently.
//
// A key consists of one or more parts of a-z, 0-9, '.', '_' and '-', separated by slashes. No part
// begins with a dot. Keys are thus distinct on every file system, even a case-insensitive one. Keys
// never come from clients; a malformed key is a plain error.
//
// A storage that does not answer in time, or is full, is Unavailable.
type Store struct {
	backend backend
	local   *folder // for scratch files; may equal backend
	sums    *sumCache
}

// backend stores a Store's blobs. Callers validate the keys.
type backend interface {
	put(ctx context.Context, key string, in *measuredReader) (Object, error)
	open(ctx context.Context, key string) (io.ReadSeekCloser, int64, error)
	remove(ctx context.Context, key string) error
	removeAll(ctx context.Context, prefix string) error
	list(ctx context.Context, prefix string) iter.Seq2[Entry, error]
	folders(ctx context.Context, prefix string) ([]string, error)
	check(ctx context.Context) error
	sweep(ctx context.Context, olderThan time.Duration) (int, error)
	space() (free, total int64, err error)
}

// Object describes a blob stored by [Store.Put].
type Object struct {
	Size   int64 // bytes
	SHA256 []byte
}

// Entry describes a blob listed by [Store.List].
type Entry struct {
	Key      string
	Size     int64     // bytes
	Modified time.Time // by the storage's clock
}

// OpenConfigured opens the store that the configuration names: a folder or a bucket. The bucket
// must exist; OpenConfigured sends no request to it.
func OpenConfigured(c config.Config) (*Store, error) {
	s, err := Open(c.StorageDir()) // for scratch files, if blobs are in a bucket
	if err != nil {
		return nil, err
	}

	if s3, ok := c.S3(); ok {
		if s.backend, err = openBucket(s3); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}

	return s, nil
}

// Open opens the store in folder dir, which it creates if missing, with access for the current user
// only. It reads regular files only, follows no links, and touches nothing outside dir.
func Open(dir string) (*Store, error) {
	f, err := openFolder(dir)
	if err != nil {
		return nil, err
	}

	return &Store{backend: f, local: f, sums: newSumCache()}, nil
}

// Close releases the store's resources. Open readers stay valid.
func (s *Store) Close() error { return s.local.close() }

// Put stores r's bytes under key, which must be new, in constant memory. It checks ctx between
// reads. A blob becomes visible only when complete, and after an error there is nothing under key.
// More than max bytes are TooLarge, an existing key is a Conflict, and Put wraps errors from r or
// ctx.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, max int64) (Object, error) {
	if err := validateKey(key); err != nil {
		return Object{}, err
	}

	object, err := s.backend.put(ctx, key, &measuredReader{r: r, max: max, ctxErr: ctx.Err, hash: sha256.New()})
	if err != nil {
		return Object{}, wrapError("store", key, err)
	}

	return object, nil
}

// Scratch returns an empty local file that is already unlinked and disappears when closed.
func (s *Store) Scratch() (*os.File, error) {
	f, err := s.local.scratch()
	if err != nil {
		return nil, wrapError("make", "a scratch file", err)
	}

	return f, nil
}

// Space returns the storage's free and total bytes, or 0 if it has no known limit.
func (s *Store) Space() (free, total int64, err error) {
	if free, total, err = s.backend.space(); err != nil {
		return 0, 0, unavailable(fmt.Errorf("get free space of the storage: %w", err))
	}
	return free, total, nil
}

// Open returns a reader for the blob and the size in bytes. It fails with NotFound if there is no
// blob. The caller closes the reader, which outlives ctx; each read ends within a bounded time.
func (s *Store) Open(ctx context.Context, key string) (io.ReadSeekCloser, int64, error) {
	if err := errors.Join(ctx.Err(), validateKey(key)); err != nil {
		return nil, 0, wrapError("open", key, err)
	}

	r, size, err := s.backend.open(ctx, key)
	if err != nil {
		return nil, 0, wrapError("open", key, err)
	}

	return r, size, nil
}

// Delete deletes the blob under key. A missing blob is no error.
func (s *Store) Delete(ctx context.Context, key string) error {
	return s.remove(ctx, key, s.backend.remove)
}

// DeleteAll deletes all blobs below prefix. It is no error if there are none. A concurrent Put
// below prefix may fail or survive.
func (s *Store) DeleteAll(ctx context.Context, prefix string) error {
	return s.remove(ctx, prefix, s.backend.removeAll)
}

func (s *Store) remove(ctx context.Context, key string, remove func(context.Context, string) error) error {
	if err := errors.Join(ctx.Err(), validateKey(key)); err != nil {
		return wrapError("delete", key, err)
	}
	if err := remove(ctx, key); err != nil {
		return wrapError("delete", key, err)
	}

	return nil
}

// List yields the blobs below prefix in no particular order. Blobs stored or deleted concurrently
// may be included or not. It stops after an error.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := errors.Join(ctx.Err(), validateKey(prefix)); err != nil {
			yield(Entry{}, wrapError("list", prefix, err))
			return
		}

		for e, err := range s.backend.list(ctx, prefix) {
			if err != nil {
				yield(Entry{}, wrapError("list", prefix, err))
				return
			}

			if !yield(e, nil) {
				return
			}
		}
	}
}

// Folders returns the names of folders directly below prefix.
func (s *Store) Folders(ctx context.Context, prefix string) ([]string, error) {
	if err := errors.Join(ctx.Err(), validateKey(prefix)); err != nil {
		return nil, wrapError("list", prefix, err)
	}

	names, err := s.backend.folders(ctx, prefix)
	if err != nil {
		return nil, wrapError("list", prefix, err)
	}

	return names, nil
}

// Check reports whether the store accepts writes, by writing a few bytes. It fails with
// Unavailable, which wraps a [ConfigError] if the operator must correct the configuration.
func (s *Store) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.backend.check(ctx); err != nil {
		return unavailable(err)
	}

	return nil
}

// Sweep cleans up unfinished blobs that crashed processes have not written to for olderThan. It
// returns how many it removed.
func (s *Store) Sweep(ctx context.Context, olderThan time.Duration) (int, error) {
	n, err := s.backend.sweep(ctx, olderThan)
	if err != nil {
		return n, fmt.Errorf("sweep unfinished blobs: %w", err)
	}

	return n, nil
}

// measuredReader wraps a blob's content to limit, count and hash it, and fails as [Store.Put] does.
type measuredReader struct {
	r      io.Reader
	max    int64 // bytes
	ctxErr func() error
	size   int64 // bytes read so far
	hash   hash.Hash
}

// Read implements io.Reader.
func (in *measuredReader) Read(p []byte) (int, error) {
	if err := in.ctxErr(); err != nil {
		return 0, err
	}

	n, err := in.r.Read(p)
	if int64(n) > in.max-in.size {
		return 0, fault.New(fault.TooLarge, "the content exceeds %d bytes", in.max)
	}

	in.size += int64(n)
	in.hash.Write(p[:n])

	return n, err
}

// object describes the bytes read so far.
func (in *measuredReader) object() Object { return Object{in.size, in.hash.Sum(nil)} }

// validateKey returns an error if key does not have the form described at [Store].
func validateKey(key string) error {
	for part := range strings.SplitSeq(key, "/") {
		if part == "" || part[0] == '.' || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
			return fmt.Errorf("blob key %q is malformed", key)
		}
	}

	return nil
}

// wrapError wraps err with the operation and the key, and sets its kind.
func wrapError(op, key string, err error) error {
	err = fmt.Errorf("%s blob %s: %w", op, key, err)
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) && op == "open" {
		return fault.New(fault.NotFound, "the blob does not exist").WithCause(err)
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
		Detail:     "the storage is unavailable",
		RetryAfter: 10 * time.Second,
		Err:        err,
	}
}
