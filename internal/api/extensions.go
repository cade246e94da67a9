package api

import (
	"context"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
)

func (s *Server) registerExtensions() {
	operation.HandleInProject(s.pipeline, listExtensions, s.listExtensions, nil)
	operation.HandleInProject(s.pipeline, createExtension, s.createExtension, nil)
	operation.HandleInProject(s.pipeline, deleteExtension, s.deleteExtension, nil)
}

var listExtensions = operation.Operation{
	ID: "listExtensions", Method: "GET", Path: "/extensions", Summary: "List extensions",
	Access: operation.Project(account.Viewer), Errors: specifiedErrors,
	Notes: "Lists installed and available extensions.",
}

type listExtensionsInput struct {
	PageQuery
	Sort string `query:"sort" enum:"name" default:"name"`
}

func (s *Server) listExtensions(
	ctx context.Context, p *projectdb.Project, in *listExtensionsInput,
) (Answer[[]schema.Extension, PageMetadata], error) {
	page := in.By(in.Sort)
	extensions, total, err := schema.ListExtensions(ctx, p.Trusted(), page)
	return listOf(extensions, page, total), err
}

var createExtension = operation.Operation{
	ID: "createExtension", Method: "POST", Path: "/extensions", Summary: "Install an extension",
	Access: operation.Project(account.Developer), Errors: createErrors, Timeout: longTimeout, Grows: operation.Always,
	Notes: "Installs the extension and its requirements into the schema `extensions`, which follows `public` in " +
		"the search path: its types, functions and operators need no prefix.",
	Example: `{"name": "pg_trgm"}`,
}

type createExtensionInput struct {
	Body struct {
		Name string `json:"name" example:"pg_trgm"`
		ProjectInBody
	}
}

func (s *Server) createExtension(
	ctx context.Context, p *projectdb.Project, in *createExtensionInput,
) (schema.Extension, error) {
	return schema.CreateExtension(ctx, p.Trusted(), in.Body.Name)
}

var deleteExtension = operation.Operation{
	ID: "deleteExtension", Method: "DELETE", Path: "/extensions/{extensionName}", Summary: "Remove an extension",
	Access: operation.Project(account.Developer), Errors: ddlDeleteErrors, Timeout: longTimeout,
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
