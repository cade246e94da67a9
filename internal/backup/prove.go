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

// MaxProvenSize is the maximum size in bytes of a dump that is proven automatically.
const MaxProvenSize = 1 << 30

// inactiveRetryDelay is the retry interval of a proof while its project is not active.
const inactiveRetryDelay = 5 * time.Minute

// errInactive reports that a project is paused or deleted.
var errInactive = fault.New(fault.Conflict, "the project is not active")

// Prove restores a completed backup into a separate database, compares every row with the dump,
// records the result, and drops the database. It does nothing if the backup is gone or, unless
// asked, larger than MaxProvenSize.
//
// Failures unrelated to the backup are not recorded; it then returns a *[RetryError]. The error is
// for the log.
func (m *Maker) Prove(ctx context.Context, id uuid.UUID, asked bool) error {
	b, err := m.store.CompletedBackup(ctx, id)
	tooLarge := err == nil && b.Size != nil && *b.Size > MaxProvenSize
	if fault.Is(err, fault.NotFound) || (tooLarge && !asked) {
		return nil
	}
	if err != nil {
		return &RetryError{Err: err}
	}

	c := m.projects.Proof(b.ProjectUUID, id, asked)
	if err := c.Drop(ctx); err != nil { // left by an interrupted proof
		return &RetryError{Err: err}
	}

	err = m.prove(ctx, c, b)

	finishCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()

	dropErr := c.Drop(finishCtx)
	failure := ""
	if err != nil {
		err = errors.Join(fmt.Errorf("prove backup %s: %w", id, err), dropErr)
		switch {
		case errors.Is(err, errInactive):
			return &RetryError{inactiveRetryDelay, err}
		case ctx.Err() != nil || isTransient(err):
			return &RetryError{Err: err}
		}

		failure = restoreFailure(ctx, err)
	}

	if recordErr := m.store.RecordProof(finishCtx, id, failure); recordErr != nil {
		return &RetryError{Err: errors.Join(err, recordErr)}
	}

	return errors.Join(err, dropErr)
}

// prove restores a backup into a copy and compares the two.
func (m *Maker) prove(ctx context.Context, c *tenant.Copy, b platform.Backup) error {
	status, err := m.store.ProjectStatus(ctx, b.ProjectUUID)
	if err == nil && status != platform.Active { // before the whole backup is read
		err = errInactive
	}
	if err != nil {
		return err
	}

	manifest, entries, err := m.verifyBackup(ctx, b.ProjectUUID, b.UUID)
	if err != nil {
		return err
	}
	defer manifest.Files.Close()

	if err := m.fill(ctx, c, manifest, entries, false, func() error { return nil }); err != nil {
		return err
	}

	return m.compareRows(ctx, c, manifest, entries)
}

// isTransient reports whether a proof failed for reasons unrelated to the backup: a database or
// storage that is unavailable, or a concurrent change.
func isTransient(err error) bool {
	if errors.Is(err, errDamaged) || errors.Is(err, errTOC) || errors.Is(err, errRestoreTimeout) {
		return false
	}
	if _, exited := errors.AsType[*exec.ExitError](err); exited && slices.ContainsFunc([]string{
		"FATAL:", "server closed the connection", "connection to server",
	}, func(text string) bool {
		return strings.Contains(err.Error(), text)
	}) {
		return true
	}

	f := fault.Of(pg.Fault(err))
	return f.Kind == fault.Unavailable || f.Code == "busy" || errors.Is(err, io.ErrUnexpectedEOF)
}
