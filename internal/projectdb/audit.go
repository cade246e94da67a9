package projectdb

import (
	"context"
	"errors"
	"time"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/tick"
)

const (
	chainInterval = 5 * time.Second
	chainTimeout  = 10 * time.Second // limit per project
)

// SetUnchained makes [Registry.WatchAudit] chain the project's audit log, after a change on another
// login than [Project.InTx] uses.
func (p *Project) SetUnchained() { p.unchained.Store(true) }

// Audit returns a page of the project's audit log and the number of entries that match the filter.
// Pending entries are chained first.
func (p *Project) Audit(ctx context.Context, f audit.Filter, page pg.Page) ([]audit.Recorded, int64, error) {
	if err := p.ChainAudit(ctx); err != nil {
		return nil, 0, err
	}

	return audit.List(ctx, p.Trusted(), f, page)
}

// ChainAudit chains the pending entries in the project's audit log, see [audit.Chain].
func (p *Project) ChainAudit(ctx context.Context) error {
	return audit.Chain(ctx, p.Trusted(), p.registry.AuditKey())
}

// WatchAudit periodically chains the audit logs of projects that this process has changed, until
// ctx ends. Entries from a killed process or in a paused project are chained after the next change,
// or before the log is read.
func (r *Registry) WatchAudit(ctx context.Context) error {
	for range tick.Every(ctx, chainInterval) {
		r.chainAudits(ctx)
	}

	return nil
}

func (r *Registry) chainAudits(ctx context.Context) {
	for _, p := range r.openProjects() {
		if ctx.Err() != nil || !p.unchained.Swap(false) {
			continue
		}

		chainCtx, cancel := context.WithTimeout(ctx, chainTimeout)
		err := p.ChainAudit(chainCtx)
		cancel()

		switch {
		case err == nil, errors.Is(err, ErrClosed), // paused or deleted
			pg.State(err) == "3D000": // invalid_catalog_name: another server purged the project
		default:
			p.SetUnchained()
			r.log.Warn("chain audit log", "project", p.UUID, "error", err)
		}
	}
}
