package projectdb

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
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
	p.close(time.Now().Add(time.Hour)) // its creation left a connection
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

// changedProject creates a project with an unchained entry in its audit log.
func changedProject(t *testing.T) (*Registry, *Project) {
	t.Helper()

	i := newInstall(t)
	made, err := i.create(t.Context(), i.healthy)
	if err != nil {
		t.Fatal(err)
	}

	p := i.healthy.Registry.Open(made.UUID)
	if err := p.InTx(i.healthy.AsSystem(t.Context(), "change", p.UUID), func(pgx.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}

	return i.healthy.Registry, p
}

// TestChainAuditsOfPurgedProject checks that a change to a project that another server has purged
// since is not retried without end.
func TestChainAuditsOfPurgedProject(t *testing.T) {
	t.Parallel()

	r, p := changedProject(t)
	if err := pgtest.Drop(t.Context(), r.Database(p.UUID)); err != nil {
		t.Fatal(err)
	}

	r.chainAudits(t.Context()) // finds its connection closed
	r.chainAudits(t.Context())

	if p.unchained.Load() {
		t.Error("the audit log of a purged project is still to be chained")
	}
}

// TestChainAuditsOfClosedProject checks that the audit log of a project that was paused or deleted
// after a change is not retried, which would log a warning each time.
func TestChainAuditsOfClosedProject(t *testing.T) {
	t.Parallel()

	r, p := changedProject(t)
	if err := r.admin(t.Context(), func(conn *pgx.Conn) error {
		return r.closeDatabase(t.Context(), conn, p.UUID)
	}); err != nil {
		t.Fatal(err)
	}

	r.chainAudits(t.Context())

	if p.unchained.Load() {
		t.Error("the audit log of a closed project is still to be chained")
	}

	if _, err := r.openDatabase(t.Context(), p.UUID); err != nil {
		t.Fatal(err)
	}

	if err := p.ChainAudit(t.Context()); err != nil { // as before the log is read
		t.Fatal(err)
	}

	report, err := audit.Check(t.Context(), p.Trusted(), r.auditKey())
	if err != nil || report.Entries != 1 || len(report.Faults) > 0 {
		t.Errorf("got %+v, %v, want the entry from before the pause", report, err)
	}
}
