package forms

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/form"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

func (s *Server) registerResponses(p *operation.Pipeline) {
	operation.HandleInProject(p, listResponses, s.listResponses, nil)
	operation.HandleInProject(p, getResponse, s.getResponse, nil)
	operation.HandleInProject(p, deleteResponse, s.deleteResponse, nil)
	operation.HandleInProject(p, exportResponses, s.exportResponses, nil)
	operation.HandleInProject(p, getFormStatistics, s.getFormStatistics, nil)
}

// ResponseFilter is embedded in the input when an operation reads a form's responses.
type ResponseFilter struct {
	State  string `query:"state" enum:"partial,complete" doc:"State of the responses. Default: both."`
	From   string `query:"from" doc:"Start of the range by start time, inclusive: a date or an RFC 3339 time."`
	To     string `query:"to" doc:"End of the range by start time: a time, exclusive, or a date, inclusive."`
	Search string `query:"search" maxLength:"200" doc:"Literal text contained in an answer, case-insensitive."`
}

func (f ResponseFilter) filter() form.Filter {
	return form.Filter{State: f.State, From: f.From, To: f.To, Search: f.Search}
}

var listResponses = operation.Operation{
	ID: "listResponses", Method: "GET", Path: "/forms/{formUUID}/responses", Summary: "List a form's responses",
	Access: operation.ProjectOfForm(account.Viewer), Errors: []int{400, 401, 404, 500},
}

type listResponsesInput struct {
	operation.PageQuery
	ResponseFilter
	Sort string    `query:"sort" enum:"createdAt,updatedAt,submittedAt" default:"createdAt"`
	Form uuid.UUID `path:"formUUID" format:"uuid"`
}

func (s *Server) listResponses(
	ctx context.Context, p *projectdb.Project, in *listResponsesInput,
) (operation.Answer[[]form.Response, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	responses, total, err := form.ListResponses(ctx, p, in.Form, in.filter(), page)
	return operation.ListOf(responses, page, total), err
}

// responseInput is the input when an operation takes only a response's path.
type responseInput struct {
	Form     uuid.UUID `path:"formUUID" format:"uuid"`
	Response uuid.UUID `path:"responseUUID" format:"uuid"`
}

var getResponse = operation.Operation{
	ID: "getResponse", Method: "GET",
	Path: "/forms/{formUUID}/responses/{responseUUID}", Summary: "Get a form response",
	Access: operation.ProjectOfForm(account.Viewer), Errors: []int{400, 401, 404, 500},
	Notes: "Fields have the labels and types of the time when they were answered.",
}

func (s *Server) getResponse(ctx context.Context, p *projectdb.Project, in *responseInput) (form.Response, error) {
	return form.GetResponse(ctx, p, in.Form, in.Response)
}

var deleteResponse = operation.Operation{
	ID: "deleteResponse", Method: "DELETE",
	Path: "/forms/{formUUID}/responses/{responseUUID}", Summary: "Delete a form response",
	Access: operation.ProjectOfForm(account.Developer), Errors: []int{400, 401, 403, 404, 500},
	Notes: "Deletes its files too. Frees a place if the form has a maximum number of responses.",
}

func (s *Server) deleteResponse(ctx context.Context, p *projectdb.Project, in *responseInput) (form.Response, error) {
	r, err := form.DeleteResponse(ctx, p, in.Form, in.Response, object.DeleteFiles)
	if err == nil {
		s.Cleaner.Discard(ctx, p.UUID)
	}

	return r, err
}

var getFormStatistics = operation.Operation{
	ID: "getFormStatistics", Method: "GET",
	Path: "/forms/{formUUID}/statistics", Summary: "Get a form's response statistics",
	Access: operation.ProjectOfForm(account.Viewer), Errors: []int{400, 401, 404, 500},
}

func (s *Server) getFormStatistics(ctx context.Context, p *projectdb.Project, in *formInput) (form.Statistics, error) {
	return form.GetStatistics(ctx, p, in.Form)
}

var exportResponses = operation.Operation{
	ID: "exportResponses", Method: "GET",
	Path: "/forms/{formUUID}/responses/export", Summary: "Export a form's responses as CSV", MediaType: "text/csv",
	Access: operation.ProjectOfForm(account.Viewer), Errors: []int{400, 401, 404, 500},
	Notes: "UTF-8, with a line of labels followed by one line per response, oldest first; deleted fields are the " +
		"last columns. Text that a spreadsheet would evaluate as a formula, because it begins with `=`, `+`, `-` " +
		"or `@`, is prefixed with `'`.",
}

type exportResponsesInput struct {
	ResponseFilter
	Form uuid.UUID `path:"formUUID" format:"uuid"`
}

func (s *Server) exportResponses(
	ctx context.Context, p *projectdb.Project, in *exportResponsesInput,
) (operation.Stream, error) {
	e, err := form.NewExport(ctx, p, in.Form, in.filter())
	if err != nil {
		return operation.Stream{}, err
	}

	return operation.Stream{Errors: exportResponses.Errors, Headers: func(h http.Header) {
		h.Set("Content-Type", "text/csv; charset=utf-8; header=present")
		h.Set("Content-Disposition", `attachment; filename="responses.csv"`)
		h.Set("Cache-Control", "no-store")
	}, Write: e.WriteCSV, Close: func() {}}, nil
}
