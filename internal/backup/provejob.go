package backup

import (
	"context"
	"time"

	"github.com/google/uuid"

	"socle/internal/fault"
)

// proofInterval is the interval between proofs of a project's newest backup, unless its schedule
// sets one.
const proofInterval = 24 * time.Hour

// proveArgs identify the backup to prove.
type proveArgs struct {
	Backup  uuid.UUID `json:"backup" river:"unique"`
	Project uuid.UUID `json:"project"`

	// Asked means that a user requested it: it ignores the size limit and the interval.
	Asked bool `json:"asked,omitempty" river:"unique"`
}

// Kind returns the kind of the job.
func (proveArgs) Kind() string { return "prove" }

// runProof proves a backup. Afterwards it applies the retention rules: the previous proven
// backup is no longer kept for its proof.
func (m *Maker) runProof(ctx context.Context, a proveArgs) error {
	if err := m.Prove(ctx, a.Backup, a.Asked); err != nil {
		return err
	}

	after, err := m.store.AfterBackup(ctx, a.Backup)
	if err != nil {
		return fault.Ignore(err, fault.NotFound)
	}

	return m.applyRetention(ctx, after.ProjectUUID)
}

// EnqueueDueProofs enqueues proofs of the newest backup of each project where one is due.
func (m *Maker) EnqueueDueProofs(ctx context.Context) error {
	backups, err := m.store.UnprovenBackups(ctx, proofInterval, MaxProvenSize)
	if err != nil {
		return err
	}

	for _, b := range backups {
		if _, err := m.Queue.Insert(ctx, proveArgs{Backup: b.UUID, Project: b.ProjectUUID}); err != nil {
			return err
		}
	}

	return nil
}
