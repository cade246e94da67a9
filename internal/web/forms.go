package web

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/fault"
	forms "github.com/socle-dev/socle/internal/form"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/projectdb"
)

// A form's page takes submissions from its own form and from HTML forms on any site: a public link
// is all the authority that there is, and no cookie adds to it.

// maxRatingChoices is how many values at most a rating shows side by side.
const maxRatingChoices = 11

// formPage serves a form's page.
func (p *Pages) formPage(w http.ResponseWriter, r *http.Request) {
	request := httpx.From(r.Context())
	request.Route = "/f/{link}"

	if !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodPost}, r.Method) {
		refuseMethod(w, r, "GET, HEAD, POST")
		return
	}

	request.Route = r.Method + " " + request.Route

	f, project, ok := p.openForm(w, r)
	if !ok {
		return
	}

	switch {
	case r.Method == http.MethodPost && (f.Closed == nil || isFull(f)): // full by a response that is repeated
		p.submitForm(w, r, f, project)
		return
	case f.Closed != nil:
		p.renderClosed(w, r, f)
		return
	}

	render(w, r, http.StatusOK, viewForm(f, nil, uuid.New()))
}

// isFull reports whether a form has all responses that it may have.
func isFull(f forms.Page) bool { return f.Closed != nil && fault.Of(f.Closed).Code == "form_full" }

// openForm returns the form in the request's path, and its project. Otherwise it responds and
// returns false.
func (p *Pages) openForm(w http.ResponseWriter, r *http.Request) (forms.Page, *projectdb.Project, bool) {
	f, project, err := p.Submissions.Page(r.Context(), r.PathValue("link"))
	if err != nil {
		missing := page{Title: "There is no such form",
			Text: []string{"Its link is incomplete, or was replaced by another one."}}
		if fault.Is(err, fault.TooLarge) {
			missing = page{Title: "The form can't be shown", Text: []string{sentence(fault.Of(err).Detail)}}
		}

		renderFailure(w, r, err, missing)
		return f, nil, false
	}

	httpx.From(r.Context()).Project = project.UUID
	return f, project, true
}

// renderClosed responds that a form accepts no responses: with a state failure to a response, and
// otherwise as the API does.
func (p *Pages) renderClosed(w http.ResponseWriter, r *http.Request, f forms.Page) {
	err := f.Closed
	if r.Method != http.MethodPost {
		err = fault.Missing().WithCause(err)
	}

	renderFailure(w, r, err, page{Title: f.Name, Text: []string{sentence(fault.Of(f.Closed).Detail)},
		Theme: themeOf(f)})
}

// formDone serves the page that follows a response.
func (p *Pages) formDone(w http.ResponseWriter, r *http.Request) {
	httpx.From(r.Context()).Route = r.Method + " /f/{link}/done"

	f, _, ok := p.openForm(w, r)
	if !ok {
		return
	}

	thanks := page{Title: f.Name, Text: []string{"Thank you. Your response has arrived."}, Theme: themeOf(f)}
	if f.SuccessMessage != nil {
		thanks.Text = []string{*f.SuccessMessage}
	}
	if f.Closed == nil {
		thanks.Links = []link{{URL: *f.PagePath, Text: "Send another response"}}
	}

	render(w, r, http.StatusOK, thanks)
}

// formLogo serves a form's logo.
func (p *Pages) formLogo(w http.ResponseWriter, r *http.Request) {
	httpx.From(r.Context()).Route = r.Method + " /f/{link}/logo"

	f, project, ok := p.openForm(w, r)
	if !ok {
		return
	}

	missing := page{Title: "Not found", Text: []string{"The form has no logo."}}
	if f.LogoUUID == nil {
		renderFailure(w, r, fault.Missing(), missing)
		return
	}

	file, content, err := object.OpenLogo(r.Context(), project, p.Submissions.Blobs, *f.LogoUUID)
	if err != nil {
		renderFailure(w, r, err, missing)
		return
	}
	defer content.Close()

	h := w.Header()
	h.Set("Content-Type", file.MimeType)
	h.Set("Content-Length", strconv.FormatInt(file.Size, 10))
	h.Set("Content-Security-Policy", httpx.Sandbox)
	h.Set("Cache-Control", "private, max-age=60")

	if r.Method == http.MethodHead {
		return
	}

	if _, err := io.Copy(httpx.NewPacedWriter(w), content); err != nil {
		httpx.From(r.Context()).Err = err
		panic(http.ErrAbortHandler) // the status is already sent
	}
}

func themeOf(f forms.Page) theme {
	t := theme{Embed: f.EmbedOrigins}
	if f.LogoUUID != nil {
		t.Logo = *f.PagePath + "/logo"
	}
	if f.Color != nil {
		t.Color = *f.Color
	}
	if f.RedirectURL != nil {
		t.Redirect = *f.RedirectURL
	}

	return t
}

