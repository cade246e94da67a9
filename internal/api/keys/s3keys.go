package keys

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/appkey"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

func (s *Server) registerS3Keys(p *operation.Pipeline) {
	operation.HandleInProject(p, createS3Key, s.createS3Key, nil)
	operation.HandleInProject(p, listS3Keys, s.listS3Keys, nil)
	operation.HandleInProject(p, deleteS3Key, s.deleteS3Key, nil)
}

// s3KeyMetadata has a new key's secret, which is shown once.
type s3KeyMetadata struct {
	SecretAccessKey string `json:"secretAccessKey" doc:"The secret key. It is shown only in this response."`
}

var createS3Key = operation.Operation{
	ID: "createS3Key", Method: "POST", Path: "/projects/{projectUUID}/s3-keys", Summary: "Create an S3 key",
	Access: operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 409, 422, 500},
	Notes: "Programs that speak the S3 protocol reach the project's files with it, at " +
		"`/projects/{projectUUID}/storage/v1/s3`. No policy restricts it: it must stay on servers.",
	Example: `{"name": "rclone"}`,
}

type createS3KeyInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Body    struct {
		Name string `json:"name" minLength:"1" maxLength:"100"`
	}
}

func (s *Server) createS3Key(
	ctx context.Context, p *projectdb.Project, in *createS3KeyInput,
) (operation.Answer[appkey.S3Key, s3KeyMetadata], error) {
	key, err := appkey.CreateS3Key(ctx, s.Platform.DB(), p.UUID, operation.Caller(ctx).User, in.Body.Name)
	return operation.Answer[appkey.S3Key, s3KeyMetadata]{Content: key,
		Metadata: s3KeyMetadata{s.Projects.S3Secret(p.UUID, key.UUID)},
		Header:   http.Header{"Cache-Control": {"no-store"}}}, err
}

var listS3Keys = operation.Operation{
	ID: "listS3Keys", Method: "GET", Path: "/projects/{projectUUID}/s3-keys", Summary: "List a project's S3 keys",
	Access: operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
}

type listS3KeysInput struct {
	operation.PageQuery
	Sort    string    `query:"sort" enum:"name,createdAt" default:"createdAt"`
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
}

func (s *Server) listS3Keys(
	ctx context.Context, p *projectdb.Project, in *listS3KeysInput,
) (operation.Answer[[]appkey.S3Key, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	keys, total, err := appkey.ListS3Keys(ctx, s.Platform.DB(), p.UUID, page)
	return operation.ListOf(keys, page, total), err
}

var deleteS3Key = operation.Operation{
	ID: "deleteS3Key", Method: "DELETE", Path: "/projects/{projectUUID}/s3-keys/{keyUUID}",
	Summary: "Revoke an S3 key", Access: operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
	Notes: "The key is refused within seconds.",
}

func (s *Server) deleteS3Key(ctx context.Context, p *projectdb.Project, in *deleteKeyInput) (appkey.S3Key, error) {
	return appkey.DeleteS3Key(ctx, s.Platform.DB(), p.UUID, in.UUID)
}
