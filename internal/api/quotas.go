package api

import (
	"context"

	"github.com/google/uuid"

	"socle/internal/object"
	"socle/internal/platform"
	"socle/internal/tenant"
)

func (s *Server) registerQuotas() {
	within(s, getQuota, s.getQuota, nil)
	within(s, updateQuota, s.updateQuota, nil)
}

var getQuota = Operation{
	ID: "getQuota", Method: "GET", Path: "/projects/{projectUUID}/quota", Summary: "Get what a project's files may come to",
	Access: projectInPath(platform.Viewer), Errors: []int{400, 401, 404, 500},
	Notes: "And what they come to now. An upload beyond it is 413, `quota_exceeded`.",
}

func (s *Server) getQuota(ctx context.Context, p *tenant.Project, _ *projectInput) (object.Quota, error) {
	return object.GetQuota(ctx, p)
}

var updateQuota = Operation{
	ID: "updateQuota", Method: "PUT", Path: "/projects/{projectUUID}/quota", Summary: "Change what a project's files may come to",
	Access: projectInPath(platform.Administrator), Errors: []int{400, 401, 403, 404, 422, 500},
	Notes: "For administrators of the instance. What the body does not name stays as it is. Files that are there stay, whatever the quota.",
}

type updateQuotaInput struct {
	UUID uuid.UUID `path:"projectUUID" format:"uuid"`
	Body struct {
		MaxFiles *int64 `json:"max_files,omitempty" minimum:"0"`
		MaxBytes *int64 `json:"max_bytes,omitempty" minimum:"0"`
	}
}

func (s *Server) updateQuota(ctx context.Context, p *tenant.Project, in *updateQuotaInput) (object.Quota, error) {
	return object.UpdateQuota(ctx, p, in.Body.MaxFiles, in.Body.MaxBytes)
}
