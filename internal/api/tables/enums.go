package tables

import (
	"context"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
)

func (s *Server) registerEnums(p *operation.Pipeline) {
	operation.HandleInProject(p, listEnums, s.listEnums, nil)
	operation.HandleInProject(p, createEnum, s.createEnum, nil)
	operation.HandleInProject(p, createEnumValue, s.createEnumValue, existingEnum[createEnumValueInput])
	operation.HandleInProject(p, renameEnumValue, s.renameEnumValue, existingEnum[renameEnumValueInput])
	operation.HandleInProject(p, deleteEnum, s.deleteEnum, nil)
}

var listEnums = operation.Operation{
	ID: "listEnums", Method: "GET", Path: "/enums", Summary: "List enums",
	Access: operation.Project(account.Viewer), Errors: operation.SpecifiedErrors,
}

type listEnumsInput struct {
	operation.PageQuery
	Sort string `query:"sort" enum:"name,schema,id" default:"name"`
}

func (s *Server) listEnums(
	ctx context.Context, p *projectdb.Project, in *listEnumsInput,
) (operation.Answer[[]schema.Enum, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	enums, total, err := schema.ListEnums(ctx, p.Trusted(), page)
	return operation.ListOf(enums, page, total), err
}

var createEnum = operation.Operation{
	ID: "createEnum", Method: "POST", Path: "/enums", Summary: "Create an enum",
	Access: operation.Project(account.Developer), Errors: operation.CreateErrors, Timeout: operation.LongTimeout,
	Example: `{"name": "status", "values": ["draft", "published"]}`,
}

type createEnumInput struct {
	Body struct {
		Name   string   `json:"name"`
		Schema string   `json:"schema,omitempty" doc:"Default: public."`
		Values []string `json:"values" minItems:"1" maxItems:"1000" doc:"Values in their order, each 1 to 63 bytes."`
		operation.ProjectInBody
	}
}

func (s *Server) createEnum(ctx context.Context, p *projectdb.Project, in *createEnumInput) (schema.Enum, error) {
	return schema.CreateEnum(ctx, p.Owner(), in.Body.Schema, in.Body.Name, in.Body.Values)
}

type enumInput struct {
	Enum string `path:"enumName" maxLength:"200" doc:"schema.enum, or enum for public.enum."`
}

func (in *enumInput) enum() string { return in.Enum }

// existingEnum fails if the enum in the path does not exist.
func existingEnum[I any, P interface {
	*I
	enum() string
}](ctx context.Context, p *projectdb.Project, in P) error {
	_, err := schema.GetEnum(ctx, p.Trusted(), in.enum())
	return err
}

var createEnumValue = operation.Operation{
	ID: "createEnumValue", Method: "POST", Path: "/enums/{enumName}/values", Summary: "Add an enum value",
	Access: operation.Project(account.Developer), Errors: operation.DDLErrors, Timeout: operation.LongTimeout,
	Notes:   "Appends the value, or inserts it before or after another one. Values cannot be removed, only renamed.",
	Example: `{"value": "reviewed", "after": "draft"}`,
}

type createEnumValueInput struct {
	enumInput
	Body struct {
		Value  string `json:"value" doc:"1 to 63 bytes."`
		Before string `json:"before,omitempty"`
		After  string `json:"after,omitempty"`
		operation.ProjectInBody
	}
}

func (s *Server) createEnumValue(
	ctx context.Context, p *projectdb.Project, in *createEnumValueInput,
) (schema.Enum, error) {
	return schema.CreateEnumValue(ctx, p.Owner(), in.Enum, in.Body.Value, in.Body.Before, in.Body.After)
}

var renameEnumValue = operation.Operation{
	ID: "renameEnumValue", Method: "PUT",
	Path: "/enums/{enumName}/values/{enumValue}", Summary: "Rename an enum value",
	Access: operation.Project(account.Developer), Errors: operation.DDLErrors, Timeout: operation.LongTimeout,
	Notes:   "Existing rows show the new name. `metadata.mentions` has the functions whose text has the former one.",
	Example: `{"value": "in_review"}`,
}

type renameEnumValueInput struct {
	enumInput
	Value string `path:"enumValue" maxLength:"200"`
	Body  struct {
		Value string `json:"value" doc:"1 to 63 bytes."`
		operation.ProjectInBody
	}
}

func (s *Server) renameEnumValue(
	ctx context.Context, p *projectdb.Project, in *renameEnumValueInput,
) (operation.Answer[schema.Enum, schema.MentionsMetadata], error) {
	e, err := schema.RenameEnumValue(ctx, p.Owner(), in.Enum, in.Value, in.Body.Value)
	if err != nil {
		return operation.Answer[schema.Enum, schema.MentionsMetadata]{}, err
	}

	mentions, err := schema.Mentions(ctx, p.Trusted(), in.Value)
	return operation.WithMetadata(e, schema.MentionsMetadata{Mentions: mentions}), err
}

var deleteEnum = operation.Operation{
	ID: "deleteEnum", Method: "DELETE", Path: "/enums/{enumName}", Summary: "Delete an enum",
	Access: operation.Project(account.Developer), Errors: operation.DDLDeleteErrors, Timeout: operation.LongTimeout,
	Notes: "An enum that columns or functions use is not deleted; `metadata.dependents` lists them.",
}

func (s *Server) deleteEnum(
	ctx context.Context, p *projectdb.Project, in *enumInput,
) (operation.Answer[schema.Enum, schema.MentionsMetadata], error) {
	mentions, err := schema.EnumMentions(ctx, p.Trusted(), in.Enum)
	if err != nil {
		return operation.Answer[schema.Enum, schema.MentionsMetadata]{}, err
	}

	e, err := schema.DeleteEnum(ctx, p.Owner(), in.Enum)
	return operation.WithMetadata(e, schema.MentionsMetadata{Mentions: mentions}), err
}
