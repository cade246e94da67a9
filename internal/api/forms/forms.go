package forms

import (
	"context"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/form"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

func (s *Server) registerForms(p *operation.Pipeline) {
	operation.HandleInProject(p, createForm, s.createForm, nil)
	operation.HandleInProject(p, listForms, s.listForms, nil)
	operation.HandleInProject(p, getForm, s.getForm, nil)
	operation.HandleInProject(p, updateForm, s.updateForm, s.findFormToUpdate)
	operation.HandleInProject(p, deleteForm, s.deleteForm, nil)
	operation.HandleInProject(p, linkForm, s.linkForm, nil)
	operation.HandleInProject(p, unlinkForm, s.unlinkForm, nil)
}

var createForm = operation.Operation{
	ID: "createForm", Method: "POST", Path: "/forms", Summary: "Create a form",
	Access: operation.Project(account.Developer), Errors: []int{400, 401, 403, 422, 500},
	Example: `{"name": "Feedback"}`,
}

type createFormInput struct {
	Body struct {
		Name        string `json:"name" minLength:"1" maxLength:"100"`
		Description string `json:"description,omitempty" maxLength:"500"`
		operation.ProjectInBody
	}
}

func (s *Server) createForm(ctx context.Context, p *projectdb.Project, in *createFormInput) (form.Form, error) {
	n := form.NewForm{Name: in.Body.Name, Description: in.Body.Description}
	if err := n.Check(); err != nil {
		return form.Form{}, err
	}

	id, err := uuid.NewV7()
	if err != nil {
		return form.Form{}, err
	}

	if err := s.Platform.IndexForm(ctx, id, p.UUID); err != nil {
		return form.Form{}, err
	}

	return form.CreateForm(ctx, p, operation.Caller(ctx).User, id, n)
}

var listForms = operation.Operation{
	ID: "listForms", Method: "GET", Path: "/forms", Summary: "List a project's forms",
	Access: operation.Project(account.Viewer), Errors: []int{400, 401, 500},
}

type listFormsInput struct {
	operation.PageQuery
	Sort string `query:"sort" enum:"name,state,createdAt,updatedAt" default:"createdAt"`
}

func (s *Server) listForms(
	ctx context.Context, p *projectdb.Project, in *listFormsInput,
) (operation.Answer[[]form.Form, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	forms, total, err := form.ListForms(ctx, p, page)
	return operation.ListOf(forms, page, total), err
}

// formInput is the input when an operation takes only a form's path.
type formInput struct {
	Form uuid.UUID `path:"formUUID" format:"uuid"`
}

var getForm = operation.Operation{
	ID: "getForm", Method: "GET", Path: "/forms/{formUUID}", Summary: "Get a form with its fields",
	Access: operation.ProjectOfForm(account.Viewer), Errors: []int{400, 401, 404, 500},
}

func (s *Server) getForm(ctx context.Context, p *projectdb.Project, in *formInput) (form.FullForm, error) {
	return form.GetFullForm(ctx, p, in.Form)
}

var updateForm = operation.Operation{
	ID: "updateForm", Method: "PUT", Path: "/forms/{formUUID}", Summary: "Update a form",
	Access: operation.ProjectOfForm(account.Developer), Errors: []int{400, 401, 403, 404, 422, 500},
	Notes: "Omitted members stay unchanged; null clears a member. Existing responses remain, even if they exceed a " +
		"new maximum.",
	Example: `{"state": "open", "success_message": "Thank you."}`,
}

type updateFormInput struct {
	Form uuid.UUID `path:"formUUID" format:"uuid"`
	Body struct {
		form.FormUpdate
		operation.ProjectInBody
	}
}

func (s *Server) findFormToUpdate(ctx context.Context, p *projectdb.Project, in *updateFormInput) error {
	_, err := form.GetForm(ctx, p, in.Form)
	return err
}

func (s *Server) updateForm(ctx context.Context, p *projectdb.Project, in *updateFormInput) (form.Form, error) {
	return s.Submissions.UpdateForm(ctx, p, operation.Caller(ctx).User, in.Form, in.Body.FormUpdate)
}

var deleteForm = operation.Operation{
	ID: "deleteForm", Method: "DELETE", Path: "/forms/{formUUID}", Summary: "Delete a form",
	Access: operation.ProjectOfForm(account.Developer), Errors: []int{400, 401, 403, 404, 409, 500},
	Destructive: operation.Always,
	Notes: "Deletes the form and its fields. A form with responses is deleted only with `force=true`, together " +
		"with the responses and their files.",
}

type deleteFormInput struct {
	Form  uuid.UUID `path:"formUUID" format:"uuid"`
	Force string    `query:"force" enum:"true,false" default:"false"`
}

func (s *Server) deleteForm(ctx context.Context, p *projectdb.Project, in *deleteFormInput) (form.Form, error) {
	f, err := form.DeleteForm(ctx, p, in.Form, in.Force == "true", object.DeleteFiles)
	if err != nil {
		return form.Form{}, err
	}

	s.Cleaner.Discard(ctx, p.UUID)
	return f, s.Platform.UnindexForm(ctx, in.Form)
}

var linkForm = operation.Operation{
	ID: "linkForm", Method: "POST",
	Path: "/forms/{formUUID}/link", Summary: "Create or replace a form's public link",
	Access: operation.ProjectOfForm(account.Developer), Errors: []int{400, 401, 403, 404, 500},
	Notes: "The link allows filling in the form without a key while the form is open, by the API and on the form's " +
		"page at `pagePath`. It replaces the previous link.",
}

func (s *Server) linkForm(ctx context.Context, p *projectdb.Project, in *formInput) (form.Form, error) {
	return form.LinkForm(ctx, p, operation.Caller(ctx).User, in.Form)
}

var unlinkForm = operation.Operation{
	ID: "unlinkForm", Method: "DELETE", Path: "/forms/{formUUID}/link", Summary: "Delete a form's public link",
	Access: operation.ProjectOfForm(account.Developer), Errors: []int{400, 401, 403, 404, 500},
}

func (s *Server) unlinkForm(ctx context.Context, p *projectdb.Project, in *formInput) (form.Form, error) {
	return form.UnlinkForm(ctx, p, operation.Caller(ctx).User, in.Form)
}
