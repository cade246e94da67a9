//go:build !linux

package blob

import (
	"errors"
	"os"
	"path"
	"syscall"
)

// readStamp returns no stamp: checksums are computed on every read.
func readStamp(*os.File) (stamp, bool) { return stamp{}, false }

// openFile opens the file under key for reading. It follows no links and does not block on pipes.
func (s *folder) openFile(key string) (*os.File, error) {
	want, err := s.lstat(key)
	if err != nil {
		return nil, err
	}

	if !isBlobFile(want) {
		return nil, errForeignFile
	}

	// O_NONBLOCK keeps the call from blocking if a pipe replaces the file meanwhile.
	f, err := s.root.OpenFile(key, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}

	got, err := f.Stat()
	if err == nil && !os.SameFile(want, got) {
		err = errForeignFile
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}

	return f, nil
}

// openDir opens a folder. It follows no links.
func (s *folder) openDir(name string) (*os.File, error) {
	if _, err := s.lstat(name + "/."); err != nil {
		return nil, err
	}
	return s.root.Open(name)
}

// link gives an unfinished file a key. It fails with fs.ErrExist if the key exists.
func (s *folder) link(name string, _ *os.File, key string) error {
	return s.root.Link(path.Join(unfinishedDir, name), key)
}
