package tables

import (
	"context"
	"slices"
	"strings"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
)

func (s *Server) registerIndexes(p *operation.Pipeline) {
	operation.HandleInProject(p, listIndexes, s.listIndexes, nil)
	operation.HandleInProject(p, getIndex, s.getIndex, nil)
	operation.HandleInProject(p, createIndex, s.createIndex, existingTable[createIndexInput])
	operation.HandleInProject(p, deleteIndex, s.deleteIndex, nil)
}

var listIndexes = operation.Operation{
	ID: "listIndexes", Method: "GET", Path: "/tables/{tableUUID}/indexes", Summary: "List a table's indexes",
	Access: operation.Project(account.Viewer), Errors: operation.MemberErrors,
	Notes: "Includes indexes that are being built or whose build failed.",
}

func (s *Server) listIndexes(ctx context.Context, p *projectdb.Project, in *tableInput) ([]schema.Index, error) {
	t, err := schema.GetTable(ctx, p.Trusted(), p.UUID, in.Table)
	if err != nil {
		return nil, err
	}

	return s.indexesOf(ctx, p, t)
}

var getIndex = operation.Operation{
	ID: "getIndex", Method: "GET", Path: "/tables/{tableUUID}/indexes/{indexName}", Summary: "Get an index",
	Access: operation.Project(account.Viewer), Errors: operation.MemberErrors,
}

type indexInput struct {
	tableInput
	Index string `path:"indexName" maxLength:"200"`
}

func (s *Server) getIndex(ctx context.Context, p *projectdb.Project, in *indexInput) (schema.Index, error) {
	t, err := schema.GetTable(ctx, p.Trusted(), p.UUID, in.Table)
	if err != nil {
		return schema.Index{}, err
	}

	all, err := s.indexesOf(ctx, p, t)
	if err != nil {
		return schema.Index{}, err
	}

	i := slices.IndexFunc(all, func(x schema.Index) bool { return x.Name == in.Index })
	if i < 0 {
		return schema.Index{}, fault.New(fault.NotFound, "there is no such index")
	}

	return all[i], nil
}

// indexesOf returns a table's indexes, including those being built and those that failed.
func (s *Server) indexesOf(ctx context.Context, p *projectdb.Project, t schema.Table) ([]schema.Index, error) {
	// The jobs are listed before the catalog, which has the index if a job completes in between.
	builds, err := s.TableJobs.ListIndexes(ctx, p.UUID, t.ID)
	if err != nil {
		return nil, err
	}

	all, err := schema.ListIndexes(ctx, p.Trusted(), t.ID)
	if err != nil {
		return nil, err
	}

	for _, build := range builds {
		i := slices.IndexFunc(all, func(x schema.Index) bool { return x.Name == build.Name })
		switch {
		case i < 0:
			all = append(all, build)
		case build.Status == "building" || all[i].Status != "ready":
			all[i].Status, all[i].Error = build.Status, build.Error
		}
	}

	slices.SortFunc(all, func(x, y schema.Index) int { return strings.Compare(x.Name, y.Name) })
	return all, nil
}

var createIndex = operation.Operation{
	ID: "createIndex", Method: "POST", Path: "/tables/{tableUUID}/indexes", Summary: "Create an index",
	Access: operation.Project(account.Developer), Errors: operation.DDLErrors,
	Timeout: operation.LongTimeout, Grows: operation.Always,
	Notes: "On a table of more than 100000 rows or 64 MB, the index is built in the background without blocking " +
		"writes: its status is `building`, then `ready` or `failed`. Names in expressions resolve in the system " +
		"catalog, then in the table's schema, then in public.",
	Example: `{"columns": ["title"]}`,
}

type createIndexInput struct {
	tableInput
	Body struct {
		schema.NewIndex
		operation.ProjectInBody
	}
}

func (s *Server) createIndex(ctx context.Context, p *projectdb.Project, in *createIndexInput) (schema.Index, error) {
	index, build, err := schema.CreateIndex(ctx, p.Owner(), p.UUID, in.Table, in.Body.NewIndex)
	if err != nil || build == nil {
		return index, err
	}

	return index, s.TableJobs.CreateIndex(ctx, p, build.Table, build.Index)
}

var deleteIndex = operation.Operation{
	ID: "deleteIndex", Method: "DELETE", Path: "/tables/{tableUUID}/indexes/{indexName}", Summary: "Delete an index",
	Access: operation.Project(account.Developer), Errors: operation.DDLDeleteErrors, Timeout: operation.LongTimeout,
	Notes: "An index of a constraint is deleted with the constraint. Deleting an index whose build failed removes " +
		"its record.",
}

func (s *Server) deleteIndex(ctx context.Context, p *projectdb.Project, in *indexInput) (schema.Index, error) {
	t, err := schema.GetTable(ctx, p.Trusted(), p.UUID, in.Table)
	if err != nil {
		return schema.Index{}, err
	}

	all, err := s.indexesOf(ctx, p, t)
	if err != nil {
		return schema.Index{}, err
	}

	i := slices.IndexFunc(all, func(x schema.Index) bool { return x.Name == in.Index })
	if i >= 0 && all[i].Status == "building" {
		return schema.Index{}, fault.New(fault.Conflict, "the index is being built").WithCode("busy")
	}

	failed := i >= 0 && all[i].Status == "failed"

	index, err := schema.DeleteIndex(ctx, p.Owner(), p.UUID, in.Table, in.Index)
	if failed && fault.Is(err, fault.NotFound) {
		index, err = all[i], nil // the failed build left operation.Nothing in the database
	}

	if err != nil || !failed {
		return index, err
	}

	return index, s.TableJobs.ForgetIndex(ctx, p.UUID, t.ID, in.Index)
}
