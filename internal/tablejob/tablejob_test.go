package tablejob

import (
	"errors"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/fault"
)

// TestJobErrors checks which failures are retried, and that clients see nothing of an internal one.
func TestJobErrors(t *testing.T) {
	t.Parallel()

	busy := fault.New(fault.Conflict, "the table is locked").WithCode("busy")
	conflict := fault.OnField(fault.Conflict, "name", "already_exists", "is taken")

	for _, test := range []struct {
		err               error
		detail            string
		compaction, index bool // final
	}{
		{fault.New(fault.Unprocessable, "the index has duplicates"), "the index has duplicates", true, true},
		{fault.Missing(), fault.Missing().Detail, true, true},
		{busy, "the table is locked", false, false},
		{conflict, conflict.Detail, false, true},
		{fault.New(fault.Unavailable, "the database is unavailable"), "the database is unavailable", false, false},
		{errors.New("a secret"), "something went wrong on the server", false, false},
	} {
		for name, got := range map[string]struct {
			err   error
			final bool
		}{
			"compaction": {compactionError(test.err), test.compaction},
			"index":      {indexError(test.err), test.index},
		} {
			text, final := strings.CutPrefix(got.err.Error(), "JobCancelError: ")
			if final != got.final || text != test.detail {
				t.Errorf("%s: %v: got %q, final %v, want %q, final %v", name, test.err, text, final,
					test.detail, got.final)
			}
		}
	}
}
