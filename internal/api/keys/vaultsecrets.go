package keys

import (
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/vault"
)

func (s *Server) registerVaultSecrets(p *operation.Pipeline) {
	operation.HandleInProject(p, createVaultSecret, s.createVaultSecret, nil)
	operation.HandleInProject(p, listVaultSecrets, s.listVaultSecrets, nil)
	operation.HandleInProject(p, updateVaultSecret, s.updateVaultSecret, s.findVaultSecret)
	operation.HandleInProject(p, deleteVaultSecret, s.deleteVaultSecret, nil)
}

var createVaultSecret = operation.Operation{
	ID: "createVaultSecret", Method: "POST",
	Path: "/projects/{projectUUID}/vault-secrets", Summary: "Create a secret in the vault",
	Access: operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 409, 422, 500},
	Notes: "SQL of the project's owner reads the secret in `vault.decrypted_secrets`, for example in a function that is " +
		"`security definer`. No operation returns it.",
	Example: `{"name": "stripe_key", "secret": "sk_live_…", "description": "for payments"}`,
}

type createVaultSecretInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Body    struct {
		Name        string `json:"name" minLength:"1" maxLength:"255" doc:"Unique in the vault."`
		Secret      string `json:"secret" minLength:"1" maxLength:"65536" doc:"The secret, up to 64 KiB."`
		Description string `json:"description,omitempty" maxLength:"4096"`
	}
}

func (s *Server) createVaultSecret(
	ctx context.Context, p *projectdb.Project, in *createVaultSecretInput,
) (vault.Secret, error) {
	return vault.CreateSecret(ctx, p, vault.NewSecret(in.Body))
}

var listVaultSecrets = operation.Operation{
	ID: "listVaultSecrets", Method: "GET",
	Path: "/projects/{projectUUID}/vault-secrets", Summary: "List the secrets in the vault",
	Access: operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 409, 500},
	Notes: "The list has names, not the secrets.",
}

type listVaultSecretsInput struct {
	operation.PageQuery
	Sort    string    `query:"sort" enum:"name,createdAt,updatedAt" default:"createdAt"`
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
}

func (s *Server) listVaultSecrets(
	ctx context.Context, p *projectdb.Project, in *listVaultSecretsInput,
) (operation.Answer[[]vault.Secret, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	secrets, total, err := vault.ListSecrets(ctx, p, page)
	return operation.ListOf(secrets, page, total), err
}

var updateVaultSecret = operation.Operation{
	ID: "updateVaultSecret", Method: "PUT",
	Path: "/projects/{projectUUID}/vault-secrets/{vaultSecretUUID}", Summary: "Update a secret in the vault",
	Access: operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 409, 422, 500},
	Notes:   "Omitted members stay unchanged.",
	Example: `{"secret": "sk_live_…"}`,
}

type updateVaultSecretInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	UUID    uuid.UUID `path:"vaultSecretUUID" format:"uuid"`
	Body    struct {
		Name        *string `json:"name,omitempty" minLength:"1" maxLength:"255" doc:"Unique in the vault."`
		Secret      *string `json:"secret,omitempty" minLength:"1" maxLength:"65536" doc:"The secret, up to 64 KiB."`
		Description *string `json:"description,omitempty" maxLength:"4096"`
	}
}

func (s *Server) findVaultSecret(ctx context.Context, p *projectdb.Project, in *updateVaultSecretInput) error {
	return vault.FindSecret(ctx, p, in.UUID)
}

func (s *Server) updateVaultSecret(
	ctx context.Context, p *projectdb.Project, in *updateVaultSecretInput,
) (vault.Secret, error) {
	return vault.UpdateSecret(ctx, p, in.UUID, vault.SecretUpdate(in.Body))
}

var deleteVaultSecret = operation.Operation{
	ID: "deleteVaultSecret", Method: "DELETE",
	Path: "/projects/{projectUUID}/vault-secrets/{vaultSecretUUID}", Summary: "Delete a secret from the vault",
	Access: operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 409, 500},
}

type deleteVaultSecretInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	UUID    uuid.UUID `path:"vaultSecretUUID" format:"uuid"`
}

func (s *Server) deleteVaultSecret(
	ctx context.Context, p *projectdb.Project, in *deleteVaultSecretInput,
) (vault.Secret, error) {
	return vault.DeleteSecret(ctx, p, in.UUID)
}
