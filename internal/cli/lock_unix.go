//go:build unix

package cli

import (
	"errors"
	"os"
	"syscall"
)

// tryLockFile takes the lock of a file, and reports false if another process has it.
func tryLockFile(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}

	return err == nil, err
}

// lockFile waits for the lock of a file. It ends when the file is closed.
func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }
