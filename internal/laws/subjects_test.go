package laws

import (
	"slices"
	"strings"
	"testing"
)

// subjects are the packages with a projectdb.Subject.
var subjects = []string{"internal/enduser", "internal/form", "internal/oauth", "internal/object", "internal/schedule"}

// TestBackupImportsNoSubject checks that backups know the rows of a subject by its Subject only, so
// that a new subject is no change of package backup.
func TestBackupImportsNoSubject(t *testing.T) {
	t.Parallel()

	for name, p := range tree(t) {
		if name != "internal/backup" && !strings.HasPrefix(name, "internal/backup/") {
			continue
		}

		for _, imported := range p.Imports {
			if path := strings.TrimPrefix(imported, modulePath(t)+"/"); slices.Contains(subjects, path) {
				t.Errorf("%s imports %s: give what it needs by projectdb.Subject", name, path)
			}
		}
	}
}
