package endusers

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/enduser"
	"github.com/socle-dev/socle/internal/enduser/message"
	"github.com/socle-dev/socle/internal/enduser/rules"
	"github.com/socle-dev/socle/internal/operation"
	"github.com/socle-dev/socle/internal/projectdb"
)

// registerMails registers the operations on mails to end users.
func (s *Server) registerMails(p *operation.Pipeline) {
	operation.HandleInProject(p, inviteEndUser, s.inviteEndUser, nil)
	operation.HandleInProject(p, sendEndUserMail, s.sendEndUserMail, s.findMailedEndUser)
	operation.HandleInProject(p, previewMail, s.previewMail, nil)
	operation.HandleInProject(p, sendTestMail, s.sendTestMail, nil)
	operation.HandleInProject(p, listMails, s.listMails, nil)
	operation.HandleInProject(p, getMail, s.getMail, nil)
}

var inviteEndUser = operation.Operation{
	ID: "inviteEndUser", Method: "POST", Path: "/projects/{projectUUID}/end-users/invite",
	Summary: "Invite an end user",
	Access:  operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 422, 429, 500},
	Notes: "Creates the user and mails a link with which to set a password. Until it is followed, another invitation " +
		"replaces it. The [limits of mails](api.md#mails) apply.",
	Example: `{"email": "grace@example.com", "user_metadata": {"name": "Grace"}}`,
}

type inviteEndUserInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Body    struct {
		Email        string          `json:"email" minLength:"1" maxLength:"254"`
		UserMetadata *jsontext.Value `json:"user_metadata,omitempty" doc:"Metadata of the new user."`
		RedirectTo   string          `json:"redirect_to,omitempty" maxLength:"2000" doc:"Page of your application behind the link. Default: site_url, also for an address that the settings do not allow."`
	}
}

func (s *Server) inviteEndUser(
	ctx context.Context, p *projectdb.Project, in *inviteEndUserInput,
) (enduser.Account, error) {
	d, err := s.EndUsers.Open(ctx, p.UUID)
	if err != nil {
		return enduser.Account{}, err
	}

	var data []byte
	if in.Body.UserMetadata != nil {
		data = []byte(*in.Body.UserMetadata)
	}

	u, err := d.InviteByMember(ctx, in.Body.Email, data, in.Body.RedirectTo, endUserClient(ctx))
	return u.Account(), asRule(err)
}

var sendEndUserMail = operation.Operation{
	ID: "sendEndUserMail", Method: "POST", Path: "/projects/{projectUUID}/end-users/{endUserUUID}/mails",
	Summary: "Mail a link to an end user",
	Access:  operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 422, 429, 500},
	Notes: "Mails a link to set a new password, to sign in, or to confirm the address, as if the user had asked for " +
		"it. The [limits of mails](api.md#mails) apply.",
	Example: `{"kind": "recovery"}`,
}

type sendEndUserMailInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	UUID    uuid.UUID `path:"endUserUUID" format:"uuid"`
	Body    struct {
		Kind       string `json:"kind" enum:"recovery,magic_link,confirmation"`
		RedirectTo string `json:"redirect_to,omitempty" maxLength:"2000" doc:"Page of your application behind the link. Default: site_url, also for an address that the settings do not allow."`
	}
}

func (s *Server) findMailedEndUser(ctx context.Context, p *projectdb.Project, in *sendEndUserMailInput) error {
	_, err := s.getEndUser(ctx, p, &endUserInput{UUID: in.UUID})
	return err
}

func (s *Server) sendEndUserMail(
	ctx context.Context, p *projectdb.Project, in *sendEndUserMailInput,
) (enduser.Account, error) {
	d, err := s.EndUsers.Open(ctx, p.UUID)
	if err != nil {
		return enduser.Account{}, err
	}

	u, err := d.SendMail(ctx, in.UUID, in.Body.Kind, in.Body.RedirectTo, endUserClient(ctx))
	return u.Account(), asRule(err)
}

// mailDraft is a mail to look at.
type mailDraft struct {
	Kind     string          `json:"kind" enum:"confirmation,invite,magic_link,recovery,email_change,reauthentication"`
	Language string          `json:"language,omitempty" maxLength:"35" doc:"Language of the text, such as de. Default: the text for all languages."`
	Text     *rules.MailText `json:"text,omitempty" doc:"Text to try. Default: the stored one."`
}

