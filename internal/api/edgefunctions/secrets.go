package edgefunctions

import (
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/function"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

func (s *Server) registerSecrets(p *operation.Pipeline) {
	operation.HandleInProject(p, setEdgeFunctionSecret, s.setEdgeFunctionSecret, nil)
	operation.HandleInProject(p, listEdgeFunctionSecrets, s.listEdgeFunctionSecrets, nil)
	operation.HandleInProject(p, deleteEdgeFunctionSecret, s.deleteEdgeFunctionSecret, nil)
}

var setEdgeFunctionSecret = operation.Operation{
	ID: "setEdgeFunctionSecret", Method: "PUT",
	Path: "/projects/{projectUUID}/edge-function-secrets/{secretName}", Summary: "Set a secret of edge functions",
	Access: operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 422, 500},
	Notes: "All functions of the project have it in their environment, from their next process on. No operation " +
		"returns it.",
	Example: `{"value": "sk_live_…"}`,
}

type setEdgeFunctionSecretInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Name    string    `path:"secretName" maxLength:"255" doc:"Letters, digits and underscores. Names that begin with SUPABASE_ are the platform's."`
	Body    struct {
		Value string `json:"value" maxLength:"49152" doc:"Up to 48 KiB."`
	}
}

func (s *Server) setEdgeFunctionSecret(
	ctx context.Context, p *projectdb.Project, in *setEdgeFunctionSecretInput,
) (function.EdgeFunctionSecret, error) {
	return s.Functions.SetSecret(ctx, p, in.Name, in.Body.Value)
}

var listEdgeFunctionSecrets = operation.Operation{
	ID: "listEdgeFunctionSecrets", Method: "GET",
	Path: "/projects/{projectUUID}/edge-function-secrets", Summary: "List the secrets of edge functions",
	Access: operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 500},
	Notes: "The list has names, not the values.",
}

type listEdgeFunctionSecretsInput struct {
	operation.PageQuery
	Sort    string    `query:"sort" enum:"name,updatedAt" default:"name"`
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
}

func (s *Server) listEdgeFunctionSecrets(
	ctx context.Context, p *projectdb.Project, in *listEdgeFunctionSecretsInput,
) (operation.Answer[[]function.EdgeFunctionSecret, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	secrets, total, err := function.Secrets(ctx, p, page)
	return operation.ListOf(secrets, page, total), err
}

var deleteEdgeFunctionSecret = operation.Operation{
	ID: "deleteEdgeFunctionSecret", Method: "DELETE",
	Path: "/projects/{projectUUID}/edge-function-secrets/{secretName}", Summary: "Delete a secret of edge functions",
	Access: operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 500},
}

type deleteEdgeFunctionSecretInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Name    string    `path:"secretName" maxLength:"255"`
}

func (s *Server) deleteEdgeFunctionSecret(
	ctx context.Context, p *projectdb.Project, in *deleteEdgeFunctionSecretInput,
) (function.EdgeFunctionSecret, error) {
	return s.Functions.DeleteSecret(ctx, p, in.Name)
}
