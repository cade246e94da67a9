package message

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/fault"
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

// SendTest is [Outbox.SendMail] for a person who waits for the result: a failure is Unprocessable
// and has the text for project administrators. The mailbox does not record it.
func (o *Outbox) SendTest(ctx context.Context, a Attempt, m mail.Message) error {
	if o.mails.LogOnly() {
		return o.SendMail(ctx, a, m)
	}

	// The transaction has the audit entry, written before anything leaves the server.
	if err := o.Project.EndUsersTx(ctx, func(pgx.Tx) error { return nil }); err != nil {
		return err
	}

	err := o.mails.Send(ctx, m)
	if err == nil {
		return nil
	}

	o.Log.Warn("send a test mail", "project", o.Project.UUID, "kind", a.Kind, "error", err)
	return fault.New(fault.Unprocessable, "the mail was not sent: %s", failureText(err, !o.hasServer())).
		WithCode("mail_not_sent").WithCause(err)
}
