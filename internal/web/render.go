package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"mime"
	"net/http"
	"path"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
)

//go:embed templates/page.html
var pageTemplate string

//go:embed assets
var assets embed.FS

var layout = template.Must(template.New("page").Parse(pageTemplate))

// page is the content of a page.
type page struct {
	Title   string
	Text    []string // paragraphs
	Problem string   // why the last submission failed, a sentence
	Form    *form    // nil: none
	Links   []link
	Aside   string // last line
}

// link is a link to another page.
type link struct{ URL, Text, About string }

// form is a form of a page. It is submitted by POST.
type form struct {
	Action, Button string
	Hidden         []hidden
	Inputs         []input
}

// hidden is an input that a person does not see.
type hidden struct{ Name, Value string }

// input is an input of a form with its label.
type input struct {
	Name, Label  string
	Type         string // of HTML's input element
	Help         string // below the label
	Error        string // sentence
	Value        string // never that of a password
	Autocomplete string
	InputMode    string
	Required     bool
	ReadOnly     bool
	Focus        bool
}

// fail shows a failure on the page: next to the inputs that it names, or else above the form. It
// moves the focus to the first invalid input.
func (p *page) fail(err error) {
	e := fault.Of(err)
	matched := false
	for _, f := range e.Fields {
		for i := range p.Form.Inputs {
			if in := &p.Form.Inputs[i]; in.Name == f.Name {
				in.Error, in.Focus = sentence(f.Message), !matched
				matched = true
			}
		}
	}

	switch {
	case matched:
		p.Problem = "Nothing was changed. Correct the marked fields."
	case e.Kind == fault.Internal:
		p.Problem = internalError
	default:
		p.Problem = sentence(e.Detail)
	}
}

const internalError = "An internal error occurred. Try again later."

// sentence converts a clause to a sentence.
func sentence(clause string) string {
	first, size := utf8.DecodeRuneInString(clause)
	if size == 0 {
		return ""
	}

	return string(unicode.ToUpper(first)) + clause[size:] + "."
}

// policy allows a page the server's own stylesheet and pictures and the submission of its form. It
// forbids scripts, requests to other hosts, and frames on other pages.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; " +
	"frame-ancestors 'none'"

// render responds with a page.
func render(w http.ResponseWriter, r *http.Request, status int, p page) {
	var b bytes.Buffer
	if err := layout.Execute(&b, view{p, stylesheet}); err != nil {
		panic("web: " + err.Error()) // templates and data are ours
	}

	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	// Not no-referrer: browsers then send "null" as the origin of a submission. The URL of a page
	// contains the token of its link, for this server only.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)

	if r.Method != http.MethodHead {
		_, _ = w.Write(b.Bytes()) // fails only if the client has disconnected
	}
}

// view is the data of the template.
type view struct {
	page
	Stylesheet string
}

// renderFailure responds with a page for a failure that ends what the person was doing.
func renderFailure(w http.ResponseWriter, r *http.Request, err error, p page) {
	if fault.Is(err, fault.Internal) {
		p = page{Title: "Something went wrong", Text: []string{internalError},
			Aside: "Request " + httpx.From(r.Context()).ID}
	}

	render(w, r, noteFailure(w, r, err), p)
}

// noteFailure records a failure for the log and returns its status.
func noteFailure(w http.ResponseWriter, r *http.Request, err error) int {
	httpx.From(r.Context()).Err = err

	e := fault.Of(err)
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter.Seconds())+1))
	}

	if status, ok := statuses[e.Kind]; ok {
		return status
	}

	return http.StatusInternalServerError
}

// statuses are the statuses of failures. Unauthenticated is not 401, which demands an Authorization
// header.
var statuses = map[fault.Kind]int{
	fault.Invalid:         http.StatusBadRequest,
	fault.Unprocessable:   http.StatusUnprocessableEntity,
	fault.Unauthenticated: http.StatusForbidden,
	fault.Forbidden:       http.StatusForbidden,
	fault.NotFound:        http.StatusNotFound,
	fault.Conflict:        http.StatusConflict,
	fault.TooLarge:        http.StatusRequestEntityTooLarge,
	fault.TooSlow:         http.StatusRequestTimeout,
	fault.TooMany:         http.StatusTooManyRequests,
	fault.Unavailable:     http.StatusServiceUnavailable,
}

// readOnly returns a handler that serves GET and HEAD.
func readOnly(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			refuseMethod(w, r, "GET, HEAD")
			return
		}

		h(w, r)
	})
}

func refuseMethod(w http.ResponseWriter, r *http.Request, allowed string) {
	w.Header().Set("Allow", allowed)
	render(w, r, http.StatusMethodNotAllowed, page{Title: "Method not allowed",
		Text: []string{"This page supports only " + allowed + "."}})
}

// stylesheet is the URL of the stylesheet. It changes with the content.
var stylesheet = func() string {
	css, err := assets.ReadFile("assets/page.css")
	if err != nil {
		panic("web: " + err.Error())
	}

	sum := sha256.Sum256(css)
	return "/assets/page.css?v=" + hex.EncodeToString(sum[:6])
}()

// asset serves a file of the pages.
func asset(w http.ResponseWriter, r *http.Request) {
	httpx.From(r.Context()).Route = "GET /assets/{name}"

	content, err := assets.ReadFile(path.Join("assets", r.PathValue("name")))
	if err != nil {
		renderFailure(w, r, fault.Missing().WithCause(err), page{Title: "Not found",
			Text: []string{"There is no such file."}})
		return
	}

	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(r.PathValue("name"))))
	// Not longer: during an upgrade, a server of the other release may have answered.
	w.Header().Set("Cache-Control", "public, max-age=3600")
	_, _ = w.Write(content)
}
