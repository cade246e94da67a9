package schema

import (
	"strings"
	"testing"
)

func TestNotAvailable(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]string{
		"vector": "(postgresql-17-pgvector on Debian)", "postgis": "(postgresql-17-postgis-3 on Debian)",
		"hstore": "(postgresql-contrib on Debian)",
	} {
		if got := notAvailable(name, "17").Error(); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", name, got, want)
		}
	}

	const want = "(postgresql-15-pgvector of apt.postgresql.org on Debian)"
	if got := notAvailable("vector", "15").Error(); !strings.Contains(got, want) {
		t.Errorf("vector on PostgreSQL 15: got %q, want %q in it", got, want)
	}
}
