package job

import (
	"context"

	"github.com/google/uuid"
	"github.com/riverqueue/river"

	"socle/internal/object"
	"socle/internal/tenant"
)

const (
	filesQueue     = "files"
	discardWorkers = 2 // per server
)

// discardArgs identify the project whose discarded blobs are removed.
type discardArgs struct {
	Project uuid.UUID `json:"project"`
}

// Kind returns the kind of the job.
func (discardArgs) Kind() string { return "discard" }

// InsertOpts selects the queue. The sweep covers jobs that fail for good.
func (discardArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: filesQueue, MaxAttempts: 5}
}

type discardWorker struct {
	river.WorkerDefaults[discardArgs]
	lifecycle tenant.Lifecycle
}

// Work removes the discarded blobs.
func (w *discardWorker) Work(ctx context.Context, job *river.Job[discardArgs]) error {
	_, err := object.Discard(ctx, w.lifecycle.Registry.Open(job.Args.Project), w.lifecycle.Blobs)
	return err
}

// Discard enqueues the removal of a project's discarded blobs. The project's database records them,
// so the sweep removes them if the job is lost or fails. Errors are logged.
func (q *Queue) Discard(ctx context.Context, project uuid.UUID) {
	if _, err := q.client.Insert(context.WithoutCancel(ctx), discardArgs{Project: project}, nil); err != nil {
		q.Log.Warn("enqueue removal of discarded blobs", "project", project, "error", err)
	}
}
