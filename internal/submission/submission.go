// Package submission takes responses from respondents: by the API and by a form's page. It admits
// them by a key or the form's public link, counts them, stores their files and enqueues mails about
// them.
//
// Forms, answer rules and response rows belong to package form, files to package object.
package submission

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/appkey"
	"github.com/socle-dev/socle/internal/blob"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/form"
	"github.com/socle-dev/socle/internal/platform"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/ratelimit"
)

// Response limits.
var (
	networkLimit = ratelimit.Limit{Name: "response network", Most: 60, Window: time.Minute}
	formLimit    = ratelimit.Limit{Name: "response form", Most: 600, Window: time.Minute}
)

// Config has a [Service]'s dependencies.
type Config struct {
	Platform *platform.Store
	Projects *projectdb.Registry
	Blobs    *blob.Store
	Attempts ratelimit.Attempts
	Accounts *account.Service
	Notifier *form.Notifier
	Log      *slog.Logger
}

// Service takes responses to forms. It is safe for concurrent use.
type Service struct {
	Config
	fields form.FieldCache
}

// New returns a service.
func New(c Config) *Service { return &Service{Config: c, fields: form.NewFieldCache()} }

// Response is a response that a respondent sends.
type Response struct {
	Form    uuid.UUID
	User    uuid.UUID // zero: not a member
	Network string    // key of the client's network for rate limits
	Answers form.Answers

	// ID returns the response's UUID, under which a repetition stores nothing. It is called when
	// all answers have been read. nil: a new UUID.
	ID func() uuid.UUID
}

// ProjectByKey returns a form's project for a respondent with a key in that project. It fails with
// NotFound for an unknown form and for another project's key.
func (s *Service) ProjectByKey(ctx context.Context, id uuid.UUID, key string) (uuid.UUID, error) {
	return appkey.FindFormProject(ctx, s.Platform.DB(), id, key)
}

// ProjectByLink returns a form's project for a respondent with the form's public link. It fails
// with NotFound for an unknown form and for an invalid link.
func (s *Service) ProjectByLink(ctx context.Context, id uuid.UUID, link string) (uuid.UUID, error) {
	project, err := s.Platform.FormProject(ctx, id)
	if err != nil {
		return project, err
	}

	return project, form.CheckLink(ctx, s.Projects.Open(project), id, link)
}

// Page returns a form for its page and its project, by the last segment in the page's path. It
// fails with NotFound for an unknown form and for an invalid link.
func (s *Service) Page(ctx context.Context, segment string) (form.Page, *projectdb.Project, error) {
	id, link, ok := form.ParsePageLink(segment)
	if !ok {
		return form.Page{}, nil, fault.Missing()
	}

	project, err := s.Platform.FormProject(ctx, id)
	if err != nil {
		return form.Page{}, nil, err
	}

	p := s.Projects.Open(project)
	page, err := form.GetPage(ctx, p, id, link)

	return page, p, err
}

// Create stores a complete response, with the files that next returns; next may be nil. A
// repetition has the same success, without a receipt. It fails as [form.CreateResponse] does
// otherwise, with Unprocessable on a file, and with TooMany beyond the limits.
func (s *Service) Create(ctx context.Context, p *projectdb.Project, r Response, next NextFile) (form.Receipt, error) {
	if err := s.count(ctx, r); err != nil {
		return form.Receipt{}, err
	}

	id, err := uuid.NewV7()
	if err != nil {
		return form.Receipt{}, err
	}
	if r.ID == nil {
		r.ID = func() uuid.UUID { return id }
	}

	var receipt form.Receipt
	if next != nil {
		receipt, err = s.withFiles(ctx, p, id.String(), r, next)
	} else {
		receipt, err = form.CreateResponse(ctx, p, s.fields, r.Form, r.ID(), r.Answers, form.Attachments{})
	}
	if errors.Is(err, form.ErrRepeated) {
		return form.Receipt{}, nil
	}

	s.notify(ctx, p, receipt, err)
	return receipt, err
}

// Start stores a partial response and returns the token to continue it. It fails as
// [form.StartResponse] does, and with TooMany beyond the limits.
func (s *Service) Start(ctx context.Context, p *projectdb.Project, r Response) (form.Receipt, string, error) {
	if err := s.count(ctx, r); err != nil {
		return form.Receipt{}, "", err
	}

	id, err := uuid.NewV7()
	if err != nil {
		return form.Receipt{}, "", err
	}

	return form.StartResponse(ctx, p, r.Form, id, r.Answers)
}

// Continue adds answers to a partial response, and completes it if complete. It fails as
// [form.ContinueResponse] does, and with TooMany beyond the limits.
func (s *Service) Continue(
	ctx context.Context, p *projectdb.Project, id uuid.UUID, token string, r Response, complete bool,
) (form.Receipt, error) {
	if err := s.count(ctx, r); err != nil {
		return form.Receipt{}, err
	}

	receipt, err := form.ContinueResponse(ctx, p, r.Form, id, token, r.Answers, complete)
	s.notify(ctx, p, receipt, err)

	return receipt, err
}

// count counts a response against the limits.
func (s *Service) count(ctx context.Context, r Response) error {
	return s.Attempts.CountFrom(ctx, networkLimit, r.Network, formLimit, r.Form.String())
}

// notifyTimeout bounds enqueueing a job after a response.
const notifyTimeout = 5 * time.Second

// notify enqueues mails about a stored response. The response is committed, so a failure is only
// logged: the next sweep repeats it.
func (s *Service) notify(ctx context.Context, p *projectdb.Project, r form.Receipt, failure error) {
	if failure != nil || !r.Notify {
		return
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyTimeout)
	defer cancel()

	if err := s.Notifier.Enqueue(ctx, p.UUID, r.FormUUID); err != nil {
		s.Log.Warn("enqueue mails about a response", "project", p.UUID, "form", r.FormUUID, "error", err)
	}
}
