package pgtest_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pgtest"
)

// TestBackendLimits checks that sessions have a memory limit, and that the kernel, out of memory,
// kills them rather than the postmaster.
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

	var data string
	limits, err := os.ReadFile(proc + "limits")
	for line := range strings.Lines(string(limits)) {
		if rest, ok := strings.CutPrefix(line, "Max data size"); ok {
			data = strings.Fields(rest)[0]
		}
	}

	if bytes, _ := strconv.Atoi(data); err != nil || bytes < 512<<20 {
		t.Errorf("got data size limit %q, %v", data, err)
	}
}
