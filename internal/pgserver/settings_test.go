package pgserver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSettings(t *testing.T) {
	t.Parallel()

	text := settings(Binaries{Dir: t.TempDir()}, map[string]string{"wal_level": "replica", "cluster_name": `it's a \`})
	for _, line := range []string{
		"wal_level = 'replica'\n", "listen_addresses = ''\n", `cluster_name = 'it''s a \\'` + "\n",
	} {
		if strings.Count(text, line) != 1 {
			t.Errorf("want once %q in:\n%s", line, text)
		}
	}
}

// TestStatStatements checks that pg_stat_statements is loaded only where it is installed.
func TestStatStatements(t *testing.T) {
	t.Parallel()

	b := Binaries{Dir: filepath.Join(t.TempDir(), "bin")}
	if text := settings(b, nil); strings.Contains(text, "pg_stat") {
		t.Errorf("pg_stat_statements is loaded but not installed:\n%s", text)
	}

	library := filepath.Join(filepath.Dir(b.Dir), "lib", "pg_stat_statements.so")
	if err := errors.Join(os.MkdirAll(filepath.Dir(library), 0o700), os.WriteFile(library, nil, 0o600)); err != nil {
		t.Fatal(err)
	}

	if text := settings(b, nil); !strings.Contains(text, "shared_preload_libraries = 'pg_stat_statements'\n") ||
		!strings.Contains(text, "pg_stat_statements.track_utility = 'off'\n") {
		t.Errorf("pg_stat_statements is not loaded:\n%s", text)
	}
	if text := settings(b, map[string]string{"shared_preload_libraries": ""}); !strings.Contains(text,
		"shared_preload_libraries = ''\n") {
		t.Errorf("the configuration does not override it:\n%s", text)
	}
}

func TestSharedBuffers(t *testing.T) {
	t.Parallel()

	for memory, want := range map[int]int{128: 16, 1024: 64, 4096: 128, 65536: 128} {
		if got := sharedBuffers(memory); got != want {
			t.Errorf("sharedBuffers(%d) = %d, want %d", memory, got, want)
		}
	}

	if got := memory(); got < 64 {
		t.Errorf("got %d MB of memory", got)
	}
}
