package api

import (
	"context"

	"socle/internal/platform"
	"socle/internal/schema"
	"socle/internal/tenant"
)

func (s *Server) registerFunctions() {
	within(s, createFunction, s.createFunction, nil)
	within(s, deleteFunction, s.deleteFunction, nil)
}

var createFunction = Operation{
	ID: "createFunction", Method: "POST", Path: "/functions/{schema}", Summary: "Create a function",
	Access: project(platform.Developer), Errors: []int{400, 401, 403, 404, 409, 422, 500}, Timeout: lasting,
	Notes: "It is created as the project's owner, runs with the rights of whoever calls it, and may be executed by nobody else until that is granted. A function that is there already is never replaced.",
}

type createFunctionInput struct {
	Schema string `path:"schema" maxLength:"100"`
	Body   struct {
		Name       string             `json:"name"`
		Parameters []schema.Parameter `json:"parameters,omitempty" maxItems:"100"`
		Definition string             `json:"definition" doc:"The function's body, in its language."`
		Language   string             `json:"language" enum:"sql,plpgsql"`
		ReturnType string             `json:"return_type" doc:"A type, void, trigger, setof a type, or table(name type, …)."`
		ProjectInBody
	}
}

func (s *Server) createFunction(ctx context.Context, p *tenant.Project, in *createFunctionInput) (schema.Function, error) {
	b := in.Body
	return schema.CreateFunction(ctx, p.Owner(), schema.NewFunction{Schema: in.Schema, Name: b.Name, Parameters: b.Parameters,
		Definition: b.Definition, Language: b.Language, ReturnType: b.ReturnType})
}

var deleteFunction = Operation{
	ID: "deleteFunction", Method: "DELETE", Path: "/functions/{schema}/{functionName}", Summary: "Delete a function",
	Access: project(platform.Developer), Errors: specified, Timeout: lasting,
	Notes: "Of several functions of one name, `arguments` picks one by its argument types. What others depend on is not deleted.",
}

type deleteFunctionInput struct {
	Schema    string  `path:"schema" maxLength:"100"`
	Function  string  `path:"functionName" maxLength:"100"`
	Arguments *string `query:"arguments" maxLength:"2000" doc:"Types, separated by commas: integer,text."`
}

// functionName is what is left of a deleted function.
type functionName struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
}

func (s *Server) deleteFunction(ctx context.Context, p *tenant.Project, in *deleteFunctionInput) (functionName, error) {
	err := schema.DeleteFunction(ctx, p.Owner(), in.Schema, in.Function, in.Arguments)
	return functionName{in.Schema, in.Function}, err
}
