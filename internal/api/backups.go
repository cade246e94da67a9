package api

import (
	"context"
	"time"

	"github.com/google/uuid"

	"socle/internal/platform"
	"socle/internal/tenant"
)

func (s *Server) registerBackups() {
	within(s, createBackup, s.createBackup, nil)
	within(s, getBackup, s.getBackup, nil)
}

var createBackup = Operation{
	ID: "createBackup", Method: "POST", Path: "/backups", Summary: "Back a project up",
	Access: project(platform.Developer), Errors: creating,
	Notes: "Answers at once with a pending backup, which is made in the background. One at a time for each project.",
}

type createBackupInput struct {
	Body struct{ ProjectInBody }
}

func (s *Server) createBackup(ctx context.Context, p *tenant.Project, _ *createBackupInput) (platform.Backup, error) {
	return s.jobs.CreateBackup(ctx, p.UUID, caller(ctx).User)
}

var getBackup = Operation{
	ID: "getBackup", Method: "GET", Path: "/backups/{backupUUID}", Summary: "Get a backup",
	Access: project(platform.Viewer), Errors: specified,
}

type getBackupInput struct {
	UUID uuid.UUID `path:"backupUUID" format:"uuid"`
}

// backupMetadata has the fields that the specified Backup lacks.
type backupMetadata struct {
	Size       *int64     `json:"size" nullable:"true" doc:"Bytes of the dump, as it is kept; null until it is completed."`
	Origin     string     `json:"origin" enum:"made,imported" doc:"Whether it was made here, or came from elsewhere."`
	TriedAt    *time.Time `json:"triedAt" nullable:"true" doc:"When it was last restored into a database of its own to see whether it can be; null if it never was."`
	ProvenAt   *time.Time `json:"provenAt" nullable:"true" doc:"When that was last done and it was found to be whole; null if it never was."`
	ProofError string     `json:"proofError" doc:"Why it could not be restored when that was last tried; empty if it could."`
	Scheduled  bool       `json:"scheduled" doc:"Whether the project's schedule made it, and removes it when its rules don't keep it."`
	Before     *string    `json:"before" nullable:"true" doc:"The operation that waited for it, since the project has backupBeforeDestructive; null if none did. Such a backup is kept for 30 days at least."`
	WaitingFor string     `json:"waitingFor" doc:"What it waits for while it is pending or running; empty if it does not wait."`
	Warnings   []string   `json:"warnings" doc:"What a restore will not bring back."`
}

type backupAnswer = Answer[platform.Backup, backupMetadata]

func answerBackup(b platform.Backup) backupAnswer {
	if b.Status != "pending" && b.Status != "running" {
		b.WaitingFor = ""
	}

	return backupAnswer{
		Content: b, Metadata: backupMetadata{
			b.Size, b.Origin, b.TriedAt, b.ProvenAt, b.ProofError, b.Scheduled, b.MadeBefore, b.WaitingFor, b.Warnings,
		},
	}
}

func (s *Server) getBackup(ctx context.Context, p *tenant.Project, in *getBackupInput) (backupAnswer, error) {
	b, err := s.platform.GetBackup(ctx, p.UUID, in.UUID)
	return answerBackup(b), err
}
