package sql

import (
	"context"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/schema"
)

func (s *Server) registerFunctions(p *operation.Pipeline) {
	operation.HandleInProject(p, createFunction, s.createFunction, nil)
	operation.HandleInProject(p, listFunctions, s.listFunctions, nil)
	operation.HandleInProject(p, getFunction, s.getFunction, nil)
	operation.HandleInProject(p, deleteFunction, s.deleteFunction, nil)
	operation.HandleInProject(p, listLanguages, s.listLanguages, nil)
}

var createFunction = operation.Operation{
	ID: "createFunction", Method: "POST", Path: "/functions/{schema}", Summary: "Create a function",
	Access: operation.Project(account.Developer), Errors: []int{400, 401, 403, 404, 409, 422, 500},
	Timeout: operation.LongTimeout,
	Notes: "Creates the function as the project's owner. It runs with the rights of its caller, and besides its " +
		"owner only roles granted `execute` may call it. An existing function is replaced only if `replace` is " +
		"true and its return type and parameter names stay the same.",
	Example: `{"name": "with_tax", "parameters": [{"name": "net", "type": "numeric"}],
		"return_type": "numeric", "language": "sql", "definition": "select net * 1.19"}`,
}

type createFunctionInput struct {
	Schema string `path:"schema" maxLength:"100"`
	Body   struct {
		Name       string             `json:"name"`
		Parameters []schema.Parameter `json:"parameters,omitempty" maxItems:"100"`
		Definition string             `json:"definition" doc:"Body of the function."`
		Language   string             `json:"language" maxLength:"63" doc:"A trusted language of the database, such as sql or plpgsql; see /languages."`
		ReturnType string             `json:"return_type" doc:"A type, void, trigger, setof a type, or table(name type, …)."`
		Replace    bool               `json:"replace,omitempty" doc:"Replace a function with the same name and argument types."`
		Execute    *[]string          `json:"execute,omitempty" maxItems:"2" enum:"anon,authenticated" doc:"Roles that may execute the function. Default: none, or unchanged if the function is replaced."`
		operation.ProjectInBody
	}
}

func (s *Server) createFunction(
	ctx context.Context, p *projectdb.Project, in *createFunctionInput,
) (schema.Function, error) {
	b := in.Body
	return schema.CreateFunction(ctx, p.Owner(), schema.NewFunction{Schema: in.Schema,
		Name: b.Name, Parameters: b.Parameters,
		Definition: b.Definition, Language: b.Language, ReturnType: b.ReturnType,
		Replace: b.Replace, Execute: b.Execute})
}

var listFunctions = operation.Operation{
	ID: "listFunctions", Method: "GET", Path: "/functions", Summary: "List functions",
	Access: operation.Project(account.Viewer), Errors: operation.SpecifiedErrors,
	Notes: "Lists functions and procedures of the project without their bodies, excluding those of extensions.",
}

type listFunctionsInput struct {
	operation.PageQuery
	Sort   string `query:"sort" enum:"name,schema,language" default:"name"`
	Schema string `query:"schema" maxLength:"100" doc:"List functions of this schema only."`
}

func (s *Server) listFunctions(
	ctx context.Context, p *projectdb.Project, in *listFunctionsInput,
) (operation.Answer[[]schema.FunctionInfo, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	functions, total, err := schema.ListFunctions(ctx, p.Trusted(), in.Schema, page)
	return operation.ListOf(functions, page, total), err
}

var getFunction = operation.Operation{
	ID: "getFunction", Method: "GET", Path: "/functions/{schema}/{functionName}", Summary: "Get a function",
	Access: operation.Project(account.Viewer), Errors: []int{400, 401, 404, 500},
	Notes: "Includes the body. `arguments` selects among functions with the same name by their argument types.",
}

func (s *Server) getFunction(ctx context.Context, p *projectdb.Project, in *functionInput) (schema.Function, error) {
	return schema.GetFunction(ctx, p.Owner(), in.Schema, in.Function, in.Arguments)
}

var listLanguages = operation.Operation{
	ID: "listLanguages", Method: "GET", Path: "/languages", Summary: "List function languages",
	Access: operation.Project(account.Viewer), Errors: operation.SpecifiedErrors,
}

func (s *Server) listLanguages(ctx context.Context, p *projectdb.Project, _ *struct{}) ([]schema.Language, error) {
	return schema.ListLanguages(ctx, p.Trusted())
}

var deleteFunction = operation.Operation{
	ID: "deleteFunction", Method: "DELETE", Path: "/functions/{schema}/{functionName}", Summary: "Delete a function",
	Access: operation.Project(account.Developer), Specified: true, Errors: operation.SpecifiedErrors,
	Timeout: operation.LongTimeout,
	Notes: "`arguments` selects among functions with the same name by their argument types. A function with " +
		"dependents is not deleted; `metadata.dependents` lists them. `metadata.mentions` has the functions whose " +
		"text has the name.",
}

type functionInput struct {
	Schema    string  `path:"schema" maxLength:"100"`
	Function  string  `path:"functionName" maxLength:"100"`
	Arguments *string `query:"arguments" maxLength:"2000" doc:"Comma-separated argument types, such as integer,text."`
}

// functionName identifies a deleted function.
type functionName struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
}

func (s *Server) deleteFunction(
	ctx context.Context, p *projectdb.Project, in *functionInput,
) (operation.Answer[functionName, schema.MentionsMetadata], error) {
	if err := schema.DeleteFunction(ctx, p.Owner(), in.Schema, in.Function, in.Arguments); err != nil {
		return operation.Answer[functionName, schema.MentionsMetadata]{}, err
	}

	mentions, err := schema.Mentions(ctx, p.Trusted(), in.Function)
	name := functionName{in.Schema, in.Function}
	return operation.WithMetadata(name, schema.MentionsMetadata{Mentions: mentions}), err
}
