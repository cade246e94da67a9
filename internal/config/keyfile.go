//go:build unix

package config

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// LoadSecretKey returns the key from which Socle derives all its encryption keys. It is the decoded
// SecretKey, or else the content in the file secret.key in the data folder.
//
// It creates a missing file and folder. Two servers that start at once get the same key. A file
// that is malformed, or that another account owns or can read, is an error and is never replaced.
func (c Config) LoadSecretKey() ([]byte, error) {
	if c.SecretKey != "" {
		key, err := decodeKey(string(c.SecretKey))
		if err != nil {
			return nil, fmt.Errorf("SOCLE_SECRET_KEY: %w", err)
		}

		return key, nil
	}

	name := filepath.Join(c.DataDir, "secret.key")
	key, err := readKey(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeKey(name); err != nil {
			return nil, fmt.Errorf("create the secret key: %w", err)
		}
		key, err = readKey(name)
	}

	return key, err
}

// makeKey atomically and durably writes a new key, unless the file exists.
func makeKey(name string) error {
	dir := filepath.Dir(name)
	// PostgreSQL runs as another account when Socle is root, and must be able to reach its own
	// folder.
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}

	f, err := os.CreateTemp(dir, ".secret.key-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())

	key := make([]byte, minKeySize)
	rand.Read(key) // never fails

	_, err = fmt.Fprintln(f, base64.StdEncoding.EncodeToString(key))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}

	if err := os.Link(f.Name(), name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}

	folder, err := os.Open(dir)
	if err != nil {
		return err
	}

	return errors.Join(folder.Sync(), folder.Close())
}

// readKey returns the key in a file that only this account can read.
func readKey(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read the secret key: %w", err)
	}
	defer f.Close()

	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the secret key: %w", err)
	}

	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", name)
	case int(stat.Uid) != os.Geteuid():
		return nil, fmt.Errorf("%s belongs to account %d, but Socle runs as %d", name, stat.Uid, os.Geteuid())
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s can be read or written by others (mode %04o); run: chmod 600 %[1]s", name,
			info.Mode().Perm())
	}

	text, err := io.ReadAll(io.LimitReader(f, 4<<10))
	if err != nil {
		return nil, fmt.Errorf("read the secret key: %w", err)
	}

	key, err := decodeKey(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("%s: the secret key %w; restore it from a backup", name, err)
	}

	return key, nil
}
