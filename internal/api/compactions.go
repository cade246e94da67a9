package api

import (
	"context"

	"socle/internal/job"
	"socle/internal/platform"
	"socle/internal/schema"
	"socle/internal/tenant"
)

func (s *Server) registerCompactions() {
	within(s, createCompaction, s.createCompaction, nil)
	within(s, getCompaction, s.getCompaction, nil)
}

var createCompaction = Operation{
	ID: "createCompaction", Method: "POST", Path: "/tables/{tableUUID}/compaction", Summary: "Compact a table",
	Access: project(platform.Developer), Errors: ddlDeleteErrors,
	Notes: "In the background the table is written anew with its indexes, so that it gives back the room of rows that were deleted or changed. Nobody can read or write it meanwhile, and for as long as that takes there are two of it. " +
		"What was deleted before the request is gone afterwards. While others hold the table, or a transaction that began before the request can still see deleted rows, it is tried again, for some minutes.",
}

func (s *Server) createCompaction(ctx context.Context, p *tenant.Project, in *tableInput) (job.Compaction, error) {
	t, err := schema.GetTable(ctx, p.Trusted(), p.UUID, in.Table)
	if err != nil {
		return job.Compaction{}, err
	}

	return s.jobs.CreateCompaction(ctx, p, t.ID)
}

var getCompaction = Operation{
	ID: "getCompaction", Method: "GET",
	Path: "/tables/{tableUUID}/compaction", Summary: "Get the latest compaction of a table",
	Access: project(platform.Viewer), Errors: memberErrors,
	Notes: "It is known for a day after its end.",
}

func (s *Server) getCompaction(ctx context.Context, p *tenant.Project, in *tableInput) (job.Compaction, error) {
	t, err := schema.GetTable(ctx, p.Trusted(), p.UUID, in.Table)
	if err != nil {
		return job.Compaction{}, err
	}

	return s.jobs.GetCompaction(ctx, p, t.ID)
}
