package integration_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestAwaitedBackupsAreKept tests that backups made before a destructive operation are kept for 30
// days, whatever the schedule's retention rules.
func TestAwaitedBackupsAreKept(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	names := map[string]string{"first": insertBackup(a, 29, false, "completed"),
		"first long ago":            insertBackup(a, 31, false, "completed"),
		"first and due":             insertBackup(a, 28, true, "completed"),
		"due":                       insertBackup(a, 27, true, "completed"),
		"first and due long ago":    insertBackup(a, 32, true, "completed"),
		"asked for":                 insertBackup(a, 40, false, "completed"),
		"first and failed":          insertBackup(a, 29, false, "failed"),
		"first and failed long ago": insertBackup(a, 31, false, "failed")}
	for name, id := range names {
		if name != "due" && name != "asked for" {
			a.Exec(`update platform.backups set made_before = 'deleteTable' where uuid = $1`, id)
		}
	}

	removed := func(what string, gone ...string) {
		t.Helper()

		for _, name := range gone {
			waitUntil(t, name+" is removed", func() bool { return !existing(t, a, names)[name] })
			delete(names, name)
		}

		want := map[string]bool{}
		for name := range names {
			want[name] = true
		}

		if diff := cmp.Diff(want, existing(t, a, names)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}

	waitForBackup(t, a, startBackup(t, a), "completed")
	removed("without a schedule", "first long ago", "first and failed long ago")
	putSchedule(
		a, `{"cron": "0 3 * * *", "keep_last": 1, "keep_daily": 0, "keep_weekly": 0, "keep_monthly": 0, "prove": false}`,
	)

	makeOverdue(a)
	runCleanUp(t, a)
	removed("with a schedule that keeps one", "due", "first and due long ago")
}
