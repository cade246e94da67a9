//go:build amd64 || arm64

package function

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// TestCopyLimits: the limits of a restored backup give way to those that an administrator has set
// meanwhile, or to the defaults.
func TestCopyLimits(t *testing.T) {
	t.Parallel()

	unset, set := projectdbtest.New(t), projectdbtest.New(t)
	if _, err := pg.Exec(t.Context(), set.Trusted(), `
		insert into socle.edge_function_limits (memory_mb, mail_ports) values (512, false)`,
		pgx.StrictNamedArgs{}); err != nil {
		t.Fatal(err)
	}

	custom := defaultLimits
	custom.MemoryMB = 512
	copyQuota := Subject().Restore.CopyQuota
	for from, want := range map[pg.Querier]Limits{unset.Trusted(): defaultLimits, set.Trusted(): custom} {
		restored := projectdbtest.New(t).Trusted()
		if _, err := pg.Exec(t.Context(), restored, `
			insert into socle.edge_function_limits (memory_mb, concurrency, processes, mail_ports)
			values (100000, 100000, 64, true)`, pgx.StrictNamedArgs{}); err != nil {
			t.Fatal(err)
		}
		if err := copyQuota(t.Context(), from, restored); err != nil {
			t.Fatal(err)
		}

		if got, err := GetLimits(t.Context(), restored); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
}
