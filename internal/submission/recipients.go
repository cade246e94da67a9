package submission

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/address"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/form"
	"github.com/socle-dev/socle/internal/object"
	"github.com/socle-dev/socle/internal/projectdb"
	"github.com/socle-dev/socle/internal/ratelimit"
)

// Anybody can name any address as a recipient for mails about responses. So an address first gets
// one mail with a link, without a text that the project chooses, and further mails once a person
// has confirmed it. Members are no exception: sign-up does not prove an address.

// recipientTTL is how long a confirmation link is valid.
const recipientTTL = 7 * 24 * time.Hour

// Limits for mails with confirmation links.
var (
	recipientLimit        = ratelimit.Limit{Name: "recipient confirmation", Most: 3, Window: 24 * time.Hour}
	recipientProjectLimit = ratelimit.Limit{Name: "recipient confirmation project", Most: 50, Window: 24 * time.Hour}
)

// UpdateForm is [form.UpdateForm]. It mails a link to the addresses to notify that are unconfirmed.
// It also fails with Unprocessable on logo_uuid unless that is a picture that a page can show.
func (s *Service) UpdateForm(
	ctx context.Context, p *projectdb.Project, user, id uuid.UUID, u form.FormUpdate,
) (form.Form, error) {
	if u.LogoUUID.Value != nil {
		if file, err := uuid.Parse(*u.LogoUUID.Value); err == nil {
			if err := object.CheckLogo(ctx, p, file); err != nil {
				return form.Form{}, err
			}
		}
	}

	f, err := form.UpdateForm(ctx, p, user, id, u)
	if err == nil && u.NotifyEmails.Named {
		s.askRecipients(ctx, p, f)
	}

	return f, err
}

// askRecipients mails a link to a form's unconfirmed addresses. The form is committed, so a failure
// is only logged: another update with the same addresses asks again.
func (s *Service) askRecipients(ctx context.Context, p *projectdb.Project, f form.Form) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyTimeout)
	defer cancel()

	owner, err := s.Platform.OwnerOf(ctx, p.UUID)
	if err != nil {
		s.Log.Warn("find the owner of a project", "project", p.UUID, "error", err)
		return
	}

	for _, to := range f.Unconfirmed {
		err := s.Attempts.CountFrom(ctx, recipientLimit, owner.String()+"\x00"+address.Canonical(to),
			recipientProjectLimit, p.UUID.String())
		if err == nil {
			err = s.Accounts.MailRecipient(ctx, f.UUID, to, recipientTTL)
		}
		if err != nil {
			s.Log.Warn("mail a link to confirm a recipient", "project", p.UUID, "form", f.UUID, "error", err)
		}
	}
}

// Recipient is an address that a link asks to confirm, and the form that it belongs to.
type Recipient struct {
	Email string
	Form  form.Form
	link  uuid.UUID
}

// PreviewRecipient returns the recipient in a link's token. It fails with Unprocessable on token if
// that is invalid, or the form has dropped the address.
func (s *Service) PreviewRecipient(ctx context.Context, linkToken string) (Recipient, error) {
	r, _, err := s.findRecipient(ctx, linkToken)
	return r, err
}

// ConfirmRecipient confirms the recipient in a link's token. It fails as [Service.PreviewRecipient]
// does.
func (s *Service) ConfirmRecipient(ctx context.Context, linkToken string) (Recipient, error) {
	r, p, err := s.findRecipient(ctx, linkToken)
	if err != nil {
		return r, err
	}

	if err := p.InTx(ctx, func(tx pgx.Tx) error {
		return form.ConfirmRecipient(ctx, tx, r.Email)
	}); err != nil {
		return r, err
	}

	// Last: a link that is used without effect would be lost.
	return r, s.Accounts.UseRecipientLink(ctx, r.link)
}

func (s *Service) findRecipient(ctx context.Context, linkToken string) (Recipient, *projectdb.Project, error) {
	link, err := s.Accounts.RecipientLink(ctx, linkToken)
	if err != nil {
		return Recipient{}, nil, err
	}

	project, err := s.Platform.FormProject(ctx, link.SubjectUUID.UUID)
	if err != nil {
		return Recipient{}, nil, orInvalidLink(err)
	}

	p := s.Projects.Open(project)
	f, err := form.GetForm(ctx, p, link.SubjectUUID.UUID)
	if err != nil {
		return Recipient{}, nil, orInvalidLink(err)
	}

	if !slices.Contains(f.NotifyEmails, link.Email) {
		return Recipient{}, nil, account.InvalidLink()
	}

	return Recipient{link.Email, f, link.UUID}, p, nil
}

// orInvalidLink turns NotFound into the failure for an invalid link: the link's form is gone.
func orInvalidLink(err error) error {
	if fault.Is(err, fault.NotFound) {
		return account.InvalidLink()
	}
	return err
}
