//go:build !linux

package blob

import (
	"errors"
	"os"
	"syscall"
)

// stampOf knows nothing: bytes are summed each time.
func stampOf(*os.File) (stamp, bool) { return stamp{}, false }

// openFile opens what is under key for reading. It follows no link, and waits for nobody.
func (s *folder) openFile(key string) (*os.File, error) {
	want, err := s.lstat(key)
	if err != nil {
		return nil, err
	}

	if !ours(want) {
		return nil, errNotOurs
	}

	// Should a pipe take the file's place meanwhile, O_NONBLOCK keeps us from waiting for its writer.
	f, err := s.root.OpenFile(key, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}

	got, err := f.Stat()
	if err == nil && !os.SameFile(want, got) {
		err = errNotOurs
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}

	return f, nil
}
