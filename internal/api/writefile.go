package api

import (
	"context"
	"encoding/hex"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"socle/internal/fault"
	"socle/internal/object"
	"socle/internal/platform"
	"socle/internal/tenant"
)

// rawBodyInput is implemented by inputs that embed [RawBody].
type rawBodyInput interface {
	beginRawBody(w http.ResponseWriter, r *http.Request) error
}

// RawBody is embedded in the input of an operation whose body is a raw file. The handler reads it
// while it arrives.
type RawBody struct {
	body     *pacedBody
	length   int64
	mimeType string // Content-Type that the client sent
}

var rawBodyContent = map[string]*huma.MediaType{"*/*": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}

// beginRawBody prepares the body and reads none of it.
func (s *RawBody) beginRawBody(w http.ResponseWriter, r *http.Request) error {
	if r.Header.Get("Content-Range") != "" { // a partial body, which must not replace the whole file
		return fault.OnField(fault.Invalid, "Content-Range", "not_applicable",
			"is not supported: the body must be the whole file")
	}

	claim := r.Header.Get("Content-Type")
	switch media, _, _ := mime.ParseMediaType(claim); media {
	case "multipart/form-data":
		return fault.OnField(fault.Invalid, "Content-Type", "unknown",
			"must be the type of the file: the body is the file, not a form")
	case "application/x-www-form-urlencoded": // default of curl
		claim = ""
	}

	s.body = newPacedBody(w, r, unlimited)
	s.length, s.mimeType = max(r.ContentLength, 0), claim

	return nil
}

// Read reads the file. A truncated body is an error.
func (s *RawBody) Read(b []byte) (int, error) {
	n, err := s.body.Read(b)
	if err != nil && err != io.EOF {
		err = incompleteBody(err)
	}

	return n, err
}

var writeFile = Operation{
	ID: "writeFile", Method: "PUT",
	Path: "/files/{projectUUID}/{containerUUID}/{fullFileName...}", Summary: "Write a file by name",
	Access: projectInPath(platform.Developer).orSigned(), Errors: []int{400, 401, 403, 404, 409, 412, 413, 422, 500},
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
	RawBody
}

func (s *Server) writeFile(ctx context.Context, p *tenant.Project, in *writeFileInput) (fileAnswer, error) {
	maxBytes, err := s.maxFileBytes(ctx)
	if err != nil {
		return fileAnswer{}, err
	}

	n := object.NewFile{FullFileName: in.Name, MimeType: in.mimeType, Content: in, Length: in.length, Most: maxBytes}
	if terms := urlTermsOf(ctx); terms != nil {
		return answerFile(s.uploadSigned(ctx, p, in.Container, n, terms))
	}

	f, replaced, err := object.WriteFile(ctx, p, s.blobs, caller(ctx).User, in.Container, n, in.check)
	if replaced && err == nil {
		s.cleaner.Discard(ctx, p.UUID)
	}

	return answerFile(f, err)
}

// uploadSigned creates the file that a URL was signed for.
func (s *Server) uploadSigned(
	ctx context.Context, p *tenant.Project, container uuid.UUID, n object.NewFile, terms *urlTerms,
) (object.File, error) {
	if err := object.CheckTicket(ctx, p, container, terms.Ticket); err != nil { // check before the bytes arrive
		return object.File{}, err
	}

	if n.Ticket = terms.Ticket; terms.MaxSize > 0 {
		n.Most = min(n.Most, terms.MaxSize)
	}

	return object.CreateFile(ctx, p, s.blobs, caller(ctx).User, container, n)
}

// check compares the present file with the request's conditions.
func (in *writeFileInput) check(present *object.File) error {
	since, undated := http.ParseTime(in.IfUnmodified)
	switch {
	case in.IfMatch != "" && (present == nil || !matchesETag([]string{in.IfMatch}, present.ETag(), false)):
		return fault.OnField(fault.Precondition, "If-Match", "changed", "does not match the file")
	case in.IfNoneMatch != "" && present != nil && matchesETag([]string{in.IfNoneMatch}, present.ETag(), true):
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

type fileAnswer = Answer[object.File, fileMetadata]

func answerFile(f object.File, err error) (fileAnswer, error) {
	if err != nil {
		return fileAnswer{}, err
	}
	return fileAnswer{Content: f, Metadata: fileMetadata{hex.EncodeToString(f.SHA256), f.ETag()}}, nil
}
