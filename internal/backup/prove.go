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

// MostProven is the maximum size in bytes of a dump that is proven automatically.
const MostProven = 1 << 30

// resumed is the retry interval of a proof while its project is not active.
const resumed = 5 * time.Minute

// errInactive reports that a project is paused or deleted.
var errInactive = fault.New(fault.Conflict, "the project is not active any more")

// Prove restores a completed backup into a separate database, compares every row with the dump,
// records the result, and drops the database. It does nothing if the backup is gone or, unless
// asked, larger than MostProven.
//
// Failures unrelated to the backup are not recorded; it then returns a *[Later]. The error is for
// the log.
func (m *Maker) Prove(ctx context.Context, id uuid.UUID, asked bool) error {
	b, err := m.Store.CompletedBackup(ctx, id)
	if fault.Is(err, fault.NotFound) || err == nil && b.Size != nil && *b.Size > MostProven && !asked {
		return nil
	}
	if err != nil {
		return &Later{Err: err}
	}

	c := m.Projects.Proof(b.ProjectUUID, id, asked)
	if err := c.Drop(ctx); err != nil { // left by an interrupted proof
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

// isOurs reports whether a proof failed for reasons unrelated to the backup: a database or storage
// that is unavailable, or a concurrent change.
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
