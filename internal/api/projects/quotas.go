package projects

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/lifecycle"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/pg"
	"github.com/socle-dev/socle/internal/projectdb"
)

func (s *Server) registerQuotas(p *operation.Pipeline) {
	operation.HandleInProject(p, getQuota, s.getQuota, nil)
	operation.HandleInProject(p, updateQuota, s.updateQuota, nil)
}

// quota holds the quota and the current usage for a project's files and database.
type quota struct {
	object.Quota
	lifecycle.Size
}

var getQuota = operation.Operation{
	ID: "getQuota", Method: "GET",
	Path: "/projects/{projectUUID}/quota", Summary: "Get a project's quota",
	Access: operation.ProjectInPath(account.Viewer), Errors: []int{400, 401, 404, 500},
	Notes: "Includes the current usage. An upload that would exceed the quota fails with 413, `quota_exceeded`; so " +
		"does an operation that enlarges a database which already exceeds its quota.",
}

func (s *Server) getQuota(ctx context.Context, p *projectdb.Project, _ *operation.ProjectInput) (quota, error) {
	size, err := s.Lifecycle.GetSize(ctx, p.UUID)
	if err != nil {
		return quota{}, err
	}

	files, err := object.GetQuota(ctx, p)
	return quota{files, size}, err
}

var updateQuota = operation.Operation{
	ID: "updateQuota", Method: "PUT",
	Path: "/projects/{projectUUID}/quota", Summary: "Update a project's quota",
	Access: operation.ProjectInPath(account.Administrator), Errors: []int{400, 401, 403, 404, 422, 500},
	Notes: "For administrators of the instance. Omitted members stay unchanged. Existing files and rows remain, " +
		"even if they exceed the quota.",
	Example: `{"max_bytes": 1073741824, "max_files": 10000}`,
}

type updateQuotaInput struct {
	UUID uuid.UUID `path:"projectUUID" format:"uuid"`
	Body struct {
		MaxFiles         *int64 `json:"max_files,omitempty" minimum:"0"`
		MaxBytes         *int64 `json:"max_bytes,omitempty" minimum:"0"`
		MaxDatabaseBytes *int64 `json:"max_database_bytes,omitempty" minimum:"0"`
	}
}

func (s *Server) updateQuota(ctx context.Context, p *projectdb.Project, in *updateQuotaInput) (quota, error) {
	b := in.Body
	if operation.IsEmpty(b) {
		return quota{}, fault.NothingToChange()
	}

	return pg.InTxValue(ctx, p.InTx, func(tx pgx.Tx) (quota, error) {
		files, err := object.UpdateQuota(ctx, tx, b.MaxFiles, b.MaxBytes)
		if err != nil {
			return quota{}, err
		}

		// Last, since it changes the platform database and commits at once.
		size, err := s.Lifecycle.UpdateSize(ctx, p.UUID, b.MaxDatabaseBytes)
		return quota{files, size}, err
	})
}
