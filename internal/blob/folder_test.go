package blob

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/socle-dev/socle/internal/fault"
)

func TestFileModes(t *testing.T) {
	t.Parallel()

	s, dir := open(t)
	put(t, s, "empty", "")
	put(t, s, "projects/0192/a", "a")

	for name, want := range map[string]fs.FileMode{".": 0o700, "projects/0192": 0o700, "empty": 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("mode of %s = %v (%v), want %v", name, info.Mode(), err, want)
		}
	}
}

func TestOpenDeleted(t *testing.T) {
	t.Parallel()

	s, _ := open(t)
	put(t, s, "a/b", "0123456789")

	r, _, err := s.Open(t.Context(), "a/b")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()

	if err := s.Delete(t.Context(), "a/b"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Seek(7, io.SeekStart); err != nil {
		t.Fatal(err)
	}

	if got, err := io.ReadAll(r); string(got) != "789" || err != nil {
		t.Errorf("read of a deleted blob = %q, %v, want 789", got, err)
	}
}

// TestForeignFiles checks that foreign files in the folder are neither followed nor read nor waited
// for.
func TestForeignFiles(t *testing.T) {
	t.Parallel()

	s, dir := open(t)

	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("not ours"), 0o600); err != nil {
		t.Fatal(err)
	}

	put(t, s, "victim/blob", "another's")

	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.Symlink(outside, at("link-out")),
		os.Symlink("victim/blob", at("link-in")),
		os.Symlink("victim", at("folder-link")),
		os.Symlink(filepath.Dir(outside), at("folder-out")),
		os.Symlink("nowhere", at("dangling")),
		os.Link(outside, at("hard-link")),
		syscall.Mkfifo(at("fifo"), 0o600),
	); err != nil {
		t.Fatal(err)
	}

	before := folderFiles(dir)(t)

	for _, key := range []string{
		"link-out", "link-in", "folder-link/blob", "folder-out/outside", "dangling", "hard-link", "fifo",
		"victim", "fifo/x",
	} {
		if r, _, err := s.Open(t.Context(), key); !fault.Is(err, fault.NotFound) {
			t.Errorf("Open(%q) = %v, %v, want NotFound", key, r, err)
		}
	}

	for _, key := range []string{"link-out", "dangling", "folder-link/new", "folder-out/new", "folder-link", "fifo"} {
		if _, err := s.Put(t.Context(), key, strings.NewReader("x"), noLimit); err == nil {
			t.Errorf("Put(%q) = nil, want an error", key)
		}
	}

	for _, key := range []string{"folder-link/blob", "folder-out/outside"} {
		if err := errors.Join(s.Delete(t.Context(), key), s.DeleteAll(t.Context(), key)); err != nil {
			t.Errorf("delete of %q = %v", key, err)
		}
	}

	wantFiles(t, folderFiles(dir), before...)

	for _, key := range []string{"link-out", "link-in", "folder-link", "folder-out", "dangling", "hard-link", "fifo"} {
		if err := s.DeleteAll(t.Context(), key); err != nil {
			t.Errorf("DeleteAll(%q) = %v", key, err)
		}
	}

	wantFiles(t, folderFiles(dir), "victim/blob")

	if got, err := os.ReadFile(outside); string(got) != "not ours" || err != nil {
		t.Errorf("the file outside = %q, %v, want it untouched", got, err)
	}
}

func TestSweepFolder(t *testing.T) {
	t.Parallel()

	s, dir := open(t)
	put(t, s, "kept", "finished and old")
	longAgo := time.Now().Add(-time.Hour)
	for name, touched := range map[string]time.Time{
		"kept": longAgo, unfinishedDir + "/old": longAgo, unfinishedDir + "/new": time.Now(),
	} {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(name, []byte("x"), 0o600), os.Chtimes(name, touched, touched)); err != nil {
			t.Fatal(err)
		}
	}

	// An upload in progress survives a sweep and completes.
	arriving := make(chan struct{})
	finish := make(chan struct{})
	done := make(chan error)

	go func() {
		_, err := s.Put(t.Context(), "arriving",
			io.MultiReader(strings.NewReader("some"), readerFunc(func([]byte) (int, error) {
				close(arriving)
				<-finish

				return 0, io.EOF
			})), noLimit)

		done <- err
	}()

	<-arriving

	n, err := s.Sweep(t.Context(), time.Minute)
	if n != 1 || err != nil {
		t.Errorf("Sweep = %d, %v, want 1", n, err)
	}

	close(finish)
	if err := <-done; err != nil {
		t.Errorf("Put during a sweep = %v", err)
	}

	wantFiles(t, folderFiles(dir), unfinishedDir+"/new", "arriving", "kept")
}

func TestOpenStore(t *testing.T) {
	t.Parallel()

	s, dir := open(t)
	put(t, s, "a", "still here")

	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()

	if got, want := get(t, again, "a"), "still here"; got != want {
		t.Errorf("after reopening the store: got %q, want %q", got, want)
	}

	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, bytes.Repeat([]byte("x"), 3), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, dir := range []string{file, filepath.Join(file, "below")} {
		if _, err := Open(dir); err == nil {
			t.Errorf("Open(%q) = nil, want an error, since it cannot be a folder", dir)
		}
	}
}

// TestCheckMissingFolder checks that a deleted folder is Unavailable.
func TestCheckMissingFolder(t *testing.T) {
	t.Parallel()

	s, dir := open(t)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}

	if err := s.Check(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("Check of a missing folder = %v, want Unavailable", err)
	}
}

// TestTwoNames checks that opening the store removes the temporary name of a blob that a power
// failure restored.
func TestTwoNames(t *testing.T) {
	t.Parallel()

	s, dir := open(t)
	put(t, s, "a/b", "whole")

	if err := os.Link(filepath.Join(dir, "a/b"), filepath.Join(dir, unfinishedDir, "first")); err != nil {
		t.Fatal(err)
	}

	if _, _, err := s.Open(t.Context(), "a/b"); !fault.Is(err, fault.NotFound) {
		t.Errorf("Open of a file with two names = %v, want NotFound", err)
	}

	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()

	if got := get(t, again, "a/b"); got != "whole" {
		t.Errorf("got %q, want whole", got)
	}
}
