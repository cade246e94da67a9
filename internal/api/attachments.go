package api

import (
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"socle/internal/fault"
	"socle/internal/form"
	"socle/internal/object"
	"socle/internal/tenant"
)

const maxFiles = 20 // per response

// AttachedFiles is embedded in the input of an operation that accepts files as multipart/form-data.
// The first part, answers, has the same JSON as answers in the JSON body; each following part is a
// file.
type AttachedFiles struct {
	parts  *multipart.Reader // nil: the body is JSON
	body   *pacedBody
	digest bodyDigest
}

var attachedSchema = &huma.Schema{Type: huma.TypeObject, Required: []string{"answers"},
	Properties: map[string]*huma.Schema{
		"answers": {Type: huma.TypeObject, AdditionalProperties: true, Description: "The first part: answers as JSON."},
	},
	AdditionalProperties: &huma.Schema{
		Type:        huma.TypeString,
		Format:      "binary",
		Description: "A file. The name of the part is the UUID of its field.",
	}}

// attach reads the answers but none of the files.
func (a *AttachedFiles) attach(
	ctx context.Context, rt *route, w http.ResponseWriter, r *http.Request,
) (body any, release func(), err error) {
	a.body = newPacedBody(w, r, maxBody+maxFormOverhead)

	if a.parts, err = r.MultipartReader(); err != nil {
		return nil, noRelease, fault.OnField(fault.Invalid, "Content-Type", "invalid_format",
			"must be multipart/form-data with a boundary").WithCause(err)
	}

	part, err := a.parts.NextRawPart()
	if err != nil {
		return nil, noRelease, malformedMultipart(err)
	}

	if part.FormName() != "answers" {
		return nil, noRelease, fault.OnField(fault.Invalid, "answers", "out_of_order", "must be the first part")
	}

	text, release, err := rt.readText(ctx, io.LimitReader(part, maxBody+1), -1, maxBody)
	if fault.Is(err, fault.Invalid) {
		return nil, release, malformedMultipart(err)
	}
	if err != nil {
		return nil, release, err
	}

	v, err := rt.decode(text, rt.shape.members["answers"])
	if err != nil {
		return nil, release, malformed(err, "answers")
	}

	return map[string]any{"answers": v}, release, nil
}

// next returns the next part, or nil at the end.
func (a *AttachedFiles) next() (*multipart.Part, error) {
	a.body.remaining = maxFormOverhead

	part, err := a.parts.NextRawPart()
	if err == io.EOF {
		return nil, nil
	}
	if err != nil {
		return nil, malformedMultipart(err)
	}

	a.body.remaining = unlimited // the container limits the size of a file
	a.digest.writeNames(part.FormName(), part.FileName(), part.Header.Get("Content-Type"))

	return part, nil
}

// respondWithFiles stores a complete response together with its files, or neither.
func (s *Server) respondWithFiles(
	ctx context.Context, p *tenant.Project, in *createResponseInput, id uuid.UUID,
) (form.Receipt, error) {
	to, err := form.GetFileFields(ctx, p, in.Form)
	if err != nil {
		return form.Receipt{}, err
	}

	files := receivedFiles{}
	if err := s.receive(ctx, p, in, id, to, files); err != nil {
		return form.Receipt{}, files.finish(ctx, err)
	}

	receipt, err := form.CreateResponse(ctx, p, in.Form, id, in.Body.Answers,
		form.Attachments{Fields: files.fields(), Create: files.store})
	return receipt, files.finish(ctx, err)
}

// receive stores the files while they arrive.
func (s *Server) receive(
	ctx context.Context, p *tenant.Project, in *createResponseInput, id uuid.UUID, to form.FileFields,
	files receivedFiles,
) error {
	for range maxFiles + 1 {
		part, err := in.next()
		if part == nil || err != nil {
			return err
		}

		field, name := optionalUUID(part.FormName()), "answers."+clip(part.FormName())
		_, again := files[field.UUID]
		switch {
		case !field.Valid || !slices.Contains(to.Fields, field.UUID):
			return fault.OnField(fault.Unprocessable, name, "unknown", "is not a file field of the form")
		case again:
			return fault.OnField(fault.Unprocessable, name, "repeated", "must be a single file")
		case to.Container == nil:
			return errNoContainer(name)
		}

		if part.FileName() == "" { // browsers send this for an empty file input
			if n, _ := io.ReadFull(part, make([]byte, 1)); n > 0 {
				return fault.OnField(fault.Unprocessable, name, "required", "must have a file name")
			}
			continue
		}

		folder := in.Form.String() + "/" + id.String() + "/" + field.UUID.String() + "/"
		files[field.UUID], err = object.ReceiveFile(ctx, p, s.blobs, caller(ctx).User, *to.Container, object.NewFile{
			FullFileName: folder + part.FileName(),
			MimeType:     part.Header.Get("Content-Type"), Content: partReader{part, &in.digest}})
		if err != nil {
			delete(files, field.UUID)

			if fault.Is(err, fault.NotFound) {
				return errNoContainer(name).WithCause(err)
			}

			return blameField(name, err)
		}
	}

	return errTooManyParts()
}

func errNoContainer(name string) *fault.Error {
	return fault.OnField(fault.Unprocessable, name, "no_container", "cannot be stored: the form has no container")
}

// partReader reads a part and reports a truncated part as a malformed body.
type partReader struct {
	part   *multipart.Part
	digest *bodyDigest
}

// Read reads the part.
func (w partReader) Read(b []byte) (int, error) {
	n, err := w.part.Read(b)
	w.digest.writeBytes(b[:n])

	if err != nil && err != io.EOF {
		err = malformedMultipart(err)
	}

	return n, err
}

// blameField replaces the field of an error by the form field that the file belongs to.
func blameField(name string, err error) error {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok || len(e.Fields) == 0 {
		return err
	}

	named := *e
	named.Fields = []fault.Field{{Name: name, Code: e.Fields[0].Code, Message: e.Fields[0].Message}}
	named.Detail = name + " " + e.Fields[0].Message

	return &named
}

// receivedFiles maps form fields to the files received for them.
type receivedFiles map[uuid.UUID]object.PendingFile

func (a receivedFiles) fields() map[uuid.UUID]bool {
	fields := map[uuid.UUID]bool{}
	for id := range a {
		fields[id] = true
	}

	return fields
}

func (a receivedFiles) store(ctx context.Context, tx pgx.Tx) (map[uuid.UUID]form.FileAnswer, error) {
	answers := map[uuid.UUID]form.FileAnswer{}
	for id, file := range a {
		f, err := file.Create(ctx, tx)
		if err != nil {
			return nil, blameField("answers."+id.String(), err)
		}

		answers[id] = form.FileAnswer{
			FileUUID:      f.UUID,
			ContainerUUID: f.ContainerUUID,
			FullFileName:  f.FullFileName,
			MimeType:      f.MimeType,
			Size:          f.Size,
		}
	}

	return answers, nil
}

// finish ends the uploads. It returns nil if the response was committed, else the response's
// error. The files share the outcome of the response.
func (a receivedFiles) finish(ctx context.Context, failure error) error {
	committed := false
	var errs []error
	for _, file := range a {
		committedFile, err := file.Finish(ctx, failure)
		if committed = committed || committedFile; !committedFile && err != nil {
			errs = append(errs, err)
		}
	}

	switch {
	case committed:
		return nil
	case len(errs) > 0:
		return errs[0] // the failure, and possibly a cleanup error
	}

	return failure
}
