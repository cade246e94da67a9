package files

import (
	"context"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

var writeFile = operation.Operation{
	ID: "writeFile", Method: "PUT",
	Path: "/files/{projectUUID}/{containerUUID}/{fullFileName...}", Summary: "Write a file by name",
	Access: operation.ProjectInPath(account.Developer).OrSigned(),
	Errors: []int{400, 401, 403, 404, 409, 412, 413, 422, 500},
	Body:   operation.RawFile,
	Notes: "The body is the file. An existing file of that name is replaced atomically: concurrent readers get the " +
		"old or the new bytes. `If-None-Match: *` only creates a new file; `If-Match` with the file's ETag only " +
		"replaces those bytes.",
}

type writeFileInput struct {
	Project      uuid.UUID `path:"projectUUID" format:"uuid"`
	Container    uuid.UUID `path:"containerUUID" format:"uuid"`
	Name         string    `path:"fullFileName"`
	IfMatch      string    `header:"If-Match" doc:"ETag of the file to replace."`
	IfNoneMatch  string    `header:"If-None-Match" doc:"* requires that the file does not exist."`
	IfUnmodified string    `header:"If-Unmodified-Since" doc:"Modification time of the file to replace; ignored with If-Match."`
	operation.Upload
}

func (s *Server) writeFile(ctx context.Context, p *projectdb.Project, in *writeFileInput) (fileAnswer, error) {
	maxBytes, err := s.Platform.MaxUploadSize(ctx)
	if err != nil {
		return fileAnswer{}, err
	}

	n := object.NewFile{
		FullFileName: in.Name, MimeType: in.MimeType(), Content: in, Length: in.Length(), Most: maxBytes,
	}
	if terms := urlTermsOf(ctx); terms != nil {
		return answerFile(s.uploadSigned(ctx, p, in.Container, n, terms))
	}

	n.Upsert, n.Check = true, in.check
	f, replaced, err := object.CreateFile(ctx, p, s.Blobs, member(ctx), object.ContainerRef{UUID: in.Container}, n)
	if replaced && err == nil {
		s.Cleaner.Discard(ctx, p.UUID)
	}

	return answerFile(f, err)
}

// uploadSigned creates the file that a URL was signed for.
func (s *Server) uploadSigned(
	ctx context.Context, p *projectdb.Project, container uuid.UUID, n object.NewFile, terms *urlTerms,
) (object.File, error) {
	if err := object.CheckTicket(ctx, p, container, terms.Ticket); err != nil { // check before the bytes arrive
		return object.File{}, err
	}

	if n.Ticket = terms.Ticket; terms.MaxSize > 0 {
		n.Most = min(n.Most, terms.MaxSize)
	}

	f, _, err := object.CreateFile(ctx, p, s.Blobs, member(ctx), object.ContainerRef{UUID: container}, n)
	return f, err
}

// check compares the present file with the request's conditions.
func (in *writeFileInput) check(present *object.File) error {
	since, undated := http.ParseTime(in.IfUnmodified)
	switch {
	case in.IfMatch != "" && (present == nil || !operation.MatchesETag([]string{in.IfMatch}, present.ETag(), false)):
		return fault.OnField(fault.Precondition, "If-Match", "changed", "does not match the file")
	case in.IfNoneMatch != "" && present != nil &&
		operation.MatchesETag([]string{in.IfNoneMatch}, present.ETag(), true):
		return fault.OnField(fault.Precondition, "If-None-Match", "changed",
			"matches the existing file")
	case in.IfMatch == "" && undated == nil && present != nil && present.UpdatedAt.Truncate(time.Second).After(since):
		return fault.OnField(fault.Precondition, "If-Unmodified-Since", "changed",
			"is before the modification of the existing file")
	}

	return nil
}

// fileMetadata has the fields that the specified File lacks.
type fileMetadata struct {
	SHA256 string `json:"sha256" doc:"SHA-256 of the bytes, in hexadecimal."`
	ETag   string `json:"etag" doc:"ETag of the bytes, as in downloads."`
}

type fileAnswer = operation.Answer[object.File, fileMetadata]

func answerFile(f object.File, err error) (fileAnswer, error) {
	if err != nil {
		return fileAnswer{}, err
	}
	return fileAnswer{Content: f, Metadata: fileMetadata{hex.EncodeToString(f.SHA256), f.ETag()}}, nil
}
