package account

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// MailRecipient mails a link to an address that a form names for mails about its responses. The
// mail has no text of the project's choice.
func (s *Service) MailRecipient(ctx context.Context, form uuid.UUID, email string, ttl time.Duration) error {
	link, err := s.CreateLink(ctx, NewLink{Purpose: Recipient, Subject: someUUID(form), Email: email, TTL: ttl})
	if err != nil {
		return err
	}

	_, err = s.Queue.Insert(ctx, Mail{Template: "form-recipient", To: email, Link: someUUID(link.UUID),
		Share: mailShare(ctx, email)})
	return err
}

// RecipientLink returns the link of a token that confirms a recipient. Its subject is the form. It
// fails as [Service.UseLink] does.
func (s *Service) RecipientLink(ctx context.Context, linkToken string) (Link, error) {
	return s.findLink(ctx, Recipient, linkToken)
}

// UseRecipientLink marks a link that confirms a recipient as used. It fails as [Service.UseLink]
// does.
func (s *Service) UseRecipientLink(ctx context.Context, link uuid.UUID) error {
	_, err := s.UseLink(ctx, Recipient, link)
	return err
}
