package projects

import (
	"context"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
)

func (s *Server) registerLint(p *operation.Pipeline) {
	operation.HandleInProject(p, lintProject, s.lintProject, nil)
}

var lintProject = operation.Operation{
	ID: "lintProject", Method: "GET", Path: "/projects/{projectUUID}/lint", Summary: "Lint a project's database",
	Access: operation.ProjectInPath(account.Viewer), Errors: operation.MemberErrors,
	Notes: "Reports probable security and performance problems, most severe first, at most 1000 findings. Reads " +
		"only the database's catalog.",
}

func (s *Server) lintProject(
	ctx context.Context, p *projectdb.Project, _ *operation.ProjectInput,
) ([]schema.Finding, error) {
	return schema.Lint(ctx, p.Trusted())
}