func (m mailDraft) draft() enduser.MailDraft {
	return enduser.MailDraft{Kind: m.Kind, Language: m.Language, Text: m.Text}
}

// mailPreview is a mail with example values.
type mailPreview struct {
	Subject string `json:"subject"`
	HTML    string `json:"html"`
	Text    string `json:"text"`
}

var previewMail = operation.Operation{
	ID: "previewMail", Method: "POST", Path: "/projects/{projectUUID}/mail-preview",
	Summary: "Preview a mail to end users",
	Access:  operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 422, 500}, Success: 200,
	Notes:   "Fills a text with example values. Nothing is sent or stored.",
	Example: `{"kind": "recovery", "text": {"subject": "New password", "text": "{{ .ConfirmationURL }}"}}`,
}

type previewMailInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Body    mailDraft
}

func (s *Server) previewMail(ctx context.Context, p *projectdb.Project, in *previewMailInput) (mailPreview, error) {
	d, err := s.EndUsers.Open(ctx, p.UUID)
	if err != nil {
		return mailPreview{}, err
	}

	m, err := d.PreviewMail(in.Body.draft())
	return mailPreview{m.Subject, m.HTML, m.Text}, err
}

var sendTestMail = operation.Operation{
	ID: "sendTestMail", Method: "POST", Path: "/projects/{projectUUID}/test-mails", Summary: "Mail yourself an example",
	Access: operation.ProjectInPath(account.Admin), Errors: []int{400, 401, 403, 404, 422, 429, 500},
	Timeout: operation.LongTimeout,
	Notes: "Sends a mail with example values to the address of your account, by the project's mail server, and waits " +
		"for that server: `mail_not_sent` says why it did not accept the mail. Its link and its code are valid for " +
		"nobody. The hook send_email is not called. The [limits of mails](api.md#mails) apply.",
	Example: `{"kind": "recovery"}`,
}

type sendTestMailInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	Body    mailDraft
}

// testMail has the address that a mail was sent to.
type testMail struct {
	Recipient string `json:"recipient"`
}

func (s *Server) sendTestMail(ctx context.Context, p *projectdb.Project, in *sendTestMailInput) (testMail, error) {
	d, err := s.EndUsers.Open(ctx, p.UUID)
	if err != nil {
		return testMail{}, err
	}

	member, err := s.Accounts.CurrentUser(ctx, operation.Caller(ctx).User)
	if err != nil {
		return testMail{}, err
	}

	err = d.SendTestMail(ctx, in.Body.draft(), member.Email, endUserClient(ctx))
	return testMail{member.Email}, asRule(err)
}

var listMails = operation.Operation{
	ID: "listMails", Method: "GET", Path: "/projects/{projectUUID}/mails", Summary: "List unsent mails and text messages to end users",
	Access: operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
	Notes: "Without a mail server (`SOCLE_SMTP_URL`), the newest 200 mails to a project's end users are kept here, and text messages " +
		"without a sender. With one, those that it did not accept are here without their text, and `error` says why.",
}

type listMailsInput struct {
	operation.PageQuery
	Sort    string    `query:"sort" enum:"createdAt,recipient" default:"createdAt"`
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
}

func (s *Server) listMails(
	ctx context.Context, p *projectdb.Project, in *listMailsInput,
) (operation.Answer[[]message.Mail, operation.PageMetadata], error) {
	page := in.By(in.Sort)
	mails, total, err := message.Mailbox{Project: p}.List(ctx, page)

	return operation.ListOf(mails, page, total), err
}

var getMail = operation.Operation{
	ID: "getMail", Method: "GET", Path: "/projects/{projectUUID}/mails/{mailUUID}",
	Summary: "Get an unsent mail to an end user",
	Access:  operation.ProjectInPath(account.Admin), Errors: operation.RestrictedErrors,
}

type getMailInput struct {
	Project uuid.UUID `path:"projectUUID" format:"uuid"`
	UUID    uuid.UUID `path:"mailUUID" format:"uuid"`
}

func (s *Server) getMail(ctx context.Context, p *projectdb.Project, in *getMailInput) (message.Mail, error) {
	return message.Mailbox{Project: p}.Get(ctx, in.UUID)
}
