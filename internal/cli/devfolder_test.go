//go:build unix

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestClaimDevFolder: a folder that came with a repository is not used, and nothing that its links
// name is written.
func TestClaimDevFolder(t *testing.T) {
	t.Parallel()

	e := environment{environ: []string{"XDG_DATA_HOME=" + t.TempDir()}}
	own := filepath.Join(t.TempDir(), devFolder)
	for range 2 {
		if err := e.claimDevFolder(own); err != nil {
			t.Fatalf("a folder of its own: %v", err)
		}
	}
	if info, err := os.Stat(own); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}

	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(own, moved); err != nil {
		t.Fatal(err)
	}
	if err := e.claimDevFolder(moved); err != nil {
		t.Errorf("a folder that was moved: %v", err)
	}

	stranger := environment{environ: []string{"XDG_DATA_HOME=" + t.TempDir()}}
	if err := stranger.claimDevFolder(moved); err == nil {
		t.Error("a folder of another machine: no failure")
	}
	link := filepath.Join(t.TempDir(), devFolder)
	if err := os.Symlink(moved, link); err != nil {
		t.Fatal(err)
	}
	if err := e.claimDevFolder(link); err == nil {
		t.Error("a link: no failure")
	}
}

// TestDevRefusesForeignFolder: the log of a server is not written through a link of the repository.
func TestDevRefusesForeignFolder(t *testing.T) {
	t.Parallel()

	repo, profile := t.TempDir(), filepath.Join(t.TempDir(), "profile")
	for path, text := range map[string]string{filepath.Join(repo, "supabase", "config.toml"): "", profile: "mine"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(repo, devFolder), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"server.log", "password", ".gitignore"} {
		if err := os.Symlink(profile, filepath.Join(repo, devFolder, name)); err != nil {
			t.Fatal(err)
		}
	}

	var out, errs bytes.Buffer
	status := Run(t.Context(), []string{"dev", "--dir", repo, "--addr", "nowhere"},
		[]string{"XDG_DATA_HOME=" + t.TempDir()}, &out, &errs)
	if status != 1 || !strings.Contains(errs.String(), "socle dev did not make ") {
		t.Errorf("got status %d, %q", status, errs.String())
	}
	if text, err := os.ReadFile(profile); err != nil || string(text) != "mine" {
		t.Errorf("the file behind the links has %q, %v", text, err)
	}
}
