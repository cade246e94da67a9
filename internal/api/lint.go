package api

import (
	"context"

	"socle/internal/platform"
	"socle/internal/schema"
	"socle/internal/tenant"
)

func (s *Server) registerLint() {
	within(s, lintProject, s.lintProject, nil)
}

var lintProject = Operation{
	ID: "lintProject", Method: "GET", Path: "/projects/{projectUUID}/lint", Summary: "Look a project's database over",
	Access: projectInPath(platform.Viewer), Errors: memberErrors,
	Notes: "What opens more data than was probably meant, and what makes it slow, the worst first; 1000 findings at most. Reads the catalogue alone.",
}

func (s *Server) lintProject(ctx context.Context, p *tenant.Project, _ *projectInput) ([]schema.Finding, error) {
	return schema.Lint(ctx, p.Trusted())
}
