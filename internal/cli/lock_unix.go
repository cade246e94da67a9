//go:build unix

package cli

import (
	"os"
	"syscall"
)

// lockFile waits for the lock of a file. It ends when the file is closed.
func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX) }
