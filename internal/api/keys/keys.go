package keys

import (
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/appkey"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

func (s *Server) registerKeys(p *operation.Pipeline) {
	operation.HandleInProject(p, createKey, s.createKey, nil)
	operation.HandleInProject(p, listKeys, s.listKeys, nil)
	operation.HandleInProject(p, deleteKey, s.deleteKey, nil)
	operation.HandleInProject(p, getJWTSecret, s.getJWTSecret, nil)
}

// keyMetadata has a new key, which is shown once.
type keyMetadata struct {
	Key string `json:"key" doc:"The key. It is shown only in this response."`
}

var createKey = operation.Operation{
	ID: "createKey", Method: "POST", Path: "/projects/{projectUUID}/keys", Summary: "Create an API key",
	Access: operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 409, 422, 500},
	Notes: "A publishable key acts as `anon`: its access is limited by policies and grants for the public. A " +
		"secret key acts as `service_role` and must stay on servers.",
	Example: `{"name": "my server", "kind": "secret"}`,
}

type createKeyInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Body    struct {
		Name string `json:"name" minLength:"1" maxLength:"100"`
		Kind string `json:"kind" enum:"publishable,secret"`
	}
}

func (s *Server) createKey(
	ctx context.Context, p *projectdb.Project, in *createKeyInput,
) (operation.Answer[appkey.ProjectKey, keyMetadata], error) {
	record, key, err := appkey.CreateProjectKey(ctx, s.Platform.DB(), p.UUID, operation.Caller(ctx).User, in.Body.Name,
		in.Body.Kind)
	return operation.Secret(record, keyMetadata{key}), err
}

var listKeys = operation.Operation{
	ID: "listKeys", Method: "GET", Path: "/projects/{projectUUID}/keys", Summary: "List a project's API keys",
	Access: operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
}

type listKeysInput struct {
	operation.PageQuery
	Sort    string    `query:"sort" enum:"name,kind,createdAt" default:"createdAt"`
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
}

func (s *Server) listKeys(
	ctx context.Context, p *projectdb.Project, in *listKeysInput,
) (operation.Answer[[]appkey.ProjectKey, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	keys, total, err := appkey.ListProjectKeys(ctx, s.Platform.DB(), p.UUID, page)
	return operation.ListOf(keys, page, total), err
}

var deleteKey = operation.Operation{
	ID: "deleteKey", Method: "DELETE", Path: "/projects/{projectUUID}/keys/{keyUUID}", Summary: "Revoke an API key",
	Access: operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
	Notes: "The key is refused within seconds.",
}

type deleteKeyInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	UUID    uuid.UUID `path:"keyUUID" format:"uuid"`
}

func (s *Server) deleteKey(ctx context.Context, p *projectdb.Project, in *deleteKeyInput) (appkey.ProjectKey, error) {
	return appkey.DeleteProjectKey(ctx, s.Platform.DB(), p.UUID, in.UUID)
}

var getJWTSecret = operation.Operation{
	ID: "getJWTSecret", Method: "GET",
	Path: "/projects/{projectUUID}/jwt-secret", Summary: "Get a project's JWT secret",
	Access: operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
	Notes: "Your own server can sign tokens (HS256) with the secret, to identify your users to the rows API: " +
		"`role` is `anon`, `authenticated` or `service_role`, and policies can read all claims.",
}

// jwtSecret is the key that signs a project's tokens.
type jwtSecret struct {
	Secret    string `json:"secret" doc:"The secret. The bytes of its characters are the key."`
	Algorithm string `json:"algorithm" enum:"HS256"`
}

func (s *Server) getJWTSecret(
	_ context.Context, p *projectdb.Project, _ *operation.ProjectInput,
) (operation.Answer[jwtSecret, struct{}], error) {
	return operation.Secret(jwtSecret{s.Projects.JWTSecret(p.UUID), "HS256"}, struct{}{}), nil
}
