package projectdb

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/pg"
)

// TestChainAudits checks that the entries of a changed project are chained, and that an unchanged
// project is not connected to.
func TestChainAudits(t *testing.T) {
	t.Parallel()

	i := newInstall(t)
	r := i.healthy.Registry
	made, err := i.create(t.Context(), i.healthy)
	if err != nil {
		t.Fatal(err)
	}

	p := r.Open(made.UUID)
	r.chainAudits(t.Context())

	if r.HasConnection(p.UUID) {
		t.Error("connected to an unchanged project")
	}

	ctx := i.healthy.AsSystem(t.Context(), "change", p.UUID)
	for range 3 {
		if err := p.InTx(ctx, func(pgx.Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}

	r.chainAudits(t.Context())

	pending, err := pg.Value[int](t.Context(), p.Trusted(), `select count(*) from socle.audit_pending`)
	if err != nil || pending != 0 {
		t.Errorf("got %d pending entries, %v, want none", pending, err)
	}

	report, err := audit.Check(t.Context(), p.Trusted(), r.auditKey())
	if err != nil || report.Entries != 3 || len(report.Faults) > 0 {
		t.Errorf("got %+v, %v, want 3 entries without a fault", report, err)
	}
}
