package message

import (
	"context"

	"github.com/socle-dev/socle/internal/mail"
)

// SendMail sends a mail by the project's server, or by the install's, and records the result.
// Without a server, the mail goes to the mailbox.
func (o *Outbox) SendMail(ctx context.Context, a Attempt, m mail.Message) error {
	if o.mails.LogOnly() {
		return Mailbox{o.Project}.put(ctx, Mail{UUID: newID(), Recipient: m.To, Kind: a.Kind, Subject: m.Subject,
			HTML: m.HTML, Text: m.Text})
	}

	err := o.mails.Send(ctx, m)
	o.record(ctx, a, err, !o.hasServer())

	return err
}
