package api

import (
	"context"
	"net/http"

	"socle/internal/platform"
	"socle/internal/tenant"
)

func (s *Server) registerRestoreChanges() {
	within(s, listRestores, s.listRestores, nil)
	within(s, undoRestore, s.undoRestore, nil)
}

var listRestores = Operation{
	ID: "listRestores", Method: "GET", Path: "/restores", Summary: "List restores of the project's backups",
	Access: project(platform.Viewer), Errors: []int{400, 401, 500},
}

type listRestoresInput struct {
	PageQuery
	Sort string `query:"sort" enum:"createdAt,completedAt" default:"createdAt"`
}

func (s *Server) listRestores(
	ctx context.Context, p *tenant.Project, in *listRestoresInput,
) (Answer[[]platform.Restore, PageMetadata], error) {
	page := in.by(in.Sort)
	restores, total, err := s.platform.ListRestores(ctx, p.UUID, page)
	return listOf(restores, page, total), err
}

var undoRestore = Operation{
	ID: "undoRestore", Method: "POST",
	Path: "/restores/{restoreUUID}/undo", Summary: "Go back to what a restore replaced",
	Access: project(platform.Owner), Errors: unshaping, Timeout: lasting, Success: http.StatusOK,
	Notes: "The database that the project had before, with its files and forms, takes its place again, while requests wait for a moment. What was restored, and all that has changed since, is kept for a week " +
		"from now on; deleteRestore lets go of it.",
}

func (s *Server) undoRestore(ctx context.Context, p *tenant.Project, in *restoreInput) (platform.Restore, error) {
	return s.jobs.Maker.Undo(ctx, p.UUID, in.UUID)
}
