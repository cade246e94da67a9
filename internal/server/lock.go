package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

var errBusy = errors.New("another server uses the data folder")

// lockFolder locks the data folder until the process ends, even if it crashes. It fails with
// errBusy if another server holds the lock.
func lockFolder(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the data folder: %w", err)
	}

	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock file of the data folder: %w", err)
	}

	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", errBusy, dir), f.Close())
	}

	return f, nil
}
