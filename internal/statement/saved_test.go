package statement

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/socle-dev/socle/internal/fault"
)

// TestSavedFault tells a taken name from other failures.
func TestSavedFault(t *testing.T) {
	t.Parallel()

	taken := savedFault(&pgconn.PgError{Code: "23505", SchemaName: "socle", ConstraintName: "saved_queries_name_key"})
	if !fault.Is(taken, fault.Conflict) || fault.Of(taken).Fields[0].Name != "name" {
		t.Errorf("got %v for a taken name, want a conflict on it", taken)
	}

	other := errors.New("connection lost")
	if got := savedFault(other); !errors.Is(got, other) || fault.Is(got, fault.Conflict) {
		t.Errorf("got %v for another failure, want it unchanged", got)
	}
	if got := savedFault(nil); got != nil {
		t.Errorf("got %v without a failure", got)
	}
}
