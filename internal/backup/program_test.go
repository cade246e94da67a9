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
