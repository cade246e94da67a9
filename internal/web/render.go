package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/httpx"
)

//go:embed assets
var assets embed.FS

//go:embed page.html
var pageSource string

// pageTemplate is every page's layout. It escapes tenants' texts by their place: in an element, an
// attribute, a URL.
var pageTemplate = template.Must(template.New("page").Parse(pageSource))

// page is a page's content.
type page struct {
	Title   string
	Text    []string // paragraphs
	Problem string   // why the last submission failed, a sentence
	Form    *form    // nil: none
	Step    link     // where most people go next, as a button; the zero value: nowhere
	Links   []link
	Aside   string // last line
	Theme   theme
}

// theme is a page's appearance, and where it may be shown. The zero value is that of the platform's
// own pages.
type theme struct {
	Logo     string   // picture path
	Color    string   // accent, #rrggbb
	Embed    []string // origins whose pages may show the page in a frame
	Redirect string   // URL to which a submission may lead
}

// link is a link to another page.
type link struct{ URL, Text, About string }

// form is a form in a page. It is submitted by POST.
type form struct {
	Action, Button string
	Decline        string // second button, which submits declineName without the inputs; "": none
	Hidden         []hidden
	Inputs         []input
	Honeypot       string // name for an input that people do not see; "": none
	Files          bool   // it has inputs for files
}

// declineName is the parameter name that a form's second button submits. The template has it too.
const declineName = "decline"

// hidden is an input that a person does not see.
type hidden struct{ Name, Value string }

// input is a form input with its label.
type input struct {
	Name, Label  string
	Alias        string // other name, in errors
	Type         string // type attribute for the input element, or textarea, select, radio, checkboxes
	Help         string // below the label
	Error        string // sentence
	Value        string // never a password's
	Options      []option
	Row          bool // the options stand side by side
	Autocomplete string
	InputMode    string

	Min, Max, Step       string
	MinLength, MaxLength string

	Required bool
	Optional bool // says so next to the label
	ReadOnly bool
	Focus    bool
}

// option is a choice of an input.
type option struct {
	Value  string
	Chosen bool
}

// named reports whether an error's field is the input.
func (i *input) named(field string) bool {
	name := strings.TrimPrefix(field, "answers.")
	return name == i.Name || (i.Alias != "" && name == i.Alias)
}

