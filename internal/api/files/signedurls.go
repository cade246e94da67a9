package files

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

func (s *Server) registerSignedURLs(p *operation.Pipeline) {
	operation.HandleInProject(p, createSignedURL, s.createSignedURL, s.findSignedFile)
	operation.HandleInProject(p, createSignedUpload, s.createSignedUpload, s.findSignedContainer)
}

// SignedURL is a URL that needs no token.
type SignedURL struct {
	URL       string    `json:"url"`
	Method    string    `json:"method" enum:"GET,PUT"`
	ExpiresAt time.Time `json:"expiresAt"`
}

type signedAnswer = operation.Answer[SignedURL, struct{}]

// signedResponse responds with a signed URL. The URL alone grants access, so the response must not
// be cached.
func (s *Server) signedResponse(method, path string, terms urlTerms) signedAnswer {
	return operation.Secret(SignedURL{
		URL: s.sign(method, path, terms), Method: method, ExpiresAt: time.Unix(terms.Expires, 0),
	}, struct{}{})
}

func expiry(seconds int) time.Time {
	return time.Now().Add(time.Duration(seconds) * time.Second).Truncate(time.Second)
}

var createSignedURL = operation.Operation{
	ID: "createSignedURL", Method: "POST",
	Path: "/containers/{containerUUID}/files/{fileUUID}/signed-url", Summary: "Create a signed download URL",
	Access: operation.Project(account.Viewer), Errors: []int{400, 401, 404, 422, 500},
	Notes: "The URL permits reading this file without a token until it expires or the file is deleted, as long as " +
		"its signer may read the file. It stays valid when the file is overwritten or renamed, but not when it is " +
		"moved to another container.",
	Example: `{"expires_in": 3600}`,
}

type createSignedURLInput struct {
	Container uuid.UUID `path:"containerUUID" format:"uuid"`
	File      uuid.UUID `path:"fileUUID" format:"uuid"`
	Body      struct {
		ExpiresIn int            `json:"expires_in,omitempty" minimum:"1" maximum:"604800" doc:"Lifetime in seconds. Default: 3600."`
		Picture   *SignedPicture `json:"picture,omitempty" doc:"Restricts the URL to this variant of the picture; the file itself is not accessible."`
		operation.ProjectInBody
	}
}

func (s *Server) findSignedFile(ctx context.Context, p *projectdb.Project, in *createSignedURLInput) error {
	_, err := object.GetFile(ctx, p, member(ctx), object.FileRef{Container: in.Container, UUID: in.File})
	return err
}

const defaultExpiresIn = 3600 // seconds

func (s *Server) createSignedURL(
	ctx context.Context, p *projectdb.Project, in *createSignedURLInput,
) (signedAnswer, error) {
	if in.Body.ExpiresIn == 0 {
		in.Body.ExpiresIn = defaultExpiresIn
	}

	f, err := object.SignDownload(ctx, p, in.Container, in.File, in.Body.Picture.check)
	return s.signedResponse(http.MethodGet, filePath(p, in.Container, f.FullFileName),
		urlTerms{
			Expires: expiry(in.Body.ExpiresIn).Unix(),
			User:    operation.Caller(ctx).User,
			File:    f.UUID,
			Picture: in.Body.Picture,
		}), err
}

var createSignedUpload = operation.Operation{
	ID: "createSignedUpload", Method: "POST",
	Path: "/containers/{containerUUID}/signed-uploads", Summary: "Create a signed upload URL",
	Access: operation.Project(account.Developer), Errors: []int{400, 401, 403, 404, 422, 500},
	Notes: "The URL permits creating one file with this name without a token: `PUT` with the bytes as the body, " +
		"from pages of any origin. It fails if the name is taken by then. A failed upload can be retried.",
	Example: `{"full_file_name": "2026/emma.jpg", "max_size": 1048576}`,
}

type createSignedUploadInput struct {
	Container uuid.UUID `path:"containerUUID" format:"uuid"`
	Body      struct {
		FullFileName string `json:"full_file_name" doc:"Full name, including folders."`
		ExpiresIn    int    `json:"expires_in,omitempty" minimum:"1" maximum:"604800" doc:"Lifetime in seconds. Default: 3600."`
		MaxSize      int64  `json:"max_size,omitempty" minimum:"1" doc:"Maximum size in bytes; the container's limit applies too."`
		operation.ProjectInBody
	}
}

func (s *Server) findSignedContainer(ctx context.Context, p *projectdb.Project, in *createSignedUploadInput) error {
	_, err := object.GetContainer(ctx, p, member(ctx), object.ContainerRef{UUID: in.Container})
	return err
}

func (s *Server) createSignedUpload(
	ctx context.Context, p *projectdb.Project, in *createSignedUploadInput,
) (signedAnswer, error) {
	b := in.Body
	if b.ExpiresIn == 0 {
		b.ExpiresIn = defaultExpiresIn
	}

	until := expiry(b.ExpiresIn)
	ticket, err := object.SignUpload(ctx, p, in.Container, b.FullFileName, until)
	return s.signedResponse(http.MethodPut, filePath(p, in.Container, b.FullFileName),
		urlTerms{Expires: until.Unix(), User: operation.Caller(ctx).User, Ticket: ticket, MaxSize: b.MaxSize}), err
}
