package backup

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"socle/internal/pgserver"
)

// TestProgramsSpeakEnglish runs a program in an environment of another language: what it says is read.
func TestProgramsSpeakEnglish(t *testing.T) {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		t.Setenv(name, "de_DE.UTF-8")
	}
	t.Setenv("LANGUAGE", "de:fr")
	t.Setenv("SOCLE_SECRET_KEY", "canary")
	t.Setenv("PGSSLROOTCERT", "kept")
	env, err := exec.LookPath("env")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(env, filepath.Join(dir, "pg_dump")); err != nil {
		t.Fatal(err)
	}
	m := &Maker{Binaries: pgserver.Binaries{Dir: dir}}
	out, err := m.command(t.Context(), "pg_dump").Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range strings.Fields(string(out)) {
		if strings.HasPrefix(line, "L") || strings.HasPrefix(line, "SOCLE_") || strings.HasPrefix(line, "PGSSL") {
			got = append(got, line)
		}
	}
	slices.Sort(got)
	if want := []string{"LC_ALL=C", "PGSSLROOTCERT=kept"}; !slices.Equal(slices.DeleteFunc(got, func(s string) bool { return strings.HasPrefix(s, "LOGNAME") || strings.HasPrefix(s, "LS_") }), want) {
		t.Errorf("the environment has %v, want %v", got, want)
	}
}

// TestHand has a program read what it is handed twice, in a file that has a name and in one that has none; nothing is left of either.
func TestHand(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for _, named := range []bool{false, true} {
		cmd := exec.CommandContext(t.Context(), "cat")
		var names []string
		for _, text := range []string{"a password\n", "a list\n"} {
			name, done, err := handAs(cmd, text, named)
			if err != nil {
				t.Fatal(err)
			}
			defer done()
			names = append(names, name, name)
			if info, err := os.Stat(name); named && (err != nil || info.Mode() != 0o600) {
				t.Errorf("the file is %v, %v", info, err)
			}
		}
		cmd.Args = append(cmd.Args, names...)
		if out, err := cmd.Output(); err != nil || string(out) != "a password\na password\na list\na list\n" {
			t.Errorf("named %v: it read %q, %v", named, out, err)
		}
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left are %v, %v", left, err)
		}
	})
}
