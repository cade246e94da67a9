package web

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
)

// maxBody is the maximum size of a submission in bytes, as for anonymous API requests.
const maxBody = 16 << 10

// linkPage is the page behind links with one purpose. GET shows it, POST executes the purpose. The
// link's token authorizes the change, so another site can't forge a submission. Those of other
// origins are refused nevertheless.
type linkPage struct {
	*Pages
	path   string
	action string // action in the audit log: the operation ID for the same purpose

	// show returns the page for a token. It changes nothing.
	show func(ctx context.Context, linkToken string) (page, error)
	// submit executes the link's purpose, and returns the result page.
	submit func(ctx context.Context, c account.Client, in url.Values) (page, error)
	// invalid is shown if show fails.
	invalid page
}

// ServeHTTP serves the page.
func (l *linkPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	httpx.From(r.Context()).Route = r.Method + " " + l.path

	switch r.Method {
	case http.MethodGet, http.MethodHead:
		view, err := l.show(r.Context(), r.URL.Query().Get("token"))
		if err != nil {
			renderFailure(w, r, err, l.invalid)
			return
		}

		render(w, r, http.StatusOK, view)
	case http.MethodPost:
		l.post(w, r)
	default:
		httpx.From(r.Context()).Route = l.path
		refuseMethod(w, r, "GET, HEAD, POST")
	}
}

// post serves a submission.
func (l *linkPage) post(w http.ResponseWriter, r *http.Request) {
	in, err := l.readForm(w, r)
	if err != nil {
		renderFailure(w, r, err, page{Title: "The form can't be submitted",
			Text: []string{sentence(fault.Of(err).Detail)}})
		return
	}

	done, err := l.submit(l.auditSubmission(r, in), clientOf(r), in)
	if err == nil {
		render(w, r, http.StatusOK, done)
		return
	}

	view, invalid := l.show(r.Context(), in.Get("token"))
	if invalid != nil {
		renderFailure(w, r, invalid, l.invalid)
		return
	}

	view.fill(in)
	view.fail(err)
	render(w, r, noteFailure(w, r, err), view)
}

// readForm reads a submission. It fails with Forbidden if a page from another origin sent it.
func (p *Pages) readForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	if err := p.crossOrigin.Check(r); err != nil {
		return nil, fault.New(fault.Forbidden, "the form was submitted by another site").WithCause(err)
	}

	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if strings.TrimSpace(media) != "application/x-www-form-urlencoded" {
		return nil, fault.New(fault.Invalid, "the content type must be application/x-www-form-urlencoded")
	}

	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if err := r.ParseForm(); err != nil {
		return nil, fault.New(fault.Invalid, "the submission is malformed or larger than %d bytes", maxBody).
			WithCause(err)
	}

	for _, values := range r.PostForm {
		if slices.ContainsFunc(values, notText) {
			return nil, fault.New(fault.Invalid, "the submission must be text without NUL")
		}
	}

	return r.PostForm, nil
}

// notText reports whether PostgreSQL would reject a value.
func notText(s string) bool { return !utf8.ValidString(s) || strings.ContainsRune(s, 0) }

// auditSubmission returns a context in which a submission's change appends its entry to the audit
// log.
func (l *linkPage) auditSubmission(r *http.Request, in url.Values) context.Context {
	request := httpx.From(r.Context())
	return audit.Begin(r.Context(), l.AuditKey, audit.Entry{Action: l.action, Client: request.Client.String(),
		Request: request.ID, Target: l.path, Fields: slices.DeleteFunc(slices.Sorted(maps.Keys(in)),
			func(name string) bool { return !slices.Contains(knownInputs, name) })})
}

// knownInputs are the input names that the audit log may contain.
var knownInputs = []string{"token", "username", "email", "password", "code"}

// clientOf returns a request's origin.
func clientOf(r *http.Request) account.Client {
	request := httpx.From(r.Context())
	return account.Client{
		Address: request.Client.String(), Network: httpx.Network(request.Client), Agent: request.UserAgent,
	}
}

// fill sets input values from a submission, except passwords and codes.
func (p *page) fill(in url.Values) {
	for i := range p.Form.Inputs {
		if f := &p.Form.Inputs[i]; f.Type != "password" && f.Autocomplete != "one-time-code" && !f.ReadOnly {
			f.Value = in.Get(f.Name)
		}
	}
}
