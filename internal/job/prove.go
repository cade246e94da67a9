package job

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"socle/internal/backup"
	"socle/internal/fault"
)

const (
	proofQueue = "proofs"
	// after which the newest backup of a project is proven again, unless its schedule says otherwise
	provenFor = 24 * time.Hour
)

// proveArgs names the backup to restore, to see whether it can be.
type proveArgs struct {
	Backup uuid.UUID `json:"backup"`
	Asked  bool      `json:"asked,omitempty"` // by someone: whatever its size, and however soon
}

// Kind names the job.
func (proveArgs) Kind() string { return "prove" }

// InsertOpts has each backup proven once at a time, and again if the server stopped or PostgreSQL went away: within a quarter of an hour, that is.
func (proveArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{
		Queue:       proofQueue,
		MaxAttempts: 6,
		UniqueOpts:  river.UniqueOpts{ByArgs: true, ByState: unfinished},
	}
}

// proveBackup proves a backup. Another one that was the last to be proven need not be kept for that any more.
func (q *Queue) proveBackup(ctx context.Context, a proveArgs) error {
	if err := q.Maker.Prove(ctx, a.Backup, a.Asked); err != nil {
		return err
	}

	after, err := q.Store.AfterBackup(ctx, a.Backup)
	if err != nil {
		return fault.Except(err, fault.NotFound)
	}

	return q.removeUnkept(ctx, after.ProjectUUID)
}

// proveAgain has the newest backup of each project proven again when it is time.
func (q *Queue) proveAgain(ctx context.Context) error {
	backups, err := q.Store.UnprovenBackups(ctx, provenFor, backup.MostProven)
	for _, id := range backups {
		if err == nil {
			_, err = q.client.Insert(ctx, proveArgs{Backup: id}, nil)
		}
	}

	return err
}
