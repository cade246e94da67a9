package forms

import (
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/form"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

func (s *Server) registerFields(p *operation.Pipeline) {
	operation.HandleInProject(p, createField, s.createField, s.findFormToExtend)
	operation.HandleInProject(p, listFields, s.listFields, nil)
	operation.HandleInProject(p, getField, s.getField, nil)
	operation.HandleInProject(p, updateField, s.updateField, s.findField)
	operation.HandleInProject(p, deleteField, s.deleteField, nil)
	operation.HandleInProject(p, orderFields, s.orderFields, s.findFormToOrder)
}

var createField = operation.Operation{
	ID: "createField", Method: "POST", Path: "/forms/{formUUID}/fields", Summary: "Create form fields",
	Access: operation.ProjectOfForm(account.Developer), Errors: []int{400, 401, 403, 404, 422, 500},
	ListOf: "fields",
	Notes: "Accepts one field, or several as `fields`, which are created all or none. The content is the first " +
		"one; `metadata.fields` has all of them.",
	Example: `{"label": "How was it?", "type": "select", "options": "good, bad", "is_required": true}`,
}

type createFieldInput struct {
	Form uuid.UUID `path:"formUUID" format:"uuid"`
	Body createFieldBody
}

type createFieldBody struct {
	Fields []form.FieldInput `json:"fields" minItems:"1" maxItems:"100"`
	operation.ProjectInBody
}

// fieldMetadata has a field's name, which the specified field lacks.
type fieldMetadata struct {
	Name *string `json:"name" nullable:"true" doc:"Name of the field in answers, beside its UUID."`
}

func answerField(f form.Field, err error) (operation.Answer[form.Field, fieldMetadata], error) {
	return operation.WithMetadata(f, fieldMetadata{f.Name}), err
}

// namesMetadata has the listed fields' names.
type namesMetadata struct {
	Names map[string]string `json:"names" doc:"Names of the fields by their UUIDs. Fields without a name are absent."`
}

func namesOf(fields []form.Field) map[string]string {
	names := map[string]string{}
	for _, f := range fields {
		if f.Name != nil {
			names[f.UUID.String()] = *f.Name
		}
	}

	return names
}

func answerFields(fields []form.Field, err error) (operation.Answer[[]form.Field, namesMetadata], error) {
	return operation.WithMetadata(fields, namesMetadata{namesOf(fields)}), err
}

type fieldsMetadata struct {
	Fields []form.Field      `json:"fields"`
	Names  map[string]string `json:"names" doc:"Names of the fields by their UUIDs. Fields without a name are absent."`
}

func (s *Server) findFormToExtend(ctx context.Context, p *projectdb.Project, in *createFieldInput) error {
	_, err := form.GetForm(ctx, p, in.Form)
	return err
}

func (s *Server) createField(
	ctx context.Context, p *projectdb.Project, in *createFieldInput,
) (operation.Answer[form.Field, fieldsMetadata], error) {
	fields, err := form.CreateFields(ctx, p, in.Form, in.Body.Fields)
	if err != nil {
		return operation.Answer[form.Field, fieldsMetadata]{}, err
	}

	return operation.WithMetadata(fields[0], fieldsMetadata{fields, namesOf(fields)}), nil
}

var updateField = operation.Operation{
	ID: "updateField", Method: "PUT", Path: "/forms/{formUUID}/fields/{fieldUUID}", Summary: "Update a form field",
	Access: operation.ProjectOfForm(account.Developer), Specified: true, Errors: operation.SpecifiedBodyErrors,
	Notes:   "Omitted members stay unchanged; null clears a member. Existing answers stay unchanged.",
	Example: `{"label": "How was it?", "type": "select", "options": "good, fair, bad"}`,
}

type updateFieldInput struct {
	Form  uuid.UUID `path:"formUUID" format:"uuid"`
	Field uuid.UUID `path:"fieldUUID" format:"uuid"`
	Body  struct {
		form.FieldInput
		operation.ProjectInBody
	}
}

func (s *Server) findField(ctx context.Context, p *projectdb.Project, in *updateFieldInput) error {
	_, err := form.GetField(ctx, p, in.Form, in.Field)
	return err
}

func (s *Server) updateField(
	ctx context.Context, p *projectdb.Project, in *updateFieldInput,
) (operation.Answer[form.Field, fieldMetadata], error) {
	return answerField(form.UpdateField(ctx, p, in.Form, in.Field, in.Body.FieldInput))
}

var listFields = operation.Operation{
	ID: "listFields", Method: "GET", Path: "/forms/{formUUID}/fields", Summary: "List a form's fields",
	Access: operation.ProjectOfForm(account.Viewer), Errors: []int{400, 401, 404, 500},
	Notes: "Returns all fields at once, in the order of the form.",
}

func (s *Server) listFields(
	ctx context.Context, p *projectdb.Project, in *formInput,
) (operation.Answer[[]form.Field, namesMetadata], error) {
	return answerFields(form.ListFields(ctx, p, in.Form))
}

// fieldInput is the input when an operation takes only a field's path.
type fieldInput struct {
	Form  uuid.UUID `path:"formUUID" format:"uuid"`
	Field uuid.UUID `path:"fieldUUID" format:"uuid"`
}

var getField = operation.Operation{
	ID: "getField", Method: "GET", Path: "/forms/{formUUID}/fields/{fieldUUID}", Summary: "Get a form field",
	Access: operation.ProjectOfForm(account.Viewer), Errors: []int{400, 401, 404, 500},
}

func (s *Server) getField(
	ctx context.Context, p *projectdb.Project, in *fieldInput,
) (operation.Answer[form.Field, fieldMetadata], error) {
	return answerField(form.GetField(ctx, p, in.Form, in.Field))
}

var deleteField = operation.Operation{
	ID: "deleteField", Method: "DELETE", Path: "/forms/{formUUID}/fields/{fieldUUID}", Summary: "Delete a form field",
	Access: operation.ProjectOfForm(account.Developer), Errors: []int{400, 401, 403, 404, 500},
	Notes: "Answers to the field remain in their responses.",
}

func (s *Server) deleteField(
	ctx context.Context, p *projectdb.Project, in *fieldInput,
) (operation.Answer[form.Field, fieldMetadata], error) {
	return answerField(form.DeleteField(ctx, p, in.Form, in.Field))
}

var orderFields = operation.Operation{
	ID: "orderFields", Method: "PUT", Path: "/forms/{formUUID}/fields/order", Summary: "Reorder a form's fields",
	Access: operation.ProjectOfForm(account.Developer), Errors: []int{400, 401, 403, 404, 422, 500},
}

type orderFieldsInput struct {
	Form uuid.UUID `path:"formUUID" format:"uuid"`
	Body struct {
		Fields []uuid.UUID `json:"fields" maxItems:"500" doc:"All fields of the form, each once."`
		operation.ProjectInBody
	}
}

func (s *Server) findFormToOrder(ctx context.Context, p *projectdb.Project, in *orderFieldsInput) error {
	_, err := form.GetForm(ctx, p, in.Form)
	return err
}

func (s *Server) orderFields(
	ctx context.Context, p *projectdb.Project, in *orderFieldsInput,
) (operation.Answer[[]form.Field, namesMetadata], error) {
	return answerFields(form.OrderFields(ctx, p, in.Form, in.Body.Fields))
}
