package pg_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pg"
)

// TestFault checks the mapping of SQLSTATEs that no other test causes.
func TestFault(t *testing.T) {
	t.Parallel()

	for state, want := range map[string]string{
		"53100": "disk_full", "53200": "unavailable", "53300": "unavailable",
		"57P02": "unavailable", "08006": "unavailable",
	} {
		err := pg.Fault(&pgconn.PgError{Code: state, Message: "canary"})
		f := fault.Of(err)
		if f.Kind != fault.Unavailable || f.CodeWord() != want || f.RetryAfter == 0 || f.Detail == "" ||
			f.Detail == "canary" {
			t.Errorf("%s: got %v, %s, %q", state, f.Kind, f.CodeWord(), f.Detail)
		}
	}
}
