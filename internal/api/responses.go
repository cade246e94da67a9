package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"socle/internal/form"
	"socle/internal/httpx"
	"socle/internal/object"
	"socle/internal/platform"
	"socle/internal/tenant"
)

func (s *Server) registerResponses() {
	within(s, listResponses, s.listResponses, nil)
	within(s, getResponse, s.getResponse, nil)
	within(s, deleteResponse, s.deleteResponse, nil)
	within(s, exportResponses, s.exportResponses, nil)
	within(s, getFormStatistics, s.getFormStatistics, nil)
}

// ResponseFilter is embedded in the input of an operation that reads a form's responses.
type ResponseFilter struct {
	State  string `query:"state" enum:"partial,complete" doc:"Both, if it is not given."`
	From   string `query:"from" doc:"Begun at this moment or later: a date, or RFC 3339."`
	To     string `query:"to" doc:"Begun before this moment, or until the end of this day."`
	Search string `query:"search" maxLength:"200" doc:"Text that is in one of the answers, as it stands, whatever the case of its letters."`
}

func (f ResponseFilter) filter() form.Filter {
	return form.Filter{State: f.State, From: f.From, To: f.To, Search: f.Search}
}

var listResponses = Operation{
	ID: "listResponses", Method: "GET", Path: "/forms/{formUUID}/responses", Summary: "List the responses to a form",
	Access: projectOfForm(platform.Viewer), Errors: []int{400, 401, 404, 500},
}

type listResponsesInput struct {
	PageQuery
	ResponseFilter
	Sort string    `query:"sort" enum:"createdAt,updatedAt,submittedAt" default:"createdAt"`
	Form uuid.UUID `path:"formUUID" format:"uuid"`
}

func (s *Server) listResponses(
	ctx context.Context, p *tenant.Project, in *listResponsesInput,
) (Answer[[]form.Response, PageMetadata], error) {
	page := in.page(in.Sort)
	responses, total, err := form.ListResponses(ctx, p, in.Form, in.filter(), page)
	return listOf(responses, page, total), err
}

// responseInput is the input of an operation that takes only the path of a response.
type responseInput struct {
	Form     uuid.UUID `path:"formUUID" format:"uuid"`
	Response uuid.UUID `path:"responseUUID" format:"uuid"`
}

var getResponse = Operation{
	ID: "getResponse", Method: "GET",
	Path: "/forms/{formUUID}/responses/{responseUUID}", Summary: "Get a response to a form",
	Access: projectOfForm(platform.Viewer), Errors: []int{400, 401, 404, 500},
	Notes: "Fields have the labels and types that they had when they were answered.",
}

func (s *Server) getResponse(ctx context.Context, p *tenant.Project, in *responseInput) (form.Response, error) {
	return form.GetResponse(ctx, p, in.Form, in.Response)
}

var deleteResponse = Operation{
	ID: "deleteResponse", Method: "DELETE",
	Path: "/forms/{formUUID}/responses/{responseUUID}", Summary: "Delete a response to a form",
	Access: projectOfForm(platform.Developer), Errors: []int{400, 401, 403, 404, 500},
	Notes: "With its files. It makes room for another one where the form has a maximum.",
}

func (s *Server) deleteResponse(ctx context.Context, p *tenant.Project, in *responseInput) (form.Response, error) {
	deleted, err := form.DeleteResponse(ctx, p, in.Form, in.Response, object.Forget)
	if err == nil {
		s.jobs.Discard(ctx, p.UUID)
	}

	return deleted, err
}

var getFormStatistics = Operation{
	ID: "getFormStatistics", Method: "GET",
	Path: "/forms/{formUUID}/statistics", Summary: "Get the statistics of a form's responses",
	Access: projectOfForm(platform.Viewer), Errors: []int{400, 401, 404, 500},
}

func (s *Server) getFormStatistics(ctx context.Context, p *tenant.Project, in *formInput) (form.Statistics, error) {
	return form.GetStatistics(ctx, p, in.Form)
}

var exportResponses = Operation{
	ID: "exportResponses", Method: "GET",
	Path: "/forms/{formUUID}/responses/export", Summary: "Export the responses to a form as CSV",
	Access: projectOfForm(platform.Viewer), Errors: []int{400, 401, 404, 500},
	Notes: "UTF-8, a line of labels and then one for each response, oldest first; fields that are gone come last. Text that a spreadsheet would take for a formula, since it begins with `=`, `+`, `-` or `@`, gets a `'` before it.",
}

type exportResponsesInput struct {
	ResponseFilter
	Form uuid.UUID `path:"formUUID" format:"uuid"`
}

func (s *Server) exportResponses(
	ctx context.Context, p *tenant.Project, in *exportResponsesInput,
) (spreadsheet, error) {
	e, err := form.NewExport(ctx, p, in.Form, in.filter())
	return spreadsheet{e}, err
}

// spreadsheet responds with CSV, and renews the write deadline while the client reads.
type spreadsheet struct{ export *form.Export }

func (spreadsheet) mediaType() string { return "text/csv" }

// ServeHTTP writes the lines. A failure aborts the connection, since the status is already sent.
func (s spreadsheet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8; header=present")
	h.Set("Content-Disposition", `attachment; filename="responses.csv"`)
	h.Set("Cache-Control", "no-store")

	alive := func() error {
		err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(clientWriteTimeout))
		if errors.Is(err, http.ErrNotSupported) {
			return nil
		}

		return err
	}
	if err := s.export.WriteCSV(r.Context(), w, alive); err != nil {
		httpx.From(r.Context()).Err = err
		panic(http.ErrAbortHandler)
	}
}