// viewForm returns a form's page, filled in with a failed submission's values, or with the default
// values if in is nil. id becomes the response's UUID.
func viewForm(f forms.Page, in url.Values, id uuid.UUID) page {
	view := page{Title: f.Name, Form: &form{Action: *f.PagePath, Button: "Send",
		Hidden: []hidden{{responseInput, id.String()}}}, Theme: themeOf(f)}
	if f.Description != nil {
		view.Text = []string{*f.Description}
	}
	if f.Honeypot != nil {
		view.Form.Honeypot = *f.Honeypot
	}

	for _, field := range f.Fields {
		view.Form.Inputs = append(view.Form.Inputs, inputOf(field, in))
		view.Form.Files = view.Form.Files || field.Type == "file"
	}

	return view
}

// inputOf returns a field's input.
func inputOf(f forms.Field, in url.Values) input {
	i := input{Name: f.UUID.String(), Label: f.Label, Required: f.IsRequired, Optional: !f.IsRequired}
	if f.Name != nil {
		i.Alias = *f.Name
	}
	if f.Description != nil {
		i.Help = *f.Description
	}

	values := valuesOf(f, in)
	if len(values) > 0 {
		i.Value = values[0]
	}

	switch f.Type {
	case "number":
		i.Type, i.InputMode, i.Step = "number", "decimal", "any"
		i.Min, i.Max = number(f.MinValue), number(f.MaxValue)
	case "rating":
		i.rate(f)
	case "phone":
		i.Type, i.Autocomplete = "tel", "tel"
	case "email":
		i.Type, i.Autocomplete = "email", "email"
	case "text", "textarea", "url", "file":
		i.Type = f.Type
	case "radio", "select":
		i.choose(f.Type, options(f), i.Value)
	case "multiselect":
		i.choose("checkboxes", options(f), values...)
	case "checkbox":
		i.Type, i.Optional, i.Value = "checkbox", false, ""
		if isTrue, _ := isChecked(values); isTrue {
			i.Value = "true"
		}
	default:
		i.pickDate(f)
	}

	if slices.Contains([]string{"text", "textarea", "email", "url", "phone"}, f.Type) {
		i.MinLength, i.MaxLength = number(f.MinLength), number(f.MaxLength)
	}

	return i
}

// valuesOf returns a field's input values.
func valuesOf(f forms.Field, in url.Values) []string {
	if in != nil {
		values := in[f.UUID.String()]
		if f.Name != nil {
			values = append(values, in[*f.Name]...)
		}

		return values
	}

	if f.DefaultValue == nil {
		return nil
	}

	var list []string
	if f.Type == "multiselect" && json.Unmarshal([]byte(*f.DefaultValue), &list) == nil {
		return list
	}

	return []string{*f.DefaultValue}
}

// rate shows rating values side by side if they are few.
func (i *input) rate(f forms.Field) {
	i.Type, i.InputMode, i.Step = "number", "numeric", "1"
	i.Min, i.Max = number(f.MinValue), number(f.MaxValue)

	if f.MinValue == nil || f.MaxValue == nil || *f.MaxValue-*f.MinValue >= maxRatingChoices ||
		*f.MaxValue < *f.MinValue {
		return
	}

	var values []string
	for v := *f.MinValue; v <= *f.MaxValue; v++ {
		values = append(values, strconv.FormatInt(v, 10))
	}

	i.choose("radio", values, i.Value)
	i.Row = true
}

// choose makes the input a choice between options.
func (i *input) choose(kind string, all []string, chosen ...string) {
	i.Type = kind
	for _, value := range all {
		i.Options = append(i.Options, option{value, slices.Contains(chosen, value)})
	}
}

// pickDate makes the input one of a date, time or both. Browsers send ISO 8601, which each field
// accepts beside its own format. A value with a zone stays text.
func (i *input) pickDate(f forms.Field) {
	kinds := map[string]string{"date": "date", "time": "time", "datetime": "datetime-local"}
	i.Type = kinds[f.Type]

	if f.StartDate != nil {
		i.Min = *f.StartDate
	}
	if f.EndDate != nil {
		i.Max = *f.EndDate
	}
	if f.Type != "date" {
		i.Step = "1" // a second; otherwise browsers refuse values with seconds
	}

	zoned := func(s string) bool {
		_, clock, _ := strings.Cut(s, "T")
		return strings.ContainsAny(clock, "Z+-")
	}
	if f.Type == "datetime" && (zoned(i.Value) || zoned(i.Min) || zoned(i.Max)) {
		i.Type, i.Min, i.Max, i.Step = "text", "", "", ""
	}
}

func options(f forms.Field) []string {
	var all []string
	if f.Options != nil {
		_ = json.Unmarshal([]byte(*f.Options), &all) // validated when the field was saved
	}

	return all
}

func number(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}
