package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/platform"
	"socle/internal/tenant"
)

// MostProven is how many bytes of a dump are restored merely to see whether that can be done.
const MostProven = 1 << 30

// resumed is how soon it is seen that a project is active again that was to have a backup proven.
const resumed = 5 * time.Minute

// errInactive says that a project is paused, or deleted.
var errInactive = fault.New(fault.Conflict, "the project is not active any more")

// Prove restores a completed backup into a database that nobody uses, as a restore does, compares every row with the dump's, notes what came of it, and drops it. It
// does nothing to a backup that is gone or, unless someone asked for it, larger than MostProven. What says nothing of the backup is not noted: then it
// fails with [Later]. The error is for the log.
func (m *Maker) Prove(ctx context.Context, id uuid.UUID, asked bool) error {
	b, err := m.Store.CompletedBackup(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil && b.Size != nil && *b.Size > MostProven && !asked {
		return nil
	}
	if err != nil {
		return &Later{Err: err}
	}

	c := m.Projects.Proof(b.ProjectUUID, id, asked)
	if err := c.Drop(ctx); err != nil { // of a proof that was cut off
		return &Later{Err: err}
	}

	err = m.prove(ctx, c, b)

	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()

	dropped := c.Drop(after)
	why := ""
	if err != nil {
		err = errors.Join(fmt.Errorf("prove backup %s: %w", id, err), dropped)
		switch {
		case errors.Is(err, errInactive):
			return &Later{resumed, err}
		case ctx.Err() != nil || isOurs(err):
			return &Later{Err: err}
		}

		why = whyNot(ctx, err)
	}

	if unsaid := m.Store.ProveBackup(after, id, why); unsaid != nil {
		return &Later{Err: errors.Join(err, unsaid)}
	}

	return errors.Join(err, dropped)
}

// prove restores a backup into a copy and compares the two.
func (m *Maker) prove(ctx context.Context, c *tenant.Copy, b platform.Backup) error {
	status, err := m.Store.ProjectStatus(ctx, b.ProjectUUID)
	if err == nil && status != platform.Active { // before the whole backup is read
		err = errInactive
	}
	if err != nil {
		return err
	}

	manifest, entries, err := m.check(ctx, b.ProjectUUID, b.UUID)
	if err != nil {
		return err
	}
	defer manifest.Files.Close()

	if err := m.fill(ctx, c, manifest, entries, false, func() error { return nil }); err != nil {
		return err
	}

	return m.compareRows(ctx, c, manifest, entries)
}

// isOurs reports whether a proof met something that has nothing to do with the backup: what it needs does not answer or went away, or another change was in the way.
func isOurs(err error) bool {
	if errors.Is(err, errDamaged) || errors.Is(err, errContents) || errors.Is(err, errRestoreTimeout) {
		return false
	}
	if _, exited := errors.AsType[*exec.ExitError](err); exited && slices.ContainsFunc([]string{
		"FATAL:", "server closed the connection", "connection to server",
	}, func(said string) bool {
		return strings.Contains(err.Error(), said)
	}) {
		return true
	}

	f := fault.Of(pg.Fault(err))
	return f.Kind == fault.Unavailable || f.Code == "busy" || errors.Is(err, io.ErrUnexpectedEOF)
}
