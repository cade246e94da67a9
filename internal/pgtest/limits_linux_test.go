package pgtest_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"socle/internal/pgtest"
)

// TestBackendLimits: a kernel without memory ends a session, not the postmaster.
func TestBackendLimits(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	proc := fmt.Sprintf("/proc/%d/", conn.PgConn().PID())
	if score, err := os.ReadFile(proc + "oom_score_adj"); err != nil || strings.TrimSpace(string(score)) != "500" {
		t.Errorf("oom_score_adj: got %q, %v", score, err)
	}
}
