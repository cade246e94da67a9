package backup

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"socle/internal/fault"
)

// MostProven is how many bytes of a dump are restored merely to see whether that can be done.
const MostProven = 1 << 30

// Prove restores a completed backup into a database that nobody uses, as a restore does, compares every row with the dump's, notes what came of it, and drops it. It
// does nothing to a backup that is gone or, unless someone asked for it, larger than MostProven. The error is for the log.
func (m *Maker) Prove(ctx context.Context, id uuid.UUID, asked bool) error {
	b, err := m.Store.CompletedBackup(ctx, id)
	if err != nil {
		return fault.Except(err, fault.NotFound)
	}
	if b.Size != nil && *b.Size > MostProven && !asked {
		return nil
	}
	c := m.Projects.Proof(b.ProjectUUID, id, asked)
	if err := c.Drop(ctx); err != nil { // of a proof that was cut off
		return err
	}
	manifest, entries, err := m.check(ctx, b.ProjectUUID, id)
	if err == nil {
		defer manifest.Files.Close()
		err = m.fill(ctx, c, manifest, entries, false, func() error { return nil })
	}
	if err == nil {
		err = m.compareRows(ctx, c, manifest, entries)
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	dropped := c.Drop(after)
	if err == nil {
		return errors.Join(dropped, m.Store.ProveBackup(after, id, ""))
	}
	err = fmt.Errorf("prove backup %s: %w", id, err)
	if ctx.Err() != nil || fault.Is(err, fault.Conflict) { // stopped, or the project is paused or gone: that says nothing of the backup
		return errors.Join(err, dropped)
	}
	return errors.Join(err, dropped, m.Store.ProveBackup(after, id, whyNot(ctx, err)))
}
