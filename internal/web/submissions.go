package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fair"
	"github.com/socle-dev/socle/internal/fault"
	forms "github.com/socle-dev/socle/internal/form"
	"github.com/socle-dev/socle/internal/httpx"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/submission"
)

const (
	maxText   = 1 << 20 // bytes in a submission without its files, as for API bodies
	maxValues = 5000    // inputs per submission

	// responseInput is the input with the UUID that a form's page chose for its response, so that a
	// form that is sent twice is stored once. HTML forms on other sites do without.
	responseInput = "_response"

	unreservedText   = 16 << 10 // submission bytes that do not count against the budget
	textMemoryFactor = 4        // memory per byte: the text, the values, the answers, a failure page
	budgetTimeout    = 2 * time.Second
)

// submitForm takes a response by an HTML form. It leads to another page, so that a reload does not
// repeat the response, or shows the form with the failures.
func (p *Pages) submitForm(w http.ResponseWriter, r *http.Request, f forms.Page, project *projectdb.Project) {
	s := &formSubmission{form: f, id: uuid.New(), values: url.Values{}, answers: forms.Answers{}}
	defer func() { s.release() }()

	if err := p.receive(w, r, s, project); err != nil {
		if isFull(f) {
			p.renderClosed(w, r, f)
			return
		}
		if fault.Of(err).Code == "already_sent" {
			s.id = uuid.New() // ID for another response, if the person sends it again
		}

		view := viewForm(f, s.values, s.id)
		view.fail(err)
		render(w, r, noteFailure(w, r, err), view)

		return
	}

	to := *f.PagePath + "/done"
	if f.RedirectURL != nil {
		to = *f.RedirectURL
	}

	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// receive reads a submission and stores its response.
func (p *Pages) receive(w http.ResponseWriter, r *http.Request, s *formSubmission, project *projectdb.Project) error {
	if project.OverQuota() {
		return projectdb.ErrOverQuota
	}

	network := httpx.Network(httpx.From(r.Context()).Client)
	s.reserve = func(n int64) (func(), error) {
		return reserve(r.Context(), p.Bodies, httpx.In(r.Context(), project.Key(r.Context())), n)
	}

	next, err := s.open(w, r)
	if err != nil {
		return err
	}

	request := httpx.From(r.Context())
	ctx := audit.Begin(r.Context(), p.AuditKey, audit.Entry{Action: "createResponse", Client: request.Client.String(),
		Request: request.ID, Target: "/forms/" + s.form.UUID.String() + "/responses", Fields: []string{"answers"},
		Project: project.UUID.String()})
	_, err = p.Submissions.Create(ctx, project, submission.Response{Form: s.form.UUID, User: uuid.Nil,
		Network: network, Answers: s.answers, ID: func() uuid.UUID { return s.id }}, next)

	return err
}

// reserve reserves memory in the body budget.
func reserve(ctx context.Context, bodies *fair.Pool, owner fair.Key, n int64) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, budgetTimeout)
	defer cancel()

	lease, err := bodies.Acquire(ctx, owner, n)
	if err != nil {
		busy := fault.New(fault.TooMany, "too many large requests are in flight; try again later").
			WithCode("too_busy").WithCause(err)
		busy.RetryAfter = budgetTimeout

		return nil, busy
	}

	return lease.Release, nil
}

// formSubmission is a response by an HTML form while it is read.
type formSubmission struct {
	form    forms.Page
	id      uuid.UUID // response ID, from the page or a new one
	values  url.Values
	answers forms.Answers // answers as their values

	count    int // number of values
	size     int64
	reserve  func(n int64) (release func(), err error)
	released func()
}

func (s *formSubmission) release() {
	if s.released != nil {
		s.released()
	}
}

// open reads a submission's values. If it may have files, open reads none of it, and next reads the
// values between the files.
func (s *formSubmission) open(w http.ResponseWriter, r *http.Request) (next submission.NextFile, err error) {
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return nil, fault.New(fault.Invalid, "the submission must be in UTF-8")
	}

	switch {
	case err == nil && media == "application/x-www-form-urlencoded":
		return nil, s.readValues(w, r)
	case err != nil || media != "multipart/form-data":
		return nil, fault.New(fault.Invalid, "the content type must be that of an HTML form")
	}

	body := &textLimiter{body: httpx.NewPacedReader(w, r), remaining: maxText}
	r.Body = body

	parts, err := r.MultipartReader()
	if err != nil {
		return nil, malformed(err)
	}

	return func() (*submission.File, error) { return s.nextFile(parts, body) }, nil
}

// readValues reads a submission without files.
func (s *formSubmission) readValues(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength > maxText {
		return errTooLarge()
	}

	// The length that was announced, or else the largest.
	length := r.ContentLength
	if length < 0 {
		length = maxText
	}
	if err := s.grow(length); err != nil {
		return err
	}

	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxText))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return errTooLarge().WithCause(err)
	}
	if err != nil {
		return malformed(err)
	}

	if bytes.Count(text, []byte("&")) >= maxValues {
		return errTooLarge()
	}

	values, err := url.ParseQuery(string(text))
	if err != nil {
		return malformed(err)
	}

	for name, all := range values {
		for _, value := range all {
			if err := s.add(name, value); err != nil {
				return err
			}
		}
	}

	s.answer()

	return nil
}

