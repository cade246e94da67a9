package job

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/pg"
	"socle/internal/platform"
)

const (
	backupChannel = "socle_backup" // on which the platform database tells that a backup is over

	// lookAgain is how often who waits for a backup looks whether it is over though nobody said so: what is told while there is no connection is not heard.
	lookAgain = 5 * time.Second
)

// bell wakes all who wait.
type bell struct {
	mu   sync.Mutex
	rung chan struct{} // closed when it rings; nil: nobody waits
}

// next returns what is closed when the bell rings next.
func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.rung == nil {
		b.rung = make(chan struct{})
	}

	return b.rung
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}

// BackUpFirst returns when a backup is completed that was begun after d was first asked for; several requests share one. It fails with Conflict if the backup has failed, or
// is not over when enough is: who asks for the same again then waits for the same backup.
func (q *Queue) BackUpFirst(ctx context.Context, d platform.Destruction, enough <-chan time.Time) error {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()

	var id uuid.UUID
	for {
		some := q.backupOver.next() // before it is looked: what is over between is not missed

		over, err := q.backedUpFirst(ctx, d, &id)
		if over || err != nil {
			return err
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-enough:
			return fault.New(fault.Conflict,
				"a backup of the project has to be completed before this, and is being made; ask again when it is. Nothing was changed").WithCode("backup_under_way")
		case <-some:
		case <-tick.C:
		}
	}
}

// backedUpFirst reports whether the backup is completed that d waits for. As long as id is nil, it is not known which one that is.
func (q *Queue) backedUpFirst(ctx context.Context, d platform.Destruction, id *uuid.UUID) (bool, error) {
	var b platform.Backup
	var err error
	if *id == uuid.Nil {
		b, err = q.awaitBackup(ctx, d)
		if fault.Is(err, fault.Conflict) { // the next one will do
			return false, nil
		}

		*id = b.UUID
	} else {
		b, err = q.Store.GetBackup(ctx, d.Project, *id)
	}

	switch {
	case err != nil:
		return false, err
	case b.Status == "pending", b.Status == "running":
		return false, nil
	}

	if err := q.Store.StopAwaiting(ctx, d, b.UUID); err != nil || b.Status == "completed" {
		return err == nil, err
	}

	return false, fault.New(fault.Conflict,
		"a backup of the project has to be completed before this, and it failed: %s. Nothing was changed",
		b.Error).WithCode("backup_failed")
}

// awaitBackup returns the backup that d waits for, and has one made if there is none. It fails with Conflict if another one is under way that may have
// begun too early.
func (q *Queue) awaitBackup(ctx context.Context, d platform.Destruction) (platform.Backup, error) {
	for {
		b, err := q.Store.AwaitBackup(ctx, d)
		if !fault.Is(err, fault.NotFound) {
			return b, err
		}

		err = q.Store.InTx(q.Lifecycle.OfItself(ctx, "createBackupFirst", d.Project), func(tx *platform.Store) error {
			if b, err = tx.CreateAwaitedBackup(ctx, d); err != nil {
				return err
			}

			_, err = q.client.InsertTx(ctx, tx.Tx(), backupArgs{Backup: b.UUID}, nil)
			return pg.Fault(err)
		})
		if !fault.Is(err, fault.Conflict) || ctx.Err() != nil {
			return b, err
		}
		// Someone else was first: it may be theirs that is waited for.
	}
}
