package config

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestLoadSecretKeyGiven(t *testing.T) {
	t.Parallel()

	want, err := base64.StdEncoding.DecodeString(randomKey)
	if err != nil {
		t.Fatal(err)
	}

	for _, text := range []string{
		randomKey, strings.TrimRight(randomKey, "="), base64.URLEncoding.EncodeToString(want),
		base64.RawURLEncoding.EncodeToString(want), hex.EncodeToString(want), strings.ToUpper(hex.EncodeToString(want)),
	} {
		dir := t.TempDir()
		c, err := Load([]string{"SOCLE_SECRET_KEY=" + text, "SOCLE_DATA_DIR=" + dir}, nil)
		if err != nil {
			t.Fatal(err)
		}

		got, err := c.LoadSecretKey()
		if !bytes.Equal(got, want) || err != nil {
			t.Errorf("LoadSecretKey of %s = %x, %v, want %x", text, got, err, want)
		}

		if left, err := os.ReadDir(dir); len(left) != 0 || err != nil {
			t.Errorf("a key that was given left %v in the data folder (%v)", left, err)
		}
	}
}

func TestLoadSecretKeyMade(t *testing.T) {
	t.Parallel()

	c := Config{DataDir: filepath.Join(t.TempDir(), "not", "there")}
	const n = 8
	keys := make([][]byte, n)

	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			key, err := c.LoadSecretKey()
			if err != nil {
				t.Errorf("LoadSecretKey = %v", err)
			}

			keys[i] = key
		})
	}

	group.Wait()

	for _, key := range keys {
		if len(key) != minKeySize || !bytes.Equal(key, keys[0]) {
			t.Fatalf("starts at one moment got the keys %x, want one of %d bytes", keys, minKeySize)
		}
	}

	again, err := c.LoadSecretKey()
	if !bytes.Equal(again, keys[0]) || err != nil {
		t.Errorf("LoadSecretKey at the next start = %x, %v, want %x", again, err, keys[0])
	}

	left, err := os.ReadDir(c.DataDir)
	if err != nil || len(left) != 1 || left[0].Name() != "secret.key" {
		t.Fatalf("the data folder holds %v (%v), want secret.key alone", left, err)
	}

	info, err := left[0].Info()
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode of secret.key = %v (%v), want 0600", info.Mode(), err)
	}

	other, err := Config{DataDir: t.TempDir()}.LoadSecretKey()
	if err != nil || bytes.Equal(other, keys[0]) {
		t.Errorf("LoadSecretKey of another folder = %x, %v, want another key", other, err)
	}
}

// TestLoadSecretKeyRefuses: an invalid file is an error and stays unchanged.
func TestLoadSecretKeyRefuses(t *testing.T) {
	t.Parallel()

	write := func(content string, mode os.FileMode) func(string) error {
		return func(name string) error {
			if err := os.WriteFile(name, []byte(content), mode); err != nil {
				return err
			}
			return os.Chmod(name, mode) // regardless of the umask
		}
	}

	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := write(randomKey, 0o600)(elsewhere); err != nil {
		t.Fatal(err)
	}

	for name, plant := range map[string]func(string) error{
		"empty":             write("", 0o600),
		"a line break":      write("\n", 0o600),
		"short":             write(randomKey[:20], 0o600),
		"garbled":           write("\x00\xff"+randomKey, 0o600),
		"zeroes":            write(strings.Repeat("\x00", 64), 0o600),
		"placeholder":       write(strings.Repeat("changeme", 8), 0o600),
		"far too long":      write(strings.Repeat(" ", 5000)+randomKey, 0o600),
		"readable by group": write(randomKey, 0o640),
		"readable by all":   write(randomKey, 0o644),
		"writable by all":   write(randomKey, 0o602),
		"folder":            func(name string) error { return os.Mkdir(name, 0o700) },
		"symlink":           func(name string) error { return os.Symlink(elsewhere, name) },
		"dangling symlink":  func(name string) error { return os.Symlink("nowhere", name) },
		"pipe":              func(name string) error { return syscall.Mkfifo(name, 0o600) },
	} {
		c := Config{DataDir: t.TempDir()}
		file := filepath.Join(c.DataDir, "secret.key")
		if err := plant(file); err != nil {
			t.Fatal(err)
		}

		before, err := os.Lstat(file)
		if err != nil {
			t.Fatal(err)
		}

		key, err := c.LoadSecretKey()
		if err == nil || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "\n") ||
			strings.Contains(err.Error(), randomKey[:20]) {
			t.Errorf("LoadSecretKey with %s = %x, %v, want one line that names the file and not the key",
				name, key, err)
		}

		after, err := os.Lstat(file)
		if err != nil || !os.SameFile(before, after) || after.Size() != before.Size() ||
			after.ModTime() != before.ModTime() {
			t.Errorf("LoadSecretKey with %s changed the file (%v)", name, err)
		}
	}
}

func TestReadKeyOfAnotherAccount(t *testing.T) {
	t.Parallel()

	file := "/etc/passwd" // owned by root, for tests under another account
	if os.Geteuid() == 0 {
		file = filepath.Join(t.TempDir(), "secret.key")
		if err := os.WriteFile(file, []byte(randomKey), 0o600); err != nil {
			t.Fatal(err)
		}

		if err := os.Chown(file, 1, 1); err != nil {
			t.Fatal(err)
		}
	}

	if key, err := readKey(file); err == nil || !strings.Contains(err.Error(), "belongs to account") {
		t.Errorf("readKey of another account's file = %x, %v, want an error that says so", key, err)
	}
}

func TestLoadSecretKeyUnwritable(t *testing.T) {
	t.Parallel()

	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	key, err := Config{DataDir: filepath.Join(file, "below")}.LoadSecretKey()
	if err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("LoadSecretKey where no folder can be = %x, %v, want one line", key, err)
	}
}
