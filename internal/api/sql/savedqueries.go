package sql

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/statement"
)

func (s *Server) registerSavedQueries(p *operation.Pipeline) {
	operation.HandleInProject(p, createSavedQuery, s.createSavedQuery, nil)
	operation.HandleInProject(p, listSavedQueries, s.listSavedQueries, nil)
	operation.HandleInProject(p, updateSavedQuery, s.updateSavedQuery, s.findSavedQuery)
	operation.HandleInProject(p, deleteSavedQuery, s.deleteSavedQuery, nil)
}

var createSavedQuery = operation.Operation{
	ID: "createSavedQuery", Method: "POST", Path: "/projects/{projectUUID}/saved-queries", Summary: "Save a query",
	Access: operation.ProjectInPath(account.Developer), Errors: []int{400, 401, 403, 404, 409, 422, 500},
	Grows: operation.Always,
	Notes: "All developers of the project see and change it, and backups contain it: a password in a query is " +
		"readable to them. It is not run. A project has 500.",
	Example: `{"name": "cheap books", "query": "select title from books where price < 10"}`,
}

type createSavedQueryInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Body    struct {
		Name  string `json:"name" minLength:"1" maxLength:"100" doc:"Unique in the project."`
		Query string `json:"query" minLength:"1" maxLength:"50000"`
	}
}

func (s *Server) createSavedQuery(
	ctx context.Context, p *projectdb.Project, in *createSavedQueryInput,
) (statement.SavedQuery, error) {
	return statement.CreateSaved(ctx, p, operation.Caller(ctx).User, in.Body.Name, in.Body.Query)
}

var listSavedQueries = operation.Operation{
	ID: "listSavedQueries", Method: "GET", Path: "/projects/{projectUUID}/saved-queries", Summary: "List saved queries",
	Access: operation.ProjectInPath(account.Developer), Errors: operation.RestrictedErrors,
}

type listSavedQueriesInput struct {
	operation.PageQuery
	Sort    string    `query:"sort" enum:"name,createdAt,updatedAt" default:"name"`
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
}

func (s *Server) listSavedQueries(
	ctx context.Context, p *projectdb.Project, in *listSavedQueriesInput,
) (operation.Answer[[]statement.SavedQuery, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	queries, total, err := statement.ListSaved(ctx, p, page)
	return operation.ListOf(queries, page, total), err
}

var updateSavedQuery = operation.Operation{
	ID: "updateSavedQuery", Method: "PUT", Path: "/projects/{projectUUID}/saved-queries/{savedQueryUUID}",
	Summary: "Update a saved query",
	Access:  operation.ProjectInPath(account.Developer), Errors: []int{400, 401, 403, 404, 409, 422, 500},
	Grows:   operation.Always,
	Notes:   "Omitted members stay unchanged.",
	Example: `{"query": "select title from books where price < 12"}`,
}

type updateSavedQueryInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	UUID    uuid.UUID `path:"savedQueryUUID" format:"uuid"`
	Body    struct {
		Name  *string `json:"name,omitempty" minLength:"1" maxLength:"100" doc:"Unique in the project."`
		Query *string `json:"query,omitempty" minLength:"1" maxLength:"50000"`
	}
}

func (s *Server) findSavedQuery(ctx context.Context, p *projectdb.Project, in *updateSavedQueryInput) error {
	_, err := statement.GetSaved(ctx, p, in.UUID)
	return err
}

func (s *Server) updateSavedQuery(
	ctx context.Context, p *projectdb.Project, in *updateSavedQueryInput,
) (statement.SavedQuery, error) {
	if operation.IsEmpty(in.Body) {
		return statement.SavedQuery{}, cmp.Or[error](s.findSavedQuery(ctx, p, in), fault.NothingToChange())
	}

	return statement.UpdateSaved(ctx, p, operation.Caller(ctx).User, in.UUID, statement.SavedUpdate(in.Body))
}

var deleteSavedQuery = operation.Operation{
	ID: "deleteSavedQuery", Method: "DELETE", Path: "/projects/{projectUUID}/saved-queries/{savedQueryUUID}",
	Summary: "Delete a saved query",
	Access:  operation.ProjectInPath(account.Developer), Errors: operation.RestrictedErrors,
}

type deleteSavedQueryInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	UUID    uuid.UUID `path:"savedQueryUUID" format:"uuid"`
}

func (s *Server) deleteSavedQuery(
	ctx context.Context, p *projectdb.Project, in *deleteSavedQueryInput,
) (statement.SavedQuery, error) {
	return statement.DeleteSaved(ctx, p, in.UUID)
}
