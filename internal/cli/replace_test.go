package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"github.com/socle-dev/socle/internal/repository"
)

// TestReplacePath keeps the mode of a file, and the link that leads to it.
func TestReplacePath(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	file, link := filepath.Join(dir, "variables"), filepath.Join(dir, ".env")
	if err := os.WriteFile(file, []byte("A=1"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}

	if err := replacePath(link, "A=2"); err != nil {
		t.Fatal(err)
	}

	text, err := os.ReadFile(file)
	info, _ := os.Lstat(link)
	mode, _ := os.Stat(file)
	if err != nil || string(text) != "A=2" || info.Mode()&os.ModeSymlink == 0 || mode.Mode().Perm() != 0o640 {
		t.Errorf("got %q, %v, link %v, mode %v", text, err, info.Mode(), mode.Mode())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestReplaceFails: a file that can't be replaced stays as it is.
func TestReplaceFails(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "taken", "x"), 0o700); err != nil { // no file can take its place
		t.Fatal(err)
	}

	if err := replacePath(filepath.Join(dir, "taken"), "new"); err == nil {
		t.Error("a folder was replaced")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestPullWritesInside: a pull writes nothing through links of the repository.
func TestPullWritesInside(t *testing.T) {
	t.Parallel()

	root, outside := t.TempDir(), t.TempDir()
	profile := filepath.Join(outside, "profile")
	if err := os.WriteFile(profile, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, repository.Folder), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{repository.ConfigFile: profile, repository.Folder + "/templates": outside} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}

	for name, fails := range map[string]bool{
		repository.ConfigFile: false, repository.Folder + "/templates/invite.html": true,
	} {
		p := pull{push: push{cmd: &cobra.Command{}, repo: &repository.Repository{Root: root}},
			files: repository.Files{name: "theirs"}}
		if err := p.write(); (err != nil) != fails {
			t.Errorf("%s: got %v", name, err)
		}
	}

	if text, err := os.ReadFile(profile); err != nil || string(text) != "mine" {
		t.Errorf("the file behind the link has %q, %v", text, err)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
		t.Errorf("outside: %v, %v", left, err)
	}
}
