package projects

import (
	"context"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/backup"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/realtimeapi"
	"github.com/socle-dev/socle/internal/schema"
)

func (s *Server) registerStatistics(p *operation.Pipeline) {
	operation.HandleInProject(p, getStatistics, s.getStatistics, nil)
	operation.HandleInProject(p, getRealtimeActivity, s.getRealtimeActivity, nil)
}

var getStatistics = operation.Operation{
	ID: "getStatistics", Method: "GET",
	Path: "/projects/{projectUUID}/statistics", Summary: "Get a project's statistics",
	Access: operation.ProjectInPath(account.Viewer), Errors: []int{400, 401, 404, 500},
	Notes: "Contents and usage of the project's database, as counted by PostgreSQL. Tables, indexes and statements " +
		"are limited to the first twenty.",
}

// statistics has a project's statistics.
type statistics struct {
	schema.Statistics
	SlowStatements platform.SlowStatements `json:"slowStatements"`
	Files          object.Usage            `json:"files"`
	Backups        backup.BackupUsage      `json:"backups"`
}

func (s *Server) getStatistics(
	ctx context.Context, p *projectdb.Project, _ *operation.ProjectInput,
) (statistics, error) {
	database, err := schema.GetStatistics(ctx, p.Trusted())
	if err != nil {
		return statistics{}, err
	}

	files, err := object.GetUsage(ctx, p)
	if err != nil {
		return statistics{}, err
	}

	slow, err := s.Platform.GetSlowStatements(ctx, p.Trusted().Config().ConnConfig.Database)
	if err != nil {
		return statistics{}, err
	}

	backups, err := s.Backups.GetUsage(ctx, p.UUID)
	return statistics{database, slow, files, backups}, err
}

var getRealtimeActivity = operation.Operation{
	ID: "getRealtimeActivity", Method: "GET",
	Path: "/projects/{projectUUID}/realtime-activity", Summary: "Get open sockets and channels",
	Access: operation.ProjectInPath(account.Developer), Errors: operation.RestrictedErrors,
	Notes: "What is open now on the server that answers; with several servers, each knows its own sockets.",
}

func (s *Server) getRealtimeActivity(
	_ context.Context, p *projectdb.Project, _ *operation.ProjectInput,
) (realtimeapi.Activity, error) {
	return s.Realtime.Activity(p.UUID), nil
}
