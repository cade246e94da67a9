package api

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/form"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

const maxFiles = 20 // per response

// respondWithFiles stores a complete response together with its files, or neither.
func (s *Server) respondWithFiles(
	ctx context.Context, p *projectdb.Project, in *createResponseInput, id uuid.UUID,
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
	ctx context.Context, p *projectdb.Project, in *createResponseInput, id uuid.UUID, to form.FileFields,
	files receivedFiles,
) error {
	for range maxFiles + 1 {
		part, err := in.NextFile()
		if part == nil || err != nil {
			return err
		}

		field, name := optionalUUID(part.FormName()), "answers."+operation.Clip(part.FormName())
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
			MimeType:     part.Header.Get("Content-Type"), Content: part})
		if err != nil {
			delete(files, field.UUID)

			if fault.Is(err, fault.NotFound) {
				return errNoContainer(name).WithCause(err)
			}

			return blameField(name, err)
		}
	}

	return operation.TooManyParts()
}

func errNoContainer(name string) *fault.Error {
	return fault.OnField(fault.Unprocessable, name, "no_container", "cannot be stored: the form has no container")
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
