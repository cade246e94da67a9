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

const mostFiles = 20 // per response

// Attached is embedded in the input of an operation that accepts files as multipart/form-data. The
// first part, answers, has the same JSON as answers in the JSON body; each following part is a
// file.
type Attached struct {
	parts *multipart.Reader // nil: the body is JSON
	body  *arriving
	scale scale
}

var attachedSchema = &huma.Schema{Type: huma.TypeObject, Required: []string{"answers"},
	Properties: map[string]*huma.Schema{
		"answers": {Type: huma.TypeObject, AdditionalProperties: true, Description: "The first part: answers as JSON."},
	},
	AdditionalProperties: &huma.Schema{
		Type:        huma.TypeString,
		Format:      "binary",
		Description: "A file for the field whose UUID the part is named by.",
	}}

// attach reads the answers but none of the files.
func (a *Attached) attach(
	ctx context.Context, rt *route, w http.ResponseWriter, r *http.Request,
) (body any, give func(), err error) {
	a.body = newArriving(w, r, maxBody+mostHeads)

	if a.parts, err = r.MultipartReader(); err != nil {
		return nil, nothingTaken, fault.OnField(fault.Invalid, "Content-Type", "invalid_format",
			"must be multipart/form-data with a boundary").Because(err)
	}

	part, err := a.parts.NextRawPart()
	if err != nil {
		return nil, nothingTaken, broken(err)
	}

	if part.FormName() != "answers" {
		return nil, nothingTaken, fault.OnField(fault.Invalid, "answers", "out_of_order", "must be the first part")
	}

	text, give, err := rt.readText(ctx, io.LimitReader(part, maxBody+1), -1, maxBody)
	if fault.Is(err, fault.Invalid) {
		return nil, give, broken(err)
	}
	if err != nil {
		return nil, give, err
	}

	v, err := rt.decode(text, rt.shape.members["answers"])
	if err != nil {
		return nil, give, malformed(err, "answers")
	}

	return map[string]any{"answers": v}, give, nil
}

// next returns the next part, or nil at the end.
func (a *Attached) next() (*multipart.Part, error) {
	a.body.left = mostHeads

	part, err := a.parts.NextRawPart()
	if err == io.EOF {
		return nil, nil
	}
	if err != nil {
		return nil, broken(err)
	}

	a.body.left = unbounded // the container limits the size of a file
	a.scale.names(part.FormName(), part.FileName(), part.Header.Get("Content-Type"))

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

	files := arrivals{}
	err = s.receive(ctx, p, in, id, to, files)

	var receipt form.Receipt
	if err == nil {
		receipt, err = form.CreateResponse(ctx, p, in.Form, id, in.Body.Answers,
			form.Attachments{Fields: files.fields(), Keep: files.keep})
	}

	return receipt, files.settle(ctx, err)
}

// receive stores the files while they arrive.
func (s *Server) receive(
	ctx context.Context, p *tenant.Project, in *createResponseInput, id uuid.UUID, to form.FileFields, files arrivals,
) error {
	for range mostFiles + 1 {
		part, err := in.next()
		if part == nil || err != nil {
			return err
		}

		field, name := optionalUUID(part.FormName()), "answers."+clip(part.FormName())
		_, again := files[field.UUID]
		switch {
		case !field.Valid || !slices.Contains(to.Fields, field.UUID):
			return fault.OnField(fault.Unprocessable, name, "unknown", "is no field for a file")
		case again:
			return fault.OnField(fault.Unprocessable, name, "repeated", "must be one file")
		case to.Container == nil:
			return noContainer(name)
		}

		if part.FileName() == "" { // browsers send this for an empty file input
			if n, _ := io.ReadFull(part, make([]byte, 1)); n > 0 {
				return fault.OnField(fault.Unprocessable, name, "required", "must have a file name")
			}
			continue
		}

		folder := in.Form.String() + "/" + id.String() + "/" + field.UUID.String() + "/"
		files[field.UUID], err = object.Receive(ctx, p, s.blobs, caller(ctx).User, *to.Container, object.NewFile{
			FullFileName: folder + part.FileName(),
			MimeType:     part.Header.Get("Content-Type"), Content: whole{part, &in.scale}})
		if err != nil {
			delete(files, field.UUID)

			if fault.Is(err, fault.NotFound) {
				return noContainer(name).Because(err)
			}

			return blame(name, err)
		}
	}

	return tooManyParts()
}

func noContainer(name string) *fault.Error {
	return fault.OnField(fault.Unprocessable, name, "no_container", "can't be kept: the form has no container")
}

// whole reads a part and reports a truncated part as a malformed body.
type whole struct {
	part  *multipart.Part
	scale *scale
}

// Read reads the part.
func (w whole) Read(b []byte) (int, error) {
	n, err := w.part.Read(b)
	w.scale.bytes(b[:n])

	if err != nil && err != io.EOF {
		err = broken(err)
	}

	return n, err
}

// blame replaces the field of an error by the form field that the file belongs to.
func blame(name string, err error) error {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok || len(e.Fields) == 0 {
		return err
	}

	named := *e
	named.Fields = []fault.Field{{Name: name, Code: e.Fields[0].Code, Message: e.Fields[0].Message}}
	named.Detail = name + " " + e.Fields[0].Message

	return &named
}

// arrivals maps form fields to the files received for them.
type arrivals map[uuid.UUID]object.Arrived

func (a arrivals) fields() map[uuid.UUID]bool {
	fields := map[uuid.UUID]bool{}
	for id := range a {
		fields[id] = true
	}

	return fields
}

func (a arrivals) keep(ctx context.Context, tx pgx.Tx) (map[uuid.UUID]form.FileAnswer, error) {
	made := map[uuid.UUID]form.FileAnswer{}
	for id, arrived := range a {
		f, err := arrived.Keep(ctx, tx)
		if err != nil {
			return nil, blame("answers."+id.String(), err)
		}

		made[id] = form.FileAnswer{
			FileUUID:      f.UUID,
			ContainerUUID: f.ContainerUUID,
			FullFileName:  f.FullFileName,
			MimeType:      f.MimeType,
			Size:          f.Size,
		}
	}

	return made, nil
}

// settle finishes the uploads. It returns nil if the response was committed, else the response's
// error. The files share the outcome of the response.
func (a arrivals) settle(ctx context.Context, failure error) error {
	there := false
	var errs []error
	for _, arrived := range a {
		made, err := arrived.Settle(ctx, failure)
		if there = there || made; !made && err != nil {
			errs = append(errs, err)
		}
	}

	switch {
	case there:
		return nil
	case len(errs) > 0:
		return errs[0] // the failure, and possibly a cleanup error
	}

	return failure
}
