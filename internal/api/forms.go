package api

import (
	"context"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"socle/internal/form"
	"socle/internal/platform"
	"socle/internal/tenant"
)

func (s *Server) registerForms() {
	optional[string](s.registry)
	optional[bool](s.registry)
	optional[int64](s.registry)
	within(s, createForm, s.createForm, nil)
	within(s, createField, s.createField, s.findForm)
	within(s, updateField, s.updateField, s.findField)
}

// optional makes the schema of a member that may be absent that of its value.
func optional[T any](registry huma.Registry) {
	registry.RegisterTypeAlias(reflect.TypeFor[form.Opt[T]](), reflect.TypeFor[T]())
}

var createForm = Operation{
	ID: "createForm", Method: "POST", Path: "/forms", Summary: "Create a form",
	Access: project(platform.Developer), Errors: []int{400, 401, 403, 422, 500},
}

type createFormInput struct {
	Body struct {
		Name        string `json:"name" minLength:"1" maxLength:"100"`
		Description string `json:"description,omitempty" maxLength:"500"`
		ProjectInBody
	}
}

func (s *Server) createForm(ctx context.Context, p *tenant.Project, in *createFormInput) (form.Form, error) {
	n := form.NewForm{Name: in.Body.Name, Description: in.Body.Description}
	if err := n.Check(); err != nil {
		return form.Form{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return form.Form{}, err
	}
	if err := s.platform.IndexForm(ctx, id, p.UUID); err != nil {
		return form.Form{}, err
	}
	return form.CreateForm(ctx, p, caller(ctx).User, id, n)
}

var createField = Operation{
	ID: "createField", Method: "POST", Path: "/forms/{formUUID}/fields", Summary: "Create a form's field",
	Access: projectOfForm(platform.Developer), Errors: []int{400, 401, 403, 404, 422, 500},
	Notes: "Takes one field, or several as `fields`, which are created all or none. The content is the first one, `metadata.fields` all of them.",
}

type createFieldInput struct {
	Form uuid.UUID `path:"formUUID" format:"uuid"`
	Body createFieldBody
}

type createFieldBody struct {
	Fields []form.FieldInput `json:"fields" minItems:"1" maxItems:"100"`
	ProjectInBody
}

// normalize makes one field a list of one.
func (*createFieldBody) normalize(v any) (any, string) {
	object, ok := v.(map[string]any)
	if !ok {
		return v, ""
	}
	if _, several := object["fields"]; several {
		return v, ""
	}
	normal := map[string]any{"fields": []any{object}}
	if id, ok := object["projectUUID"]; ok {
		normal["projectUUID"] = id
	}
	return normal, "fields.0."
}

type fieldsMetadata struct {
	Fields []form.Field `json:"fields"`
}

func (s *Server) findForm(ctx context.Context, p *tenant.Project, in *createFieldInput) error {
	_, err := form.GetForm(ctx, p, in.Form)
	return err
}

func (s *Server) createField(ctx context.Context, p *tenant.Project, in *createFieldInput) (Answer[form.Field, fieldsMetadata], error) {
	fields, err := form.CreateFields(ctx, p, in.Form, in.Body.Fields)
	if err != nil {
		return Answer[form.Field, fieldsMetadata]{}, err
	}
	return Answer[form.Field, fieldsMetadata]{Content: fields[0], Metadata: fieldsMetadata{fields}}, nil
}

var updateField = Operation{
	ID: "updateField", Method: "PUT", Path: "/forms/{formUUID}/fields/{fieldUUID}", Summary: "Change a form's field",
	Access: projectOfForm(platform.Developer), Errors: specifiedWithBody,
	Notes: "What the body does not name stays as it is, null clears it. Answers that were given stay as they were given.",
}

type updateFieldInput struct {
	Form  uuid.UUID `path:"formUUID" format:"uuid"`
	Field uuid.UUID `path:"fieldUUID" format:"uuid"`
	Body  struct {
		form.FieldInput
		ProjectInBody
	}
}

func (s *Server) findField(ctx context.Context, p *tenant.Project, in *updateFieldInput) error {
	_, err := form.GetField(ctx, p, in.Form, in.Field)
	return err
}

func (s *Server) updateField(ctx context.Context, p *tenant.Project, in *updateFieldInput) (form.Field, error) {
	return form.UpdateField(ctx, p, in.Form, in.Field, in.Body.FieldInput)
}
