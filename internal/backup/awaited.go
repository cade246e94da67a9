package backup

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/platform"
)

const (
	backupChannel = "socle_backup" // notified by the platform database when a backup finishes

	// backupPollInterval is the interval at which waiting requests poll the backup. Notifications
	// sent while the LISTEN connection is down are lost.
	backupPollInterval = 5 * time.Second
)

// broadcast wakes all current waiters.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{} // closed by notify; nil without waiters
}

// wait returns a channel that the next notify closes.
func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.ch == nil {
		b.ch = make(chan struct{})
	}

	return b.ch
}

func (b *broadcast) notify() {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// Await waits until a backup is completed that began after d was first requested. Concurrent
// requests share one backup. It fails with Conflict if the backup fails or if timeout fires first;
// a repeated request then waits for the same backup.
func (m *Maker) Await(ctx context.Context, d platform.DestructiveRequest, timeout <-chan time.Time) error {
	tick := time.NewTicker(backupPollInterval)
	defer tick.Stop()

	var id uuid.UUID
	for {
		finished := m.finished.wait() // before the status is read, so that no notification is missed

		done, err := m.checkAwaitedBackup(ctx, d, &id)
		if done || err != nil {
			return err
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout:
			return fault.New(fault.Conflict,
				"this requires a completed backup of the project, which is being made: try again when it is completed. Nothing was changed").WithCode("backup_under_way")
		case <-finished:
		case <-tick.C:
		}
	}
}

// checkAwaitedBackup reports whether the backup that d waits for is completed. It sets id,
// initially nil, once that backup is known.
func (m *Maker) checkAwaitedBackup(ctx context.Context, d platform.DestructiveRequest, id *uuid.UUID) (bool, error) {
	var b platform.Backup
	var err error
	if *id == uuid.Nil {
		b, err = m.awaitBackup(ctx, d)
		if fault.Is(err, fault.Conflict) { // wait for the other backup, then try again
			return false, nil
		}

		*id = b.UUID
	} else {
		b, err = m.store.GetBackup(ctx, d.Project, *id)
	}

	switch {
	case err != nil:
		return false, err
	case b.Status == "pending", b.Status == "running":
		return false, nil
	}

	if err := m.store.DeleteWait(ctx, d, b.UUID); err != nil || b.Status == "completed" {
		return err == nil, err
	}

	return false, fault.New(fault.Conflict,
		"this requires a completed backup of the project, and the backup failed: %s. Nothing was changed",
		b.Error).WithCode("backup_failed")
}

// awaitBackup returns the backup that d waits for and creates it if there is none. It fails with
// Conflict if another backup is in progress that may have begun too early.
func (m *Maker) awaitBackup(ctx context.Context, d platform.DestructiveRequest) (platform.Backup, error) {
	for {
		b, err := m.store.AwaitBackup(ctx, d)
		if !fault.Is(err, fault.NotFound) {
			return b, err
		}

		err = m.store.InTx(m.Lifecycle.AsSystem(ctx, "createBackupFirst", d.Project), func(tx *platform.Store) error {
			if b, err = tx.CreateAwaitedBackup(ctx, d); err != nil {
				return err
			}

			return m.enqueue(ctx, tx, b)
		})
		if !fault.Is(err, fault.Conflict) || ctx.Err() != nil {
			return b, err
		}
		// A concurrent request created a backup first; d may be able to share it.
	}
}
