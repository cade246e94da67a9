package job

import (
	"context"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"socle/internal/object"
	"socle/internal/tenant"
)

const (
	filesQueue    = "files"
	discardAtOnce = 2 // on one server
)

// discardArgs names the project whose deleted files lose their bytes.
type discardArgs struct {
	Project uuid.UUID `json:"project"`
}

// Kind names the job.
func (discardArgs) Kind() string { return "discard" }

// InsertOpts puts the job into its queue. If it fails for good, the sweep does what it left.
func (discardArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: filesQueue, MaxAttempts: 5}
}

type discardWorker struct {
	river.WorkerDefaults[discardArgs]
	lifecycle tenant.Lifecycle
}

// Work removes the bytes.
func (w *discardWorker) Work(ctx context.Context, job *river.Job[discardArgs]) error {
	_, err := object.Discard(ctx, w.lifecycle.Registry.Open(job.Args.Project), w.lifecycle.Blobs)
	return err
}

// Discard has the bytes of a project's deleted files removed. That they are to go stands in the project's database: if this
// fails, or nobody comes to it, the sweep does it.
func (q *Queue) Discard(ctx context.Context, project uuid.UUID) {
	if _, err := q.client.Insert(context.WithoutCancel(ctx), discardArgs{Project: project}, nil); err != nil {
		q.Log.Warn("discard", "project", project, "error", err)
	}
}