// grow reserves memory when a submission becomes large.
func (s *formSubmission) grow(n int64) error {
	if s.size += n; s.size <= unreservedText || s.released != nil {
		return nil
	}

	var err error
	s.released, err = s.reserve(maxText * textMemoryFactor)

	return err
}

// nextFile reads values up to the next file.
func (s *formSubmission) nextFile(parts *multipart.Reader, body *textLimiter) (*submission.File, error) {
	for {
		body.unlimited = false

		part, err := parts.NextRawPart()
		if err == io.EOF {
			s.answer()
			return nil, nil
		}
		if err != nil {
			return nil, malformed(err)
		}

		name := part.FormName()
		if field := s.field(name); part.FileName() != "" || (field != nil && field.Type == "file") {
			body.unlimited = true // the container limits the size of a file
			return &submission.File{Field: name, Name: part.FileName(), MimeType: part.Header.Get("Content-Type"),
				Content: fileReader{part}}, nil
		}

		value, err := io.ReadAll(part)
		if err != nil {
			return nil, malformed(err)
		}

		if err := s.grow(int64(len(value))); err != nil {
			return nil, err
		}
		if err := s.add(name, string(value)); err != nil {
			return nil, err
		}
	}
}

// fileReader reads a submission's file. A truncated file is a malformed submission.
type fileReader struct{ part *multipart.Part }

// Read reads the file.
func (f fileReader) Read(b []byte) (int, error) {
	n, err := f.part.Read(b)
	if err != nil && err != io.EOF {
		err = malformed(err)
	}

	return n, err
}

// textLimiter bounds a body's bytes outside its files.
type textLimiter struct {
	body      io.ReadCloser
	remaining int64
	unlimited bool // within a file
}

// Read fails beyond the limit.
func (l *textLimiter) Read(b []byte) (int, error) {
	if !l.unlimited && l.remaining <= 0 {
		return 0, errTooLarge()
	}

	n, err := l.body.Read(b)
	if !l.unlimited {
		l.remaining -= int64(n)
	}

	return n, err
}

// Close closes the body.
func (l *textLimiter) Close() error { return l.body.Close() }

func errTooLarge() *fault.Error {
	return fault.New(fault.TooLarge, "the submission has more than %d bytes or %d values without its files", maxText,
		maxValues)
}

// malformed returns the failure for a submission that can't be read to its end.
func malformed(err error) error {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e
	}
	if errors.Is(err, httpx.ErrTooSlow) {
		return fault.New(fault.TooSlow, "the submission arrives too slowly").WithCause(err)
	}

	return fault.New(fault.Invalid, "the submission is incomplete or malformed").WithCause(err)
}

// field returns the field with a UUID or a name, or nil.
func (s *formSubmission) field(name string) *forms.Field {
	i := slices.IndexFunc(s.form.Fields, func(f forms.Field) bool {
		return f.UUID.String() == name || (f.Name != nil && *f.Name == name)
	})
	if i < 0 {
		return nil
	}

	return &s.form.Fields[i]
}

// add adds an input's value. Names that begin with _ belong to the HTML form, not to the response.
func (s *formSubmission) add(name, value string) error {
	if s.count++; s.count > maxValues {
		return errTooLarge()
	}
	if notText(name) || notText(value) {
		return fault.New(fault.Invalid, "the submission must be text without NUL")
	}
	if name == responseInput {
		if id, err := uuid.Parse(value); err == nil {
			s.id = id
		}
	}
	if strings.HasPrefix(name, "_") {
		return nil
	}

	value = strings.ReplaceAll(value, "\r\n", "\n")
	s.values.Add(name, value)

	return nil
}

// answer fills in the answers when all values are read.
func (s *formSubmission) answer() {
	for name, values := range s.values {
		s.answers[name] = answerOf(s.field(name), values)
	}
}

// answerOf returns the answer for an input's values as JSON.
func answerOf(f *forms.Field, values []string) jsontext.Value {
	switch {
	case f != nil && f.Type == "multiselect":
		return encode(slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" }))
	case f != nil && f.Type == "checkbox":
		if isTrue, ok := isChecked(values); ok {
			return encode(isTrue)
		}
	case len(values) > 1:
		return encode(values) // refused as no text
	}

	return encode(values[len(values)-1])
}

// isChecked reports whether a checkbox's input values mean true. The last one counts: a hidden
// input before it may stand for false. ok is false for other values.
func isChecked(values []string) (isTrue, ok bool) {
	if len(values) == 0 {
		return false, true
	}

	switch values[len(values)-1] {
	case "on", "true", "1", "yes":
		return true, true
	case "", "off", "false", "0", "no":
		return false, true
	}

	return false, false
}

func encode(v any) jsontext.Value {
	text, err := json.Marshal(v)
	if err != nil {
		panic("web: " + err.Error()) // strings and booleans
	}

	return text
}
