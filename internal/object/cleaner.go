package object

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/queue"
)

// uploadTTL is the age at which an unfinished upload is abandoned.
const uploadTTL = 24 * time.Hour

// Cleaner removes the bytes of deleted files and abandoned uploads.
type Cleaner struct {
	blobs *blob.Store
	queue *queue.Queue
	log   *slog.Logger
}

// NewCleaner registers the worker that removes discarded blobs.
func NewCleaner(projects *projectdb.Registry, blobs *blob.Store, q *queue.Queue, log *slog.Logger) *Cleaner {
	c := &Cleaner{blobs, q, log}

	queue.Register(q, queue.Options{ // the sweep covers jobs that fail for good
		Workers:     queue.Workers{Queue: "files", PerServer: 2},
		MaxAttempts: 5,
	}, func(ctx context.Context, job *queue.Job[discardArgs]) error {
		_, err := Discard(ctx, projects.Open(job.Args.Project), blobs)
		return err
	})

	return c
}

// discardArgs identify the project whose discarded blobs are removed.
type discardArgs struct {
	Project uuid.UUID `json:"project"`
}

func (discardArgs) Kind() string { return "discard" }

// Discard enqueues the removal of a project's discarded blobs. The project's database records them,
// so the sweep removes them if the job is lost or fails. Errors are logged.
func (c *Cleaner) Discard(ctx context.Context, project uuid.UUID) {
	if _, err := c.queue.Insert(context.WithoutCancel(ctx), discardArgs{Project: project}); err != nil {
		c.log.Warn("enqueue removal of discarded blobs", "project", project, "error", err)
	}
}

// sweepStorage removes the bytes that aborted uploads left in the storage.
func (c *Cleaner) sweepStorage(ctx context.Context) error {
	_, err := c.blobs.Sweep(ctx, uploadTTL)
	return err
}

// sweepProject removes the abandoned uploads and the discarded blobs of a project.
func (c *Cleaner) sweepProject(ctx context.Context, p *projectdb.Project) error {
	_, sweepErr := Sweep(ctx, p, c.blobs, uploadTTL)
	_, discardErr := Discard(ctx, p, c.blobs)

	return errors.Join(sweepErr, discardErr)
}
