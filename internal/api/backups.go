package api

import (
	"context"

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

func (s *Server) getBackup(ctx context.Context, p *tenant.Project, in *getBackupInput) (platform.Backup, error) {
	return s.platform.GetBackup(ctx, p.UUID, in.UUID)
}
