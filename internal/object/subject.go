package object

import (
	"context"
	"time"

	"github.com/socle-dev/socle/internal/projectdb"
)

// Subject returns the subject "storage": containers and files.
func (c *Cleaner) Subject() projectdb.Subject {
	return projectdb.Subject{
		Schema: "storage",
		Sweep:  c.sweepProject, SweepInactive: c.sweepProject, SweepInstall: c.sweepStorage,
		Restore: projectdb.Restore{Skipped: unrestoredTables, Prepare: prepareRestored, Repair: repair,
			CopyQuota: copyQuota},
		Files: &projectdb.Files{
			Blobs: listBlobs, EachContent: eachContent, ContentsAfter: contentsAfter,
			BlobOfContent: blobOfContent, NameOfBlob: nameOfBlob,
			RemoveOrphans: func(ctx context.Context, p *projectdb.Project, age time.Duration) (int, error) {
				return RemoveOrphans(ctx, p, c.blobs, age)
			},
			Discard: c.Discard,
		},
	}
}
