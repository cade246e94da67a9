//go:build !windows

package repository

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestPipesAreNotOpened checks that a pipe is refused: a read would wait for its writer.
func TestPipesAreNotOpened(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}

	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()

	if _, err := readRegular(root, "pipe"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("file: got %v", err)
	}
	if _, err := readSeed(root, "pipe"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("seed: got %v", err)
	}
}
