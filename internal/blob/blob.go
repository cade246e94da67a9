// Package blob keeps bytes under keys: here, in a folder of this machine.
//
// It knows nothing of what the bytes are, who may read them, or which keys are
// in use; that stands in databases, and a row that names a key is committed only
// after [Store.Put] has returned. What Put acknowledged survives a power cut.
package blob

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"socle/internal/fault"
)

// unfinished is the folder for bytes that are still arriving. No key begins with a dot.
const unfinished = ".unfinished"

// Store is a folder of blobs. Its methods may be called concurrently.
//
// A key is one or more parts of a-z, 0-9, '.', '_' and '-' between slashes, none
// of which begins with a dot: distinct on every file system, whatever its folding.
// Keys are made by us and never by a client; another key is a plain error.
// Nothing but folders and regular files is ever followed or read, and
// nothing outside the store's folder is touched.
type Store struct {
	root *os.Root
}

// Object is what [Store.Put] stored.
type Object struct {
	Size   int64  // bytes
	SHA256 []byte // of all bytes
}

// Open returns the store in dir, which it makes if it is missing, readable by this account alone.
func Open(dir string) (*Store, error) {
	_, missing := os.Lstat(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the storage folder: %w", err)
	}
	if missing != nil {
		if err := syncFolder(os.Open(filepath.Dir(dir))); err != nil {
			return nil, fmt.Errorf("make the storage folder: %w", err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the storage folder: %w", err)
	}
	s := &Store{root}
	if err := s.makeFolder(unfinished); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the storage folder: %w", err), s.Close())
	}
	return s, nil
}

// Close releases the folder. Readers that are open stay so.
func (s *Store) Close() error { return s.root.Close() }

// Put stores everything that r holds under key, which must be new; it uses little
// memory whatever the size. ctx is looked at between two reads. Whatever the error,
// nothing is left under key: more than max bytes are TooLarge, a key that is taken is
// a Conflict, a folder that takes no more bytes is Unavailable, and an error of r
// or ctx is returned wrapped.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, max int64) (Object, error) {
	if err := valid(key); err != nil {
		return Object{}, err
	}
	name := path.Join(unfinished, rand.Text())
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return Object{}, failed("store", key, err)
	}
	defer s.root.Remove(name) // in vain after success; what stays in spite of it is for Sweep
	object, err := receive(ctx, f, r, max)
	if err := errors.Join(err, f.Close()); err != nil {
		return Object{}, failed("store", key, err)
	}
	if err := s.publish(name, key); err != nil {
		return Object{}, failed("store", key, err)
	}
	return object, nil
}

// Scratch returns an empty file for bytes that are needed while it is open: it has no name any more.
func (s *Store) Scratch() (*os.File, error) {
	name := path.Join(unfinished, rand.Text())
	f, err := s.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, failed("make", "a scratch file", err)
	}
	if err := s.root.Remove(name); err != nil {
		return nil, failed("make", "a scratch file", errors.Join(err, f.Close()))
	}
	return f, nil
}

// publish moves the finished file to its key, durably.
func (s *Store) publish(name, key string) error {
	if err := s.makeFolder(path.Dir(key)); err != nil {
		return err
	}
	// A link, unlike a rename, fails if the key is taken.
	err := s.root.Link(name, key)
	if errors.Is(err, fs.ErrExist) {
		return fault.New(fault.Conflict, "this is stored already").Because(err)
	}
	if err != nil {
		return err
	}
	// Both folders are synced, lest the file come back under two names, which Open refuses.
	if err := errors.Join(s.root.Remove(name), s.syncUp(path.Dir(key)), s.syncUp(unfinished)); err != nil {
		return errors.Join(err, s.root.Remove(key))
	}
	return nil
}

// Open returns a reader of the blob and its size in bytes. A key without a blob is NotFound.
// The caller closes the reader.
func (s *Store) Open(ctx context.Context, key string) (io.ReadSeekCloser, int64, error) {
	if err := errors.Join(ctx.Err(), valid(key)); err != nil {
		return nil, 0, failed("open", key, err)
	}
	want, err := s.lstat(key)
	if err != nil {
		return nil, 0, failed("open", key, err)
	}
	if !ours(want) {
		return nil, 0, failed("open", key, errNotOurs)
	}
	// Should a pipe take the file's place meanwhile, O_NONBLOCK keeps us from waiting for its writer.
	f, err := s.root.OpenFile(key, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, failed("open", key, err)
	}
	got, err := f.Stat()
	if err == nil && !os.SameFile(want, got) {
		err = errNotOurs
	}
	if err != nil {
		return nil, 0, failed("open", key, errors.Join(err, f.Close()))
	}
	return f, got.Size(), nil
}

// Delete removes the blob under key. That there is none is no error.
func (s *Store) Delete(ctx context.Context, key string) error {
	return s.remove(ctx, key, s.root.Remove)
}

// DeleteAll removes every blob whose key begins with the parts of prefix.
// That there is none is no error. A Put under prefix meanwhile may fail or survive.
func (s *Store) DeleteAll(ctx context.Context, prefix string) error {
	return s.remove(ctx, prefix, s.root.RemoveAll)
}

// Check reports, by writing a few bytes, whether the store takes any; if not, the fault is Unavailable.
func (s *Store) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	name := path.Join(unfinished, rand.Text())
	err := s.root.WriteFile(name, []byte("check"), 0o600)
	if removed := s.root.Remove(name); err == nil {
		err = removed
	}
	if err != nil {
		return unavailable(err)
	}
	return nil
}

// Sweep removes what a Put left unfinished when its process died: files that nobody
// has written to for olderThan. It returns how many there were.
func (s *Store) Sweep(ctx context.Context, olderThan time.Duration) (int, error) {
	dir, err := s.root.Open(unfinished)
	if err != nil {
		return 0, fmt.Errorf("sweep unfinished blobs: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return 0, fmt.Errorf("sweep unfinished blobs: %w", err)
	}
	swept, before := 0, time.Now().Add(-olderThan)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return swept, err
		}
		name = path.Join(unfinished, name)
		info, err := s.root.Lstat(name)
		if err == nil && info.ModTime().Before(before) {
			if err = s.root.RemoveAll(name); err == nil {
				swept++
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // its Put, or another sweep, was quicker
			return swept, fmt.Errorf("sweep unfinished blobs: %w", err)
		}
	}
	return swept, nil
}

// valid reports a key that is not in the form that [Store] describes.
func valid(key string) error {
	for part := range strings.SplitSeq(key, "/") {
		if part == "" || part[0] == '.' || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
			return fmt.Errorf("blob key %q is malformed", key)
		}
	}
	return nil
}
