package submission

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/actor"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/form"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/projectdb"
)

const (
	maxFiles      = 20 // per response
	maxEchoedName = 64 // bytes of an unknown name repeated in an error
)

// File is a form file that arrives as part of a response and is read meanwhile.
type File struct {
	Field    string // the field's UUID or name
	Name     string // "" and no content: browsers send this for an empty input
	MimeType string // as the client claims
	Content  io.Reader
}

// NextFile returns the next file in a response, or nil at the end.
type NextFile func() (*File, error)

// withFiles stores a complete response together with its files, or neither. The answers may be
// filled in while the files are read. folder is the last path segment for the response's files.
func (s *Service) withFiles(
	ctx context.Context, p *projectdb.Project, folder string, r Response, next NextFile,
) (form.Receipt, error) {
	to, err := form.GetFileFields(ctx, p, r.Form)
	if err != nil {
		return form.Receipt{}, err
	}

	files := receivedFiles{}
	if err := s.receive(ctx, p, folder, r, to, next, files); err != nil {
		return form.Receipt{}, files.finish(ctx, err)
	}

	receipt, err := form.CreateResponse(ctx, p, s.fields, r.Form, r.ID(), r.Answers,
		form.Attachments{Fields: files.fields(), Create: files.store})
	return receipt, files.finish(ctx, err)
}

// receive stores the files while they arrive.
func (s *Service) receive(
	ctx context.Context, p *projectdb.Project, folder string, r Response, to form.FileFields, next NextFile,
	files receivedFiles,
) error {
	for range maxFiles + to.Count() + 1 { // browsers send empty inputs too
		part, err := next()
		if part == nil || err != nil {
			return err
		}

		field, ok := to.Find(part.Field)
		name := "answers." + clip(part.Field)
		_, isRepeated := files[field]
		switch {
		case !ok:
			return fault.OnField(fault.Unprocessable, name, "unknown", "is not a file field of the form")
		case isRepeated:
			return fault.OnField(fault.Unprocessable, name, "repeated", "must be a single file")
		}

		if part.Name == "" {
			if n, _ := io.ReadFull(part.Content, make([]byte, 1)); n > 0 {
				return fault.OnField(fault.Unprocessable, name, "required", "must have a file name")
			}
			continue
		}

		if to.Container == nil {
			return errNoContainer(name)
		}
		if len(files) == maxFiles {
			break
		}

		path := r.Form.String() + "/" + folder + "/" + field.String() + "/"
		files[field], err = object.ReceiveFile(ctx, p, s.Blobs, actor.Member(r.User),
			object.ContainerRef{UUID: *to.Container},
			object.NewFile{FullFileName: path + part.Name, MimeType: part.MimeType, Content: part.Content})
		if err != nil {
			delete(files, field)

			if fault.Is(err, fault.NotFound) {
				return errNoContainer(name).WithCause(err)
			}

			return blameField(name, err)
		}
	}

	return fault.New(fault.Invalid, "the body has too many parts").WithCode("malformed_multipart")
}

// clip truncates client input that is echoed in an error.
func clip(s string) string {
	if len(s) <= maxEchoedName {
		return s
	}
	return strings.ToValidUTF8(s[:maxEchoedName], "") + "…"
}

func errNoContainer(name string) *fault.Error {
	return fault.OnField(fault.Unprocessable, name, "no_container", "cannot be stored: the form accepts no files")
}

// blameField replaces an error's field by the form field that the file belongs to.
func blameField(name string, err error) error {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok || len(e.Fields) == 0 {
		return err
	}

	message := e.Fields[0].Message
	if e.Fields[0].Name == "full_file_name" {
		message = "has an invalid file name: with its folder it " + message
	}

	fieldErr := *e
	fieldErr.Fields = []fault.Field{{Name: name, Code: e.Fields[0].Code, Message: message}}
	fieldErr.Detail = name + " " + message

	return &fieldErr
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

// finish ends the uploads. It returns nil if the response was committed, else the response's error.
// The files share the response's outcome.
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
