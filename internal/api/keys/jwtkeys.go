package keys

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/appkey"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/token"
)

func (s *Server) registerJWTKeys(p *operation.Pipeline) {
	operation.HandleInProject(p, createJWTKey, s.createJWTKey, nil)
	operation.HandleInProject(p, listJWTKeys, s.listJWTKeys, nil)
	operation.HandleInProject(p, deleteJWTKey, s.deleteJWTKey, nil)
}

var createJWTKey = operation.Operation{
	ID: "createJWTKey", Method: "POST",
	Path: "/projects/{projectUUID}/jwt-keys", Summary: "Create a JWT verification key",
	Access: operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 409, 422, 500},
	Notes: "The rows API accepts ES256 or RS256 tokens that are signed by the matching private key, like tokens " +
		"signed with the project's secret. The body is a JSON Web Key without private members.",
	Example: `{"kty": "EC", "crv": "P-256", "alg": "ES256",
		"x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
		"y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}`,
}

type createJWTKeyInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Body    struct {
		Kty string  `json:"kty" enum:"EC,RSA"`
		Kid string  `json:"kid,omitempty" maxLength:"200" doc:"Key ID. Default: the key's thumbprint (RFC 7638)."`
		Alg string  `json:"alg,omitempty" enum:"ES256,RS256"`
		Use string  `json:"use,omitempty" enum:"sig"`
		Crv string  `json:"crv,omitempty" enum:"P-256"`
		X   string  `json:"x,omitempty" maxLength:"100"`
		Y   string  `json:"y,omitempty" maxLength:"100"`
		N   string  `json:"n,omitempty" maxLength:"1000"`
		E   string  `json:"e,omitempty" maxLength:"10"`
		D   *string `json:"d,omitempty" doc:"Private key. Always refused; only the signer should have it."`
	}
}

func (s *Server) createJWTKey(
	ctx context.Context, p *projectdb.Project, in *createJWTKeyInput,
) (appkey.JWTKey, error) {
	b := in.Body
	if b.D != nil {
		return appkey.JWTKey{}, fault.OnField(fault.Unprocessable, "d", "private_key",
			"is the private key, which is now compromised: create a new pair, and send only the public key")
	}

	key, err := token.NewPublicKey(token.JWK{
		Kind:      b.Kty,
		ID:        b.Kid,
		Algorithm: b.Alg,
		Use:       b.Use,
		Curve:     b.Crv,
		X:         b.X,
		Y:         b.Y,
		N:         b.N,
		E:         b.E,
	})
	if e, ok := errors.AsType[*token.JWKError](err); ok {
		return appkey.JWTKey{}, fault.OnField(fault.Unprocessable, e.Member, "invalid_key", "%s", e.Text)
	}
	if err != nil {
		return appkey.JWTKey{}, err
	}

	return appkey.CreateJWTKey(ctx, s.Platform.DB(), p.UUID, operation.Caller(ctx).User, key)
}

var listJWTKeys = operation.Operation{
	ID: "listJWTKeys", Method: "GET",
	Path: "/projects/{projectUUID}/jwt-keys", Summary: "List JWT verification keys",
	Access: operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
}

type listJWTKeysInput struct {
	operation.PageQuery
	Sort    string    `query:"sort" enum:"kid,createdAt" default:"createdAt"`
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
}

func (s *Server) listJWTKeys(
	ctx context.Context, p *projectdb.Project, in *listJWTKeysInput,
) (operation.Answer[[]appkey.JWTKey, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	keys, total, err := appkey.ListJWTKeys(ctx, s.Platform.DB(), p.UUID, page)
	return operation.ListOf(keys, page, total), err
}

var deleteJWTKey = operation.Operation{
	ID: "deleteJWTKey", Method: "DELETE",
	Path: "/projects/{projectUUID}/jwt-keys/{jwtKeyUUID}", Summary: "Delete a JWT verification key",
	Access: operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
	Notes: "Tokens signed by the key are refused within seconds.",
}

type deleteJWTKeyInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	UUID    uuid.UUID `path:"jwtKeyUUID" format:"uuid"`
}

func (s *Server) deleteJWTKey(
	ctx context.Context, p *projectdb.Project, in *deleteJWTKeyInput,
) (appkey.JWTKey, error) {
	return appkey.DeleteJWTKey(ctx, s.Platform.DB(), p.UUID, in.UUID)
}
