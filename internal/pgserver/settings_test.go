package pgserver

import (
	"strings"
	"testing"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	text := settings(map[string]string{"wal_level": "replica", "cluster_name": `it's a \`})
	for _, line := range []string{"wal_level = 'replica'\n", "listen_addresses = ''\n", `cluster_name = 'it''s a \\'` + "\n"} {
		if strings.Count(text, line) != 1 {
			t.Errorf("want once %q in:\n%s", line, text)
		}
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
		t.Errorf("this machine has %d MB", got)
	}
}
