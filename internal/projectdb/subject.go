package projectdb

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

// Subject is the contract for a package with rows in project databases: periodic work on these
// rows, and their part in backups and restores. A function can be nil: there is nothing to do then.
type Subject struct {
	Schema string // with its tables

	// Sweep removes an active project's expired rows.
	Sweep func(ctx context.Context, p *Project) error
	// SweepInactive removes a paused or deleted project's leftovers.
	SweepInactive func(ctx context.Context, p *Project) error
	// SweepInstall removes leftovers that belong to no project.
	SweepInstall func(ctx context.Context) error

	Restore Restore
	Files   *Files // nil: it has none
}

// Restore is a subject's part in backup restores. A restored database can have an older release's
// schema, without some tables.
type Restore struct {
	// Skipped are the tables whose rows are not restored: work in progress, and derived data.
	Skipped []string
	// Prepare changes rows that were loaded from a backup, before the database is swapped in.
	Prepare func(ctx context.Context, tx pgx.Tx) error
	// Detach changes rows that only the backup's own project may act on, in a restore into another
	// one.
	Detach func(ctx context.Context, tx pgx.Tx) error
	// UUIDs returns the rows by which the platform database finds the project. Renew gives other
	// UUIDs to such rows. Triggers and foreign keys are disabled in the transaction.
	UUIDs func(ctx context.Context, q pg.Querier) ([]uuid.UUID, error)
	Renew func(ctx context.Context, tx pgx.Tx, rows []uuid.UUID) error
	// Repair repairs rows from an imported backup, which no trigger or foreign key has checked.
	// Triggers are disabled in the transaction.
	Repair func(ctx context.Context, tx pgx.Tx) error
	// CopyQuota copies a database's quota to another one that is about to replace it.
	CopyQuota func(ctx context.Context, from, to pg.Querier) error
}

// Files are a subject's files, whose rows refer to blobs by their UUIDs.
type Files struct {
	// Blobs returns the blobs recorded in a database, including those for transfers and deleted
	// files.
	Blobs func(ctx context.Context, q pg.Querier) ([]uuid.UUID, error)
	// EachContent calls f with the distinct contents of all files, each with one of its blobs.
	EachContent func(ctx context.Context, q pg.Querier, f func(Content) error) error
	// ContentsAfter returns up to n contents in blob order, beginning after a blob.
	ContentsAfter func(ctx context.Context, q pg.Querier, last uuid.UUID, n int) ([]Content, error)
	// BlobOfContent returns a blob with a content. It fails with NotFound without one.
	BlobOfContent func(ctx context.Context, p *Project, size int64, sha256 []byte) (uuid.UUID, error)
	// NameOfBlob returns the name of the file with a blob. It fails with NotFound without one.
	NameOfBlob func(ctx context.Context, p *Project, blob uuid.UUID) (string, error)
	// RemoveOrphans removes unreferenced blobs older than age and returns their number.
	RemoveOrphans func(ctx context.Context, p *Project, age time.Duration) (int, error)
	// Discard enqueues the removal of deleted files' blobs.
	Discard func(ctx context.Context, project uuid.UUID)
}

// MinOrphanAge is the age from which unreferenced blobs count as orphans. No upload takes that
// long.
const MinOrphanAge = 24 * time.Hour

// Content is a file's content: its size, checksum and blob.
type Content struct {
	Size     int64
	SHA256   []byte `db:"sha256"`
	BlobUUID uuid.UUID
}
