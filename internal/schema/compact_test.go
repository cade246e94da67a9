package schema_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/schema"
)

// TestAwaitSnapshots checks that no deleted row survives a compaction after AwaitSnapshots,
// whichever transaction could see it.
func TestAwaitSnapshots(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		elsewhere bool // transaction of another database
		begin     string
		waits     bool
	}{
		"a reader":                     {false, "begin isolation level repeatable read; select", true},
		"a writer":                     {false, "begin; select pg_current_xact_id()", true},
		"a writer elsewhere":           {true, "begin; select pg_current_xact_id()", false},
		"a reader elsewhere":           {true, "begin isolation level repeatable read; select", false},
		"a transaction that has begun": {false, "begin", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p := newProject(t)
			table := p.table("orders", schema.NewColumn{Name: "note", Type: "text"})
			p.sql(`insert into public.orders (note) select repeat('x', 100) from generate_series(1, 1000)`)

			address := p.platform.Config().ConnString()
			if test.elsewhere {
				address = pgtest.URL(t)
			}

			holder, err := pgx.Connect(t.Context(), address)
			if err != nil {
				t.Fatal(err)
			}
			defer holder.Close(t.Context())

			if _, err := holder.Exec(t.Context(), test.begin); err != nil {
				t.Fatal(err)
			}

			p.sql(`delete from public.orders`)

			next, err := schema.NextTransaction(t.Context(), p.owner)
			if err != nil {
				t.Fatal(err)
			}

			if test.waits {
				if err := schema.AwaitSnapshots(t.Context(), p.owner, next); !fault.Is(err, fault.Conflict) {
					t.Errorf("during the transaction: got %v, want a conflict", err)
				}

				if _, err := holder.Exec(t.Context(), "rollback"); err != nil {
					t.Fatal(err)
				}
			}

			// Other tests run transactions on the same server.
			err = schema.AwaitSnapshots(t.Context(), p.owner, next)
			for end := time.Now().Add(time.Minute); fault.Is(err, fault.Conflict) && time.Now().Before(end); {
				err = schema.AwaitSnapshots(t.Context(), p.owner, next)
			}

			if err != nil {
				t.Fatal(err)
			}
			if err := schema.CompactTable(t.Context(), p.owner, table.ID); err != nil {
				t.Fatal(err)
			}

			if got := p.value("pg_relation_size('public.orders')"); got != "0" {
				t.Errorf("size of the empty table: got %s bytes", got)
			}
		})
	}
}
