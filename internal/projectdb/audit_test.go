package projectdb_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/pgtest"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/projectdb/projectdbtest"
)

// TestChainAudits checks that the entries of a changed project are chained, and that an unchanged
// project is not connected to.
func TestChainAudits(t *testing.T) {
	t.Parallel()

	r := projectdbtest.NewRegistry(t, 4)
	p := projectdbtest.NewIn(t, r)
	r.ChainAudits(t.Context())

	if r.HasConnection(p.UUID) {
		t.Error("connected to an unchanged project")
	}

	ctx := withEntry(t, r)
	for range 3 {
		if err := p.InTx(ctx, func(pgx.Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}

	r.ChainAudits(t.Context())

	pending, err := pg.Value[int](t.Context(), p.Trusted(), `select count(*) from socle.audit_pending`)
	if err != nil || pending != 0 {
		t.Errorf("got %d pending entries, %v, want none", pending, err)
	}

	report, err := audit.Check(t.Context(), p.Trusted(), r.AuditKey())
	if err != nil || report.Entries != 3 || len(report.Faults) > 0 {
		t.Errorf("got %+v, %v, want 3 entries without a fault", report, err)
	}
}

// withEntry returns a context whose changes are audited.
func withEntry(t *testing.T, r *projectdb.Registry) context.Context {
	return audit.Begin(t.Context(), r.AuditKey(), audit.Entry{Action: "change"})
}

// changedProject creates a project with an unchained entry in its audit log.
func changedProject(t *testing.T) (*projectdb.Registry, *projectdb.Project) {
	t.Helper()

	r := projectdbtest.NewRegistry(t, 4)
	p := projectdbtest.NewIn(t, r)
	if err := p.InTx(withEntry(t, r), func(pgx.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}

	return r, p
}

// TestChainAuditsOfPurgedProject checks that a change to a project that another server has purged
// since is not retried without end.
func TestChainAuditsOfPurgedProject(t *testing.T) {
	t.Parallel()

	r, p := changedProject(t)
	if err := pgtest.Drop(t.Context(), r.Database(p.UUID)); err != nil {
		t.Fatal(err)
	}

	r.ChainAudits(t.Context()) // finds its connection closed
	r.ChainAudits(t.Context())

	if p.Unchained() {
		t.Error("the audit log of a purged project is still to be chained")
	}
}

// TestChainAuditsOfClosedProject checks that the audit log of a project that was paused or deleted
// after a change is not retried, which would log a warning each time.
func TestChainAuditsOfClosedProject(t *testing.T) {
	t.Parallel()

	r, p := changedProject(t)
	admin := pgtest.Connect(t, r.Platform().PlatformConfig())
	limit := "alter database " + pg.Quote(r.Database(p.UUID)) + " connection limit "
	pgtest.Exec(t, admin, limit+"0")
	r.ResetPools(p.UUID)
	r.ChainAudits(t.Context())

	if p.Unchained() {
		t.Error("the audit log of a closed project is still to be chained")
	}

	pgtest.Exec(t, admin, limit+"-1")
	if err := p.ChainAudit(t.Context()); err != nil { // as before the log is read
		t.Fatal(err)
	}

	report, err := audit.Check(t.Context(), p.Trusted(), r.AuditKey())
	if err != nil || report.Entries != 1 || len(report.Faults) > 0 {
		t.Errorf("got %+v, %v, want the entry from before the pause", report, err)
	}
}
