package tables

import (
	"context"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
	"github.com/socle-dev/socle/internal/tablejob"
)

func (s *Server) registerCompactions(p *operation.Pipeline) {
	operation.HandleInProject(p, createCompaction, s.createCompaction, nil)
	operation.HandleInProject(p, getCompaction, s.getCompaction, nil)
}

var createCompaction = operation.Operation{
	ID: "createCompaction", Method: "POST", Path: "/tables/{tableUUID}/compaction", Summary: "Compact a table",
	Access: operation.Project(account.Developer), Errors: operation.DDLDeleteErrors,
	Notes: "Rewrites the table and its indexes in the background, to release the space of deleted and updated " +
		"rows. The table can be neither read nor written meanwhile, and needs up to twice its space. The " +
		"compaction covers rows deleted before the request. While other sessions lock the table, or older " +
		"transactions can still see deleted rows, it is retried for some minutes.",
}

func (s *Server) createCompaction(
	ctx context.Context, p *projectdb.Project, in *tableInput,
) (tablejob.Compaction, error) {
	t, err := schema.GetTable(ctx, p.Trusted(), p.UUID, in.Table)
	if err != nil {
		return tablejob.Compaction{}, err
	}

	return s.TableJobs.CreateCompaction(ctx, p, t.ID)
}

var getCompaction = operation.Operation{
	ID: "getCompaction", Method: "GET",
	Path: "/tables/{tableUUID}/compaction", Summary: "Get the latest compaction",
	Access: operation.Project(account.Viewer), Errors: operation.MemberErrors,
	Notes: "A compaction is listed for one day after its end.",
}

func (s *Server) getCompaction(
	ctx context.Context, p *projectdb.Project, in *tableInput,
) (tablejob.Compaction, error) {
	t, err := schema.GetTable(ctx, p.Trusted(), p.UUID, in.Table)
	if err != nil {
		return tablejob.Compaction{}, err
	}

	return s.TableJobs.GetCompaction(ctx, p, t.ID)
}
