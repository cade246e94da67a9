package backup

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/queue"
)

// factArgs identify a fact about a backup to write into its project's log. The job is enqueued in
// the transaction that records the fact.
type factArgs struct {
	Backup  uuid.UUID `json:"backup"`
	Project uuid.UUID `json:"project"`
	Type    string    `json:"type"`
	At      time.Time `json:"at"`
	Size    *int64    `json:"size,omitempty"`
	Error   string    `json:"error,omitempty"`
}

// Kind returns the job kind.
func (factArgs) Kind() string { return "backup_fact" }

// factOf returns a fact about a backup.
func factOf(typ string, b Backup) factArgs {
	return factArgs{Backup: b.UUID, Project: b.ProjectUUID, Type: typ, At: time.Now(), Size: b.Size}
}

// runFact writes a fact. A project that is paused or deleted tells nobody.
func (s *Service) runFact(ctx context.Context, a factArgs) error {
	data := struct {
		ID    uuid.UUID `json:"id"`
		Size  *int64    `json:"size"`
		Error string    `json:"error,omitempty"`
	}{a.Backup, a.Size, a.Error}

	id := event.NewFactID(a.Type, a.Backup.String()+" "+a.At.UTC().Format(time.RFC3339Nano))
	err := event.Write(ctx, s.projects.Open(a.Project), event.Fact{ID: id, Type: a.Type, At: a.At, Data: data})
	if errors.Is(err, projectdb.ErrClosed) {
		return nil
	}
	if err != nil {
		return &RetryError{Err: err}
	}

	return nil
}

// recordFact enqueues a fact in a transaction that records it.
func (s *Service) recordFact(ctx context.Context, tx *store, a factArgs) error {
	_, err := s.Queue.InsertTx(ctx, tx.tx(), a)
	return err
}

// factOptions configure the jobs of facts. They are retried for about an hour.
var factOptions = queue.Options{
	Workers:     queue.Workers{Queue: "backup_facts", PerServer: 4, PerAccount: 1},
	MaxAttempts: 8,
}
