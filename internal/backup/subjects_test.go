package backup

import (
	"testing"

	"github.com/socle-dev/socle/internal/projectdb"
)

// TestIsRestored checks which tables a restore is compared by: the user's, and those of a subject
// that it does not leave out.
func TestIsRestored(t *testing.T) {
	t.Parallel()

	subjects := []projectdb.Subject{
		{Schema: "auth"},
		{Schema: "storage", Restore: projectdb.Restore{Skipped: []string{"uploads"}}},
	}
	for table, want := range map[[2]string]bool{
		{"public", "uploads"}: true, {"auth", "uploads"}: true, {"storage", "files"}: true,
		{"storage", "uploads"}: false, {"storage", "objects"}: false, {"storage", "buckets"}: false,
	} {
		if got := isRestored(subjects, table[0], table[1]); got != want {
			t.Errorf("%s.%s: got %v, want %v", table[0], table[1], got, want)
		}
	}
}
