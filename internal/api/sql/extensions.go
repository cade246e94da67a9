package sql

import (
	"context"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
)

func (s *Server) registerExtensions(p *operation.Pipeline) {
	operation.HandleInProject(p, listExtensions, s.listExtensions, nil)
	operation.HandleInProject(p, createExtension, s.createExtension, nil)
	operation.HandleInProject(p, deleteExtension, s.deleteExtension, nil)
}

var listExtensions = operation.Operation{
	ID: "listExtensions", Method: "GET", Path: "/extensions", Summary: "List extensions",
	Access: operation.Project(account.Viewer), Errors: operation.SpecifiedErrors,
	Notes: "Lists installed and available extensions.",
}

type listExtensionsInput struct {
	operation.PageQuery
	Sort string `query:"sort" enum:"name" default:"name"`
}

func (s *Server) listExtensions(
	ctx context.Context, p *projectdb.Project, in *listExtensionsInput,
) (operation.Answer[[]schema.Extension, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	extensions, total, err := schema.ListExtensions(ctx, p.Trusted(), page)
	return operation.ListOf(extensions, page, total), err
}

var createExtension = operation.Operation{
	ID: "createExtension", Method: "POST", Path: "/extensions", Summary: "Install an extension",
	Access: operation.Project(account.Developer), Errors: operation.CreateErrors,
	Timeout: operation.LongTimeout, Grows: operation.Always,
	Notes: "Installs the extension and its requirements into the schema `extensions`, which follows `public` in " +
		"the search path: its types, functions and operators need no prefix.",
	Example: `{"name": "pg_trgm"}`,
}

type createExtensionInput struct {
	Body struct {
		Name string `json:"name" example:"pg_trgm"`
		operation.ProjectInBody
	}
}

func (s *Server) createExtension(
	ctx context.Context, p *projectdb.Project, in *createExtensionInput,
) (schema.Extension, error) {
	return schema.CreateExtension(ctx, p.Trusted(), in.Body.Name)
}

var deleteExtension = operation.Operation{
	ID: "deleteExtension", Method: "DELETE", Path: "/extensions/{extensionName}", Summary: "Remove an extension",
	Access: operation.Project(account.Developer), Errors: operation.DDLDeleteErrors, Timeout: operation.LongTimeout,
	Notes: "An extension that columns, indexes or functions use is not removed; `metadata.dependents` lists them.",
}

type extensionInput struct {
	Name string `path:"extensionName" maxLength:"63"`
}

func (s *Server) deleteExtension(
	ctx context.Context, p *projectdb.Project, in *extensionInput,
) (schema.Extension, error) {
	return schema.DeleteExtension(ctx, p.Trusted(), in.Name)
}
