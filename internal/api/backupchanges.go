package api

import (
	"context"

	"socle/internal/platform"
	"socle/internal/tenant"
)

func (s *Server) registerBackupChanges() {
	within(s, listBackups, s.listBackups, nil)
	within(s, deleteBackup, s.deleteBackup, nil)
}

var listBackups = Operation{
	ID: "listBackups", Method: "GET", Path: "/backups", Summary: "List backups",
	Access: project(platform.Viewer), Errors: []int{400, 401, 500},
}

type listBackupsInput struct {
	PageQuery
	Sort string `query:"sort" enum:"createdAt,completedAt" default:"createdAt"`
}

func (s *Server) listBackups(
	ctx context.Context, p *tenant.Project, in *listBackupsInput,
) (Answer[[]platform.Backup, PageMetadata], error) {
	page := in.by(in.Sort)
	backups, total, err := s.platform.ListBackups(ctx, p.UUID, page)
	return listOf(backups, page, total), err
}

var deleteBackup = Operation{
	ID: "deleteBackup", Method: "DELETE", Path: "/backups/{backupUUID}", Summary: "Delete a backup",
	Access: project(platform.Admin), Errors: []int{400, 401, 403, 404, 409, 500},
	Notes: "It can't be restored any more from now on. What is kept of it is removed in the background, but for bytes of files that other backups hold too; then it is gone.",
}

func (s *Server) deleteBackup(ctx context.Context, p *tenant.Project, in *getBackupInput) (platform.Backup, error) {
	return s.platform.DeleteBackup(ctx, p.UUID, in.UUID)
}
