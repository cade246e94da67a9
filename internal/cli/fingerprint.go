package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// devAddr is the address on which servers of a repository listen, that of Supabase's tools.
const devAddr = "127.0.0.1:54321"

// fingerprint returns a hash of the names, sizes and times of a folder's files, and of others.
func fingerprint(folder string, skips func(name string) bool, others ...string) string {
	sum := sha256.New()
	add := func(path string, info fs.FileInfo) {
		fmt.Fprintln(sum, path, info.Size(), info.ModTime().UnixNano())
	}

	_ = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // removed meanwhile
		case e.IsDir() && skips(e.Name()):
			return filepath.SkipDir
		}

		if info, err := e.Info(); err == nil && !e.IsDir() {
			add(path, info)
		}
		return nil
	})

	for _, name := range others {
		if info, err := os.Stat(name); err == nil {
			add(name, info)
		}
	}

	return hex.EncodeToString(sum.Sum(nil))
}