// fail shows a failure on the page: next to the inputs that it names, or else above the form. It
// moves the focus to the first invalid input.
func (p *page) fail(err error) {
	e := fault.Of(err)
	var others []string
	for _, f := range e.Fields {
		i := slices.IndexFunc(p.Form.Inputs, func(in input) bool { return in.named(f.Name) })
		if i < 0 {
			name := f.Name
			if answer, ok := strings.CutPrefix(name, "answers."); ok {
				name = "“" + answer + "”"
			}

			others = append(others, sentence(name+" "+f.Message))
		} else {
			p.Form.Inputs[i].Error = sentence(f.Message)
		}
	}

	first := slices.IndexFunc(p.Form.Inputs, func(in input) bool { return in.Error != "" })
	switch {
	case e.Kind == fault.Internal:
		p.Problem = internalError
	case first < 0 && len(others) > 0:
		p.Problem = strings.Join(others, " ")
	case first < 0:
		p.Problem = sentence(e.Detail)
	default:
		p.Form.Inputs[first].Focus = true
		p.Problem = strings.Join(append([]string{"Correct the marked fields."}, others...), " ")
	}

	if p.Form.Files {
		p.Problem += " Choose files again."
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

// policy returns a page's Content-Security-Policy. It allows the server's own stylesheet and
// pictures, the page's inline style, its form's submission, and frames on the pages of embedding
// origins. It forbids everything else, such as scripts and requests to other hosts.
func (p *page) policy(style template.CSS) string {
	styles, forms, frames := "'self'", "'self'", "'none'"
	if style != "" {
		sum := sha256.Sum256([]byte(style))
		styles += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	if u, err := url.Parse(p.Theme.Redirect); err == nil && u.Scheme != "" && !strings.ContainsAny(u.Host, " ;,") {
		forms += " " + u.Scheme + ":" // browsers apply the policy to redirects too
		if u.Scheme == "http" || u.Scheme == "https" {
			forms += "//" + u.Host
		}
	}
	if len(p.Theme.Embed) > 0 {
		frames = strings.Join(p.Theme.Embed, " ")
	}

	return "default-src 'none'; style-src " + styles + "; img-src 'self'; form-action " + forms +
		"; base-uri 'none'; frame-ancestors " + frames
}

// style returns a theme's inline style, or "".
func (t theme) style() template.CSS {
	var r, g, b uint8
	if n, err := fmt.Sscanf(t.Color, "#%02x%02x%02x", &r, &g, &b); n != 3 || err != nil {
		return ""
	}

	foreground := "#fff"
	if luminance(r, g, b) > 0.179 { // black has the higher contrast
		foreground = "#000"
	}

	return template.CSS(fmt.Sprintf(":root{--accent:#%02x%02x%02x;--on-accent:%s}", r, g, b, foreground))
}

// luminance returns a color's relative luminance, as WCAG defines it.
func luminance(r, g, b uint8) float64 {
	linear := func(c uint8) float64 {
		v := float64(c) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}

	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}

// write writes a page as HTML.
func (p page) write(w io.Writer, style template.CSS) error {
	return pageTemplate.Execute(w, struct {
		page
		Stylesheet string
		Style      template.CSS
	}{p, stylesheet, style})
}

// render responds with a page.
func render(w http.ResponseWriter, r *http.Request, status int, p page) {
	style := p.Theme.style()

	var content bytes.Buffer
	if err := p.write(&content, style); err != nil {
		httpx.From(r.Context()).Err = err
		http.Error(w, internalError, http.StatusInternalServerError)
		return
	}

	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", p.policy(style))
	// Not no-referrer: browsers then send "null" as a submission's origin. The URL of a page
	// contains the token of its link, for this server only.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)

	if r.Method != http.MethodHead {
		_, _ = w.Write(content.Bytes()) // fails only if the client has disconnected
	}
}

// renderFailure responds with the page for a failure that can't be corrected by another submission.
func renderFailure(w http.ResponseWriter, r *http.Request, err error, p page) {
	if fault.Is(err, fault.Internal) {
		p = page{Title: "Something went wrong", Text: []string{internalError}, Theme: p.Theme,
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

// statuses are the failure statuses. Unauthenticated is not 401, which demands an Authorization
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

func refuseMethod(w http.ResponseWriter, r *http.Request, methods string) {
	w.Header().Set("Allow", methods)
	render(w, r, http.StatusMethodNotAllowed, page{Title: "Method not allowed",
		Text: []string{"This page supports only " + methods + "."}})
}

// stylesheet is the stylesheet URL. It changes with the content.
var stylesheet = func() string {
	css, err := assets.ReadFile("assets/page.css")
	if err != nil {
		panic("web: " + err.Error())
	}

	sum := sha256.Sum256(css)
	return "/assets/page.css?v=" + hex.EncodeToString(sum[:6])
}()

// asset serves a static file.
func asset(w http.ResponseWriter, r *http.Request) {
	httpx.From(r.Context()).Route = "GET /assets/{name}"

	content, err := assets.ReadFile(path.Join("assets", r.PathValue("name")))
	if err != nil {
		renderFailure(w, r, fault.Missing().WithCause(err), page{Title: "Not found",
			Text: []string{"There is no such file."}})
		return
	}

	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(r.PathValue("name"))))
	// Not longer: during an upgrade, a server with the other release may have answered.
	w.Header().Set("Cache-Control", "public, max-age=3600")
	_, _ = w.Write(content)
}
