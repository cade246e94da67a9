package api

import (
	"context"

	"socle/internal/platform"
	"socle/internal/schema"
	"socle/internal/tenant"
)

func (s *Server) registerFunctions() {
	within(s, createFunction, s.createFunction, nil)
	within(s, listFunctions, s.listFunctions, nil)
	within(s, getFunction, s.getFunction, nil)
	within(s, deleteFunction, s.deleteFunction, nil)
	within(s, listLanguages, s.listLanguages, nil)
}

var createFunction = Operation{
	ID: "createFunction", Method: "POST", Path: "/functions/{schema}", Summary: "Create a function",
	Access: project(platform.Developer), Errors: []int{400, 401, 403, 404, 409, 422, 500}, Timeout: longTimeout,
	Notes: "It is created as the project's owner, runs with the rights of whoever calls it, and may be executed by nobody else until that is granted. A function that is there already is replaced only if `replace` is true, and if its return type and the names of its parameters stay.",
}

type createFunctionInput struct {
	Schema string `path:"schema" maxLength:"100"`
	Body   struct {
		Name       string             `json:"name"`
		Parameters []schema.Parameter `json:"parameters,omitempty" maxItems:"100"`
		Definition string             `json:"definition" doc:"The function's body, in its language."`
		Language   string             `json:"language" maxLength:"63" doc:"One of those that the database trusts: sql, plpgsql and others, see /languages."`
		ReturnType string             `json:"return_type" doc:"A type, void, trigger, setof a type, or table(name type, …)."`
		Replace    bool               `json:"replace,omitempty" doc:"Replace a function with the same name and argument types."`
		Execute    *[]string          `json:"execute,omitempty" maxItems:"2" enum:"anon,authenticated" doc:"Who of anon and authenticated may execute it. Without this nobody may, and if a function is replaced, whoever could."`
		ProjectInBody
	}
}

func (s *Server) createFunction(
	ctx context.Context, p *tenant.Project, in *createFunctionInput,
) (schema.Function, error) {
	b := in.Body
	return schema.CreateFunction(ctx, p.Owner(), schema.NewFunction{Schema: in.Schema,
		Name: b.Name, Parameters: b.Parameters,
		Definition: b.Definition, Language: b.Language, ReturnType: b.ReturnType,
		Replace: b.Replace, Execute: b.Execute})
}

var listFunctions = Operation{
	ID: "listFunctions", Method: "GET", Path: "/functions", Summary: "List functions",
	Access: project(platform.Viewer), Errors: specifiedErrors,
	Notes: "Functions and procedures of the project, without their bodies; not those that an extension brought.",
}

type listFunctionsInput struct {
	PageQuery
	Sort   string `query:"sort" enum:"name,schema,language" default:"name"`
	Schema string `query:"schema" maxLength:"100" doc:"Only this schema's."`
}

func (s *Server) listFunctions(
	ctx context.Context, p *tenant.Project, in *listFunctionsInput,
) (Answer[[]schema.FunctionInfo, PageMetadata], error) {
	page := in.page(in.Sort)
	functions, total, err := schema.ListFunctions(ctx, p.Trusted(), in.Schema, page)
	return listOf(functions, page, total), err
}

var getFunction = Operation{
	ID: "getFunction", Method: "GET", Path: "/functions/{schema}/{functionName}", Summary: "Get a function",
	Access: project(platform.Viewer), Errors: []int{400, 401, 404, 500},
	Notes: "With its body. Of several functions of one name, `arguments` picks one by its argument types.",
}

func (s *Server) getFunction(ctx context.Context, p *tenant.Project, in *functionInput) (schema.Function, error) {
	return schema.GetFunction(ctx, p.Owner(), in.Schema, in.Function, in.Arguments)
}

var listLanguages = Operation{
	ID: "listLanguages", Method: "GET", Path: "/languages", Summary: "List the languages of functions",
	Access: project(platform.Viewer), Errors: specifiedErrors,
}

func (s *Server) listLanguages(ctx context.Context, p *tenant.Project, _ *struct{}) ([]schema.Language, error) {
	return schema.ListLanguages(ctx, p.Trusted())
}

var deleteFunction = Operation{
	ID: "deleteFunction", Method: "DELETE", Path: "/functions/{schema}/{functionName}", Summary: "Delete a function",
	Access: project(platform.Developer), Errors: specifiedErrors, Timeout: longTimeout,
	Notes: "Of several functions of one name, `arguments` picks one by its argument types. What others depend on is not deleted.",
}

type functionInput struct {
	Schema    string  `path:"schema" maxLength:"100"`
	Function  string  `path:"functionName" maxLength:"100"`
	Arguments *string `query:"arguments" maxLength:"2000" doc:"Types, separated by commas: integer,text."`
}

// functionName identifies a deleted function.
type functionName struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
}

func (s *Server) deleteFunction(ctx context.Context, p *tenant.Project, in *functionInput) (functionName, error) {
	err := schema.DeleteFunction(ctx, p.Owner(), in.Schema, in.Function, in.Arguments)
	return functionName{in.Schema, in.Function}, err
}
