package backups

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/backup"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

func (s *Server) registerRestores(p *operation.Pipeline) {
	operation.HandleInProject(p, restoreBackup, s.restoreBackup, s.findBackupToRestore)
	operation.HandleInProject(p, getRestore, s.getRestore, nil)
	operation.HandleInProject(p, deleteRestore, s.deleteRestore, nil)
	operation.HandleInProject(p, listRestores, s.listRestores, nil)
	operation.HandleInProject(p, undoRestore, s.undoRestore, nil)
}

var restoreBackup = operation.Operation{
	ID: "restoreBackup", Method: "POST", Path: "/backups/{backupUUID}/restore", Summary: "Restore a backup",
	Access: operation.Project(account.Admin), Errors: operation.DDLErrors,
	Timeout: operation.LongTimeout,
	Notes: "Returns a pending restore at once; the restore runs in the background, into a new database. After a " +
		"comparison with the backup, the database replaces the project's (`in_place`; needs the role of owner), " +
		"while requests to the project wait for a moment, or becomes a new project (`new`). If anything fails, " +
		"nothing changes. Objects that PostgreSQL does not create again are listed in `missing`; a restore in place " +
		"then fails unless `allow_missing` is true. Each project runs one restore at a time.",
	Example: `{"target": "new", "name": "Book shop of yesterday"}`,
}

type restoreBackupInput struct {
	UUID uuid.UUID `path:"backupUUID" format:"uuid"`
	Body struct {
		Target string  `json:"target" enum:"in_place,new"`
		Name   *string `json:"name,omitempty" minLength:"1" maxLength:"100" doc:"Name of the new project."`

		AllowMissing bool `json:"allow_missing,omitempty" doc:"Whether the database replaces the project's although PostgreSQL did not create some objects of the backup again. Otherwise the restore fails and lists them. A new project is created without them in any case."`
	}
}

func (s *Server) findBackupToRestore(ctx context.Context, p *projectdb.Project, in *restoreBackupInput) error {
	_, err := s.Backups.Get(ctx, p.UUID, in.UUID)
	return err
}

func (s *Server) restoreBackup(
	ctx context.Context, p *projectdb.Project, in *restoreBackupInput,
) (backup.Restore, error) {
	c := operation.Caller(ctx)
	if in.Body.Target == backup.IntoNew {
		if err := c.CheckNewProjects(); err != nil {
			return backup.Restore{}, err
		}

		if in.Body.Name == nil {
			return backup.Restore{}, fault.OnField(fault.Unprocessable, "name", "required",
				"is required for a new project")
		}

		return s.Backups.RequestRestoreAs(ctx, p.UUID, in.UUID, c.User, *in.Body.Name)
	}

	if !c.Role.AtLeast(account.Owner) {
		return backup.Restore{}, fault.New(fault.Forbidden, "requires the role of %s, yours is %s",
			account.Owner, c.Role)
	}

	return s.Backups.RequestRestore(ctx, p.UUID, in.UUID, c.User, in.Body.AllowMissing)
}

var getRestore = operation.Operation{
	ID: "getRestore", Method: "GET", Path: "/restores/{restoreUUID}", Summary: "Get a restore",
	Access: operation.Project(account.Viewer), Errors: []int{400, 401, 404, 500},
}

type restoreInput struct {
	UUID uuid.UUID `path:"restoreUUID" format:"uuid"`
}

func (s *Server) getRestore(ctx context.Context, p *projectdb.Project, in *restoreInput) (backup.Restore, error) {
	return s.Backups.GetRestore(ctx, p.UUID, in.UUID)
}

var deleteRestore = operation.Operation{
	ID: "deleteRestore", Method: "DELETE",
	Path: "/restores/{restoreUUID}", Summary: "Discard the pre-restore database",
	Access: operation.Project(account.Owner), Errors: []int{400, 401, 403, 404, 409, 500},
	Notes: "Removes the database and files from before the restore in the background. The restored state remains.",
}

func (s *Server) deleteRestore(ctx context.Context, p *projectdb.Project, in *restoreInput) (backup.Restore, error) {
	return s.Backups.ExpireReplaced(ctx, p.UUID, in.UUID)
}

var listRestores = operation.Operation{
	ID: "listRestores", Method: "GET", Path: "/restores", Summary: "List restores",
	Access: operation.Project(account.Viewer), Errors: []int{400, 401, 500},
}

type listRestoresInput struct {
	operation.PageQuery
	Sort string `query:"sort" enum:"createdAt,completedAt" default:"createdAt"`
}

func (s *Server) listRestores(
	ctx context.Context, p *projectdb.Project, in *listRestoresInput,
) (operation.Answer[[]backup.Restore, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	restores, total, err := s.Backups.ListRestores(ctx, p.UUID, page)
	return operation.ListOf(restores, page, total), err
}

var undoRestore = operation.Operation{
	ID: "undoRestore", Method: "POST",
	Path: "/restores/{restoreUUID}/undo", Summary: "Undo a restore",
	Access: operation.Project(account.Owner), Errors: operation.DDLDeleteErrors,
	Timeout: operation.LongTimeout, Success: http.StatusOK,
	Notes: "Replaces the project's database, files and forms by those from before the restore; requests wait for a " +
		"moment meanwhile. The restored state, including all changes since, is retained for a week; deleteRestore " +
		"discards it.",
}

func (s *Server) undoRestore(ctx context.Context, p *projectdb.Project, in *restoreInput) (backup.Restore, error) {
	return s.Backups.Undo(ctx, p.UUID, in.UUID)
}
