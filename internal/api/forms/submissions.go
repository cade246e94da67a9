package forms

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/form"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/submission"
)

func (s *Server) registerSubmissions(p *operation.Pipeline) {
	for _, o := range []operation.Operation{getPublicForm, createResponse, updateResponse} {
		p.HandlePreflight(o.Path, o.Method)
	}

	operation.HandleInProject(p, getPublicForm, s.getPublicForm, nil)
	operation.HandleInProject(p, createResponse, s.createResponse, s.findFormToAnswer)
	operation.HandleInProject(p, updateResponse, s.updateResponse, s.findFormToContinue)
}

// answersSchema is the schema type for answers.
type answersSchema struct{}

// Schema returns the schema for answers, whose members depend on the form's fields.
func (answersSchema) Schema(operation.Registry) *operation.Schema {
	return &operation.Schema{Type: operation.TypeObject, AdditionalProperties: true}
}

var getPublicForm = operation.Operation{
	ID: "getPublicForm", Method: "GET", Path: "/forms/{formUUID}/public", Summary: "Get a form for filling in",
	Access: operation.PublicForm, Errors: []int{400, 401, 404, 500},
	Notes: "A form that accepts no responses is visible to members only.",
}

func (s *Server) getPublicForm(ctx context.Context, p *projectdb.Project, in *formInput) (form.PublicForm, error) {
	return form.GetPublicForm(ctx, p, in.Form, operation.Caller(ctx).Role.AtLeast(account.Viewer))
}

var createResponse = operation.Operation{
	ID: "createResponse", Method: "POST", Path: "/forms/{formUUID}/responses", Summary: "Submit a form response",
	Access: operation.PublicForm, Errors: []int{400, 401, 404, 409, 413, 422, 429, 500}, Grows: operation.Always,
	Body: operation.JSONWithFiles("answers"),
	Notes: "All rules of all fields are checked, unless the response is `partial`: then it is retained for 7 days, " +
		"and `metadata.token` is the secret for continuing it.\n\nA response with files is `multipart/form-data`: " +
		"first the part `answers`, as JSON, then each file in a part named by its field's UUID or name. Files are stored " +
		"in the form's container, whose rules apply.",
	Example: `{"answers": {"343594e8-4580-5674-a0ba-9bde21a3bd96": "good"}}`,
}

type createResponseInput struct {
	operation.AttachedFiles
	Form uuid.UUID `path:"formUUID" format:"uuid"`
	Body struct {
		Answers form.Answers `json:"answers" doc:"Answers by the field's UUID or name: text for most types, numbers for number and rating, true or false for checkbox, a list of options for multiselect; null is no answer."`
		Partial bool         `json:"partial,omitempty" doc:"Whether the response will be continued."`
		operation.ProjectInBody
	}
}

// receiptMetadata has a partial response's secret, which is shown once.
type receiptMetadata struct {
	Token string `json:"token,omitempty" doc:"Secret for continuing a partial response. It is shown only in this response."`
}

func (s *Server) findFormToAnswer(ctx context.Context, p *projectdb.Project, in *createResponseInput) error {
	_, err := form.GetForm(ctx, p, in.Form)
	return err
}

func (s *Server) createResponse(
	ctx context.Context, p *projectdb.Project, in *createResponseInput,
) (operation.Answer[form.Receipt, receiptMetadata], error) {
	response := responseOf(ctx, in.Form, in.Body.Answers)
	if in.Body.Partial && !in.HasFiles() {
		receipt, token, err := s.Submissions.Start(ctx, p, response)
		return receiptOf(receipt, token), err
	}

	var next submission.NextFile
	if in.HasFiles() {
		next = in.nextFile
	}

	receipt, err := s.Submissions.Create(ctx, p, response, next)
	return receiptOf(receipt, ""), err
}

// nextFile returns the next file in the body.
func (in *createResponseInput) nextFile() (*submission.File, error) {
	part, err := in.NextFile()
	if part == nil || err != nil {
		return nil, err
	}

	return &submission.File{Field: part.FormName(), Name: part.FileName(), MimeType: part.Header.Get("Content-Type"),
		Content: part}, nil
}

// responseOf returns the caller's response.
func responseOf(ctx context.Context, form uuid.UUID, answers form.Answers) submission.Response {
	return submission.Response{
		Form: form, User: operation.Caller(ctx).User, Network: operation.ClientOf(ctx).Network, Answers: answers,
	}
}

func receiptOf(r form.Receipt, token string) operation.Answer[form.Receipt, receiptMetadata] {
	return operation.Answer[form.Receipt, receiptMetadata]{
		Content:  r,
		Metadata: receiptMetadata{token},
		Header:   http.Header{"Cache-Control": {"no-store"}},
	}
}

var updateResponse = operation.Operation{
	ID: "updateResponse", Method: "PUT",
	Path: "/forms/{formUUID}/responses/{responseUUID}", Summary: "Continue a partial response",
	Access: operation.PublicForm, Errors: []int{400, 401, 404, 409, 422, 429, 500}, Grows: operation.Always,
	Notes: "Omitted answers stay unchanged; null removes an answer. Without `partial`, the response is completed, " +
		"and all rules of all fields are checked.",
	Example: `{"token": "…", "answers": {"343594e8-4580-5674-a0ba-9bde21a3bd96": "good"}, "partial": false}`,
}

type updateResponseInput struct {
	Form     uuid.UUID `path:"formUUID" format:"uuid"`
	Response uuid.UUID `path:"responseUUID" format:"uuid"`
	Body     struct {
		Token   string       `json:"token" maxLength:"100" doc:"Secret from the creation of the response."`
		Answers form.Answers `json:"answers,omitempty" doc:"Answers as for a new response."`
		Partial bool         `json:"partial,omitempty" doc:"Whether the response will be continued."`
		operation.ProjectInBody
	}
}

func (s *Server) findFormToContinue(ctx context.Context, p *projectdb.Project, in *updateResponseInput) error {
	_, err := form.GetForm(ctx, p, in.Form)
	return err
}

func (s *Server) updateResponse(
	ctx context.Context, p *projectdb.Project, in *updateResponseInput,
) (form.Receipt, error) {
	return s.Submissions.Continue(ctx, p, in.Response, in.Body.Token, responseOf(ctx, in.Form, in.Body.Answers),
		!in.Body.Partial)
}
